"""Packages on a claim that this host has mounted too."""

from __future__ import annotations

from pathlib import Path

from paijupyter.backends.base import Package
from paijupyter.backends.delivery import folder
from paijupyter.backends.kubernetes.settings import ClaimStore
from paijupyter.errors import PaiJupyterError


def put(package: Package, store: ClaimStore) -> None:
    """Copy a package onto the volume, unless it is there. Blocking.

    Raises:
        PaiJupyterError: ``package-not-sent`` if the folder cannot be written.
    """
    top = Path(store.path)
    if not top.is_dir():
        raise _failed(store, "it is no folder on this host")
    try:
        folder.put(package, top / store.folder)
    except OSError as error:
        raise _failed(store, error.strerror or str(error)) from error


def _failed(store: ClaimStore, why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "package-not-sent",
        f"Package cannot be copied to `{store.path}`, where claim `{store.claim}` should be mounted: {why}.",
        "Correct `packageClaim` of the profile, or take `claim` out of its `packageWays`.",
        507,
    )
