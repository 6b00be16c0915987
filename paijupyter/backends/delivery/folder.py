"""Packages in a folder that tasks have too: each in a folder of its own named by its hash, or not there."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from paijupyter.backends.base import Package
from paijupyter.backends.delivery.archive import members


def put(package: Package, shelf: Path) -> None:
    """Copy a package into a folder, unless it is there. Blocking.

    Raises:
        OSError: the folder cannot be written.
    """
    target = shelf / package.sha256
    if target.is_dir():
        os.utime(target)  # whoever clears old ones sees that it is used
        return
    shelf.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=shelf, prefix=".draft-"))
    try:
        _fill(draft, package)
        draft.rename(target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.is_dir():  # else another engine was faster
            raise


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
