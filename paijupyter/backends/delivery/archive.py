"""A package as one archive: a gzip'd tar of ``manifest.json``, ``pack`` and ``blobs/<aa>/<sha256>``.

The same package gives the same bytes on one host: names are sorted, and no time, owner or mode is in it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from paijupyter.backends.base import Job, Package
from paijupyter.package.manifest import LINK, SMALL, Entry, Manifest

_LEVEL_SMALL, _LEVEL_LARGE = 6, 1
_PIECE = 1 << 20


class TooLarge(Exception):
    """The archive would have more bytes than asked for."""


@dataclass(frozen=True, slots=True)
class Archive:
    """What is known of an archive: its sha256 and its size in bytes."""

    sha256: str
    size: int


def packages_of(job: Job) -> list[Package]:
    """Return what travels with a job: the trainer package first, then data that are files of this host."""
    own = [job.package] if job.package else []
    return own + [each.package for each in job.data if each.package]


def manifest_of(package: Package) -> Manifest:
    """Return what a package has. Blocking."""
    return Manifest.from_bytes((package.folder / "manifest.json").read_bytes())


def members(package: Package) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each member."""
    yield "manifest.json", package.folder / "manifest.json"
    yield "pack", package.folder / "pack"
    for sha256 in sorted(manifest_of(package).blobs):
        yield f"blobs/{sha256[:2]}/{sha256}", package.blobs / sha256[:2] / sha256


def contents(package: Package) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yield each file's entry and its content, which is to be read before the next one is asked for."""
    with (package.folder / "pack").open("rb") as pack:
        for entry in manifest_of(package).entries:
            if entry.size < SMALL or entry.mode == LINK:
                yield entry, iter((pack.read(entry.size),))
            else:
                with (package.blobs / entry.sha256[:2] / entry.sha256).open("rb") as blob:
                    yield entry, iter(lambda: blob.read(_PIECE), b"")


def size_of(package: Package) -> int:
    """Return the bytes of all members. Blocking."""
    return sum(path.stat().st_size for _, path in members(package))


@lru_cache(maxsize=4)
def in_memory(package: Package, limit: int) -> bytes | None:
    """Return the archive, None if it has more than ``limit`` bytes. Blocking; plan and submit share it."""
    buffer = _Limited(limit)
    try:
        _write(package, buffer, _LEVEL_SMALL)
    except TooLarge:
        return None
    return buffer.getvalue()


def to_file(package: Package, stream: IO[bytes]) -> Archive:
    """Write the archive and return its facts. Blocking."""
    hashed = _Hashed(stream)
    _write(package, hashed, _LEVEL_LARGE)
    return Archive(hashed.digest.hexdigest(), hashed.size)


def facts_of(data: bytes) -> Archive:
    """Return the facts of an archive in memory."""
    return Archive(hashlib.sha256(data).hexdigest(), len(data))


def _write(package: Package, stream: IO[bytes], level: int) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=stream, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for name, path in members(package):
            entry = tarfile.TarInfo(name)
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(entry, content)


class _Limited(io.BytesIO):
    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        if self.tell() + len(data) > self._limit:
            raise TooLarge
        return super().write(data)


class _Hashed(io.BytesIO):
    """Passes bytes on and hashes them."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self._stream = stream
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self.digest.update(data)
        self.size += len(data)
        self._stream.write(data)
        return len(data)
