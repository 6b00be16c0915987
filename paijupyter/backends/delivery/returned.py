"""Outputs that come as an archive: unpacked with care, then moved to where they are shown."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO


def receive(archive: IO[bytes], folder: Path) -> None:
    """Unpack an archive into a folder; files of an earlier attempt that have the same name go. Blocking.

    Raises:
        OSError: the folder cannot be written.
        tarfile.TarError: it is no archive.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        _unpack(archive, draft / "content")
        _put(draft / "content", folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _unpack(archive: IO[bytes], folder: Path) -> None:
    """Unpack regular files only, and none outside the folder, which is made."""
    folder.mkdir()
    archive.seek(0)
    with tarfile.open(fileobj=archive, mode="r|*") as members:
        for member in members:
            name = PurePosixPath(member.name)
            if not member.isreg() or name.is_absolute() or ".." in name.parts:
                continue
            source = members.extractfile(member)
            if source is None:
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with source, target.open("wb") as out:
                shutil.copyfileobj(source, out)
            target.chmod(0o600 | (member.mode & 0o100))


def _put(content: Path, folder: Path) -> None:
    """Move files over to where outputs are shown; those that have the same name go."""
    for path in sorted(content.rglob("*")):
        if path.is_file():
            target = folder / path.relative_to(content)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
