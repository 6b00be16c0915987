"""Folders of records: there as a whole or not at all, also if the machine stops in between."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path

from paijupyter.jobs.files import sync, sync_all, write

DRAFT = ".new-"
GONE = ".gone-"
_LEFTOVER_AGE = 600.0  # seconds


def make(folder: Path, contents: Mapping[str, bytes], below: Collection[str] = ()) -> None:
    """Make a folder.

    Args:
        folder: the folder; it must not exist yet, the one above it may be made too.
        contents: its files.
        below: empty folders in it.
    """
    make_all({folder: contents}, below)


def make_all(contents: Mapping[Path, Mapping[str, bytes]], below: Collection[str] = ()) -> None:
    """Make folders beside each other, with the files of each; if one cannot be made, none of them is.

    All are written before the first is waited for: the disk then takes them in one go.
    """
    drafts = {folder.with_name(f"{DRAFT}{folder.name}-{uuid.uuid4().hex[:8]}"): folder for folder in contents}
    made = []
    try:
        for draft, folder in drafts.items():
            draft.mkdir(mode=0o700, parents=True)
            for name in below:
                (draft / name).mkdir(mode=0o700)
            for name, content in contents[folder].items():
                write(draft / name, content)
        written = (draft / name for draft, folder in drafts.items() for name in contents[folder])
        sync_all([*written, *drafts])
        for draft, folder in drafts.items():
            draft.rename(folder)
            made.append(folder)
        sync_all({folder.parent for folder in contents})
    except BaseException:
        for path in (*drafts, *made):
            shutil.rmtree(path, ignore_errors=True)
        raise


def remove(folder: Path) -> None:
    """Remove a folder: from one moment to the next it is no longer there, then its files go."""
    gone = folder.with_name(f"{GONE}{folder.name}-{uuid.uuid4().hex[:8]}")
    try:
        folder.rename(gone)
    except FileNotFoundError:
        return
    sync(folder.parent)
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
