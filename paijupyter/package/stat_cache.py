"""What the last look at a folder found, so that the next look reads only what changed.

A row is believed if size, times and inode are the same. A file that was written in the two seconds before it
was read gets no row: it could be written again within one tick of the file system's clock (git's "racily
clean"). A cache file that is damaged in any way, or of another version, is an empty cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

_MAGIC = b"paijupyter stat cache 1\n"  # to be changed with how notebooks are normalised, too
_ROW = struct.Struct("<QqqQQB32s")
RACY_NS = 2_000_000_000


class Row(NamedTuple):
    """What is known of a file.

    Attributes:
        size: bytes in the folder.
        mtime_ns: time of its last change.
        ctime_ns: time of its inode's last change.
        inode: number of its inode.
        packed_size: bytes in the package; fewer than ``size`` for a notebook.
        broken: 1 for a notebook that is not valid, else 0.
        digest: sha256 of the bytes in the package.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    packed_size: int
    broken: int
    digest: bytes


RowTuple = tuple[int, int, int, int, int, int, bytes]
"""A row as it is loaded: there are ten thousands of them, and a plain tuple is made faster."""


def is_settled(mtime_ns: int, ctime_ns: int, read_at_ns: int) -> bool:
    """Say whether a later write of the file would show in its times."""
    return max(mtime_ns, ctime_ns) + RACY_NS < read_at_ns


class StatCache:
    """The rows of one root folder, in one file below ``folder``."""

    def __init__(self, folder: Path, root: str) -> None:
        self._file = folder / hashlib.sha256(os.fsencode(root)).hexdigest()[:32]

    def load(self) -> Mapping[str, RowTuple]:
        """Return the rows by path; none if there is no sound file."""
        try:
            data = self._file.read_bytes()
        except OSError:
            return {}
        head = len(_MAGIC)
        body = memoryview(data)[head + 32 :]
        if data[:head] != _MAGIC or hashlib.sha256(body).digest() != data[head : head + 32]:
            return {}
        try:
            (number,) = struct.unpack_from("<Q", body)
            names = bytes(body[8 + number * _ROW.size :]).decode().split("\0") if number else []
            rows = cast("Iterator[RowTuple]", _ROW.iter_unpack(body[8 : 8 + number * _ROW.size]))
            return dict(zip(names, rows, strict=True))
        except (ValueError, struct.error):
            return {}

    def save(self, rows: Mapping[str, RowTuple]) -> None:
        """Replace the rows; a disk that is full or read-only only costs the next look its speed."""
        body = b"".join(
            (
                struct.pack("<Q", len(rows)),
                *(_ROW.pack(*row) for row in rows.values()),
                "\0".join(rows).encode(),
            )
        )
        data = b"".join((_MAGIC, hashlib.sha256(body).digest(), body))
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, name = tempfile.mkstemp(dir=self._file.parent)
            try:
                with open(number, "wb") as file:
                    file.write(data)
                os.replace(name, self._file)
            except BaseException:
                os.unlink(name)
                raise
