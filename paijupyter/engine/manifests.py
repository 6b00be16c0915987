"""Manifests that clients have posted and whose packs may follow, bounded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from paijupyter.errors import Conflict

_KEEP = 16


class PendingManifests:
    """The latest manifests by their hash."""

    def __init__(self) -> None:
        self._by_hash: OrderedDict[str, Any] = OrderedDict()

    def add(self, sha256: str, manifest: Any) -> None:
        """Remember a manifest; the oldest goes when there are too many."""
        self._by_hash[sha256] = manifest
        self._by_hash.move_to_end(sha256)
        while len(self._by_hash) > _KEEP:
            self._by_hash.popitem(last=False)

    def get(self, sha256: str) -> Any:
        """Return a manifest.

        Raises:
            Conflict: ``manifest-unknown``, if it was never posted to this engine.
        """
        try:
            return self._by_hash[sha256]
        except KeyError:
            raise Conflict(
                "manifest-unknown",
                f"The manifest of package `{sha256[:12]}` is not known.",
                "Post the manifest to /v1/packages first.",
            ) from None
