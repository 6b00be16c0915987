"""Packages on a claim that this host has mounted too: each in a folder named by its hash, or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from paijupyter.backends.base import Package
from paijupyter.backends.kubernetes.delivery.archive import members
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
    shelf = top / store.folder
    target = shelf / package.sha256
    if target.is_dir():
        os.utime(target)  # whoever clears old ones sees that it is used
        return
    try:
        shelf.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=shelf, prefix=".draft-"))
        try:
            _fill(draft, package)
            draft.rename(target)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            if not target.is_dir():  # else another engine was faster
                raise
    except OSError as error:
        raise _failed(store, error.strerror or str(error)) from error


def _fill(draft: Path, package: Package) -> None:
    draft.chmod(0o755)
    for name, source in members(package):
        copy = draft / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        # The tasks run as other users than this one.
        copy.chmod(0o644)
        with copy.open("rb") as stream:
            os.fsync(stream.fileno())
    for folder in draft.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o755)


def _failed(store: ClaimStore, why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "package-not-sent",
        f"Package cannot be copied to `{store.path}`, where claim `{store.claim}` should be mounted: {why}.",
        "Correct `packageClaim` of the profile, or take `claim` out of its `packageWays`.",
        507,
    )
