"""The package store of the job server, seen from where the folder is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from paijupyter.client.transport import quoted

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient
    from paijupyter.package.manifest import Manifest
    from paijupyter.package.store import Missing


class RemoteStore:
    """Stores packages over the API; satisfies ``paijupyter.package.Store``."""

    def __init__(self, client: JobsClient) -> None:
        self._client = client
        self._asked: Any = None

    def missing(self, manifest: Manifest) -> Missing:
        """Say what of a package is not there yet."""
        from paijupyter.package.store import Missing

        self._asked = self._client.version()["engine"]
        answer = self._client.ask("POST", "/v1/packages", body={"manifest": manifest.to_json()})["missing"]
        return Missing(pack=bool(answer["pack"]), blobs=tuple(answer["blobs"]))

    def put_pack(self, manifest: Manifest, chunks: Iterable[bytes]) -> None:
        """Send the small files of a package, in one request."""
        path = quoted("packages", manifest.sha256, "pack")
        if self._client.version()["engine"] != self._asked:
            self.missing(manifest)  # another engine than the one that was told what comes
        self._client.send(path, chunks)

    def put_blob(self, sha256: str, chunks: Iterable[bytes]) -> None:
        """Send one large file."""
        self._client.send(quoted("packages", "blobs", sha256), chunks)

    def commit(self, manifest: Manifest) -> None:
        """Make a complete package visible."""
        path = quoted("packages", manifest.sha256, "commit")
        self._client.ask("POST", path, body={"manifest": manifest.to_json()})
