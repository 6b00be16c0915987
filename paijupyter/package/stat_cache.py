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
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, cast

from paijupyter.package.manifest import Manifest, Summary
from paijupyter.package.selection import Selected

_MAGIC = b"paijupyter stat cache 1\n"  # to be changed with how notebooks are normalised, too
_FIGURES = struct.Struct("<QQQQ")
_BLOB = struct.Struct("<32sQ")
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


def all_settled(files: Iterable[Selected], read_at_ns: int) -> bool:
    """Say whether a later write of any of the files would show in its times."""
    return all(is_settled(file.mtime_ns, file.ctime_ns, read_at_ns) for file in files)


def fingerprint(files: Sequence[Selected], extra: Mapping[str, bytes]) -> bytes:
    """Return a digest of all that decides what a package holds, as far as the files' numbers tell."""
    digest = hashlib.sha256()
    for path in sorted(extra):
        digest.update(repr((path, hashlib.sha256(extra[path]).digest())).encode())
    if files:
        paths, modes, *numbers = zip(*files, strict=True)
        digest.update("\0".join((*paths, *modes)).encode())
        for column in numbers:
            digest.update(array("Q", column) if min(column) >= 0 else repr(column).encode())
    return digest.digest()


class StatCache:
    """What is known of one root folder, in two files below ``folder``: its rows, and its last manifest."""

    def __init__(self, folder: Path, root: str) -> None:
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self._rows = folder / f"{name}.rows"
        self._last = folder / f"{name}.last"

    def load(self) -> Mapping[str, RowTuple]:
        """Return the rows by path; none if there is no sound file."""
        body = _read(self._rows)
        if not body:
            return {}
        (number,) = struct.unpack_from("<Q", body)
        end = 8 + number * _ROW.size
        names = bytes(body[end:]).decode().split("\0") if number else []
        rows = cast("Iterator[RowTuple]", _ROW.iter_unpack(body[8:end]))
        return dict(zip(names, rows, strict=True))

    def save(self, rows: Mapping[str, RowTuple]) -> None:
        """Replace the rows."""
        packed = [_ROW.pack(*row) for row in rows.values()]
        _write(self._rows, struct.pack("<Q", len(rows)), *packed, "\0".join(rows).encode())

    def recall(self, print_: bytes) -> Manifest | None:
        """Return the manifest of the last look, if the fingerprint of the selection is the same."""
        body = _read(self._last)
        if not body or body[: len(print_)] != print_:
            return None
        start = len(print_) + _FIGURES.size
        files, size, pack_size, number = _FIGURES.unpack_from(body, len(print_))
        end = start + number * _BLOB.size
        blobs = {digest.hex(): length for digest, length in _BLOB.iter_unpack(body[start:end])}
        return Manifest.recalled(bytes(body[end:]), Summary(files, size, pack_size, blobs))

    def remember(self, print_: bytes, manifest: Manifest) -> None:
        """Keep a manifest for a selection whose files all were settled."""
        files, size, pack_size, blobs = manifest.summary
        figures = _FIGURES.pack(files, size, pack_size, len(blobs))
        packed = [_BLOB.pack(bytes.fromhex(sha256), length) for sha256, length in blobs.items()]
        _write(self._last, print_, figures, *packed, manifest.data)


def _read(path: Path) -> memoryview | None:
    """Return what :func:`_write` wrote, or None if a single bit of it is different."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC)
    body = memoryview(data)[head + 32 :]
    sound = data[:head] == _MAGIC and hashlib.sha256(body).digest() == data[head : head + 32]
    return body if sound else None


def _write(path: Path, *parts: bytes) -> None:
    """Replace a cache file; a disk that is full or read-only only costs the next look its speed."""
    body = b"".join(parts)
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=path.parent)
        try:
            with open(number, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
