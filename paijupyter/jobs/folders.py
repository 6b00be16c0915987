"""Folders of records: there as a whole or not at all, also if the machine stops in between."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from paijupyter.jobs.files import sync_folder, write_all_synced

DRAFT = ".new-"
GONE = ".gone-"
_LEFTOVER_AGE = 600.0  # seconds


def make(folder: Path, contents: Mapping[str, bytes], below: Iterable[str] = ()) -> None:
    """Make a folder.

    Args:
        folder: the folder; it must not exist yet, the one above it may be made too.
        contents: its files.
        below: empty folders in it.
    """
    draft = folder.with_name(f"{DRAFT}{folder.name}-{uuid.uuid4().hex[:8]}")
    draft.mkdir(mode=0o700, parents=True)
    try:
        for name in below:
            (draft / name).mkdir(mode=0o700)
        write_all_synced(draft, contents)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    sync_folder(folder.parent)


def remove(folder: Path) -> None:
    """Remove a folder: from one moment to the next it is no longer there, then its files go."""
    gone = folder.with_name(f"{GONE}{folder.name}-{uuid.uuid4().hex[:8]}")
    try:
        folder.rename(gone)
    except FileNotFoundError:
        return
    sync_folder(folder.parent)
    shutil.rmtree(gone, ignore_errors=True)


def sweep(above: Path) -> None:
    """Remove what crashes left behind: drafts and half-removed folders.

    Young ones stay: they may be the work that another host is at.
    """
    if not above.is_dir():
        return
    for entry in os.scandir(above):
        is_old = entry.stat(follow_symlinks=False).st_mtime < time.time() - _LEFTOVER_AGE
        if is_old and entry.name.startswith((DRAFT, GONE)):
            shutil.rmtree(entry.path, ignore_errors=True)
