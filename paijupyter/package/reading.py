"""Reading files that other programs may write to, so that what was read is one state of the file.

A file's numbers are compared before and after; if they differ it is read once more, and then it is a problem.
No link is followed and no pipe is waited for: a name may have changed hands since the walk.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_ISREG, S_IXUSR
from typing import NamedTuple

from paijupyter.package.manifest import EXECUTABLE, FILE, LINK, SMALL
from paijupyter.package.notebooks import normalise
from paijupyter.package.selection import Selected

NOTEBOOK = ".ipynb"
_CHUNK = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LARGEST_NOTEBOOK = 256 << 20


class FileChanging(Exception):
    """A file changed while it was read, twice."""


class Reading(NamedTuple):
    """One state of a file: its numbers, its bytes in the package and their hash."""

    file: Selected
    data: bytes
    digest: bytes
    broken: bool = False

    @property
    def is_small(self) -> bool:
        """Whether its bytes go into the pack."""
        return len(self.data) < SMALL or self.file.mode == LINK


def is_notebook(file: Selected) -> bool:
    """Say whether a file travels normalised, so that its size in the package differs."""
    return file.path.endswith(NOTEBOOK) and file.size <= _LARGEST_NOTEBOOK


def read_whole(root: str, file: Selected) -> Reading:
    """Read a small file or a notebook.

    Raises:
        FileChanging: if it changes all the time.
        OSError: if it cannot be read, or is gone.
    """
    data = b""

    def read(number: int, size: int) -> int:
        nonlocal data
        data = os.read(number, size + 1)
        while 0 < len(data) < size:
            more = os.read(number, size + 1 - len(data))
            if not more:
                break
            data += more
        return len(data)

    found = _one_state(root, file, read)
    if not is_notebook(found):
        return Reading(found, data, hashlib.sha256(data).digest())
    normal = normalise(data)
    kept = data if normal is None else normal
    return Reading(found, kept, hashlib.sha256(kept).digest(), broken=normal is None)


def read_large(root: str, file: Selected, sink: Callable[[bytes], object]) -> tuple[Selected, bytes]:
    """Hash a large file without holding it in memory; return its numbers and its hash.

    Args:
        root: the package's folder.
        file: as the walk saw it.
        sink: gets the bytes in chunks; a second reading begins with an empty chunk.

    Raises:
        FileChanging: if it changes all the time.
        OSError: if it cannot be read, or is gone.
    """
    digest = hashlib.sha256()

    def read(number: int, size: int) -> int:
        nonlocal digest
        digest = hashlib.sha256()
        sink(b"")
        total = 0
        while chunk := os.read(number, _CHUNK):
            digest.update(chunk)
            sink(chunk)
            total += len(chunk)
            if total > size:
                break
        return total

    found = _one_state(root, file, read)
    return found, digest.digest()


def chunks(path: str | Path) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces of a megabyte; follows no link."""
    with open(os.open(path, _FLAGS), "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _one_state(root: str, file: Selected, read: Callable[[int, int], int]) -> Selected:
    """Have a file read until it is the same afterwards; ``read`` gets number and size, returns a length."""
    for _ in range(2):
        number = os.open(f"{root}/{file.path}", _FLAGS)
        try:
            length = read(number, file.size)
            found = os.fstat(number)
        finally:
            os.close(number)
        if not S_ISREG(found.st_mode):
            break
        if length == file.size == found.st_size and found.st_mtime_ns == file.mtime_ns:
            return file
        file = Selected(
            file.path,
            EXECUTABLE if found.st_mode & S_IXUSR else FILE,
            found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
            found.st_ino,
        )
    raise FileChanging(file.path)
