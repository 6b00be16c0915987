"""Data of kind ``file``: files of the submitting side, which travel into the store like the trainer package.

All of a named folder travels, whatever ignore files say: it was named. What is too large is refused with the
limit and another way.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from paijupyter import paths
from paijupyter.errors import PaiJupyterError, UsageProblem
from paijupyter.package.limits import Limits, readable_size
from paijupyter.package.manifest import EXECUTABLE, FILE, SMALL, Entry, Manifest, check_path
from paijupyter.package.stat_cache import Row, RowTuple, StatCache, is_settled
from paijupyter.package.store import Store
from paijupyter.protocol.data import DataSource, scheme_of

_CHUNK = 1 << 20
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Taken:
    """Data that travelled.

    Attributes:
        sha256: hash of the manifest, its name in the store.
        files: how many files.
        bytes: their bytes.
    """

    sha256: str
    files: int
    bytes: int


@dataclass(slots=True)
class _Files:
    """The files of a source: path in the package to path on disk and its numbers."""

    found: dict[str, tuple[Path, os.stat_result]] = field(default_factory=dict)
    size: int = 0


def take(
    source: DataSource,
    folder: Path,
    store: Store,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> Taken:
    """Put the files of a source into a store.

    Args:
        source: of kind ``file``.
        folder: what its path is relative to.
        store: where they go; only what it lacks is sent.
        progress: called with bytes done and bytes in all.
        limits: what may travel; as much as a package by default.

    Raises:
        UsageProblem: it does not exist, is too large, has something that is no file, or another checksum.
        PaiJupyterError: what the store raises.
    """
    root = path_of(source, folder)
    files = _find(source, root, limits or Limits())
    read_at_ns = time.time_ns()
    cache = StatCache(paths.data_dir() / "stat-cache", f"data:{root}")
    known, fresh = cache.load(), dict[str, Row]()
    entries, done = [], 0
    for path, (place, found) in files.found.items():
        digest = _known(known.get(path), found) or _hash(source, place, found)
        if is_settled(found.st_mtime_ns, found.st_ctime_ns, read_at_ns):
            numbers = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
            fresh[path] = Row(*numbers, found.st_size, 0, digest)
        mode = EXECUTABLE if found.st_mode & stat.S_IXUSR else FILE
        entries.append(Entry(path, mode, found.st_size, digest.hex()))
        done += found.st_size
        if progress:
            progress(done, files.size)
    if any(known.get(path) != row for path, row in fresh.items()):
        cache.save(fresh)
    manifest = Manifest(entries)
    _check_sum(source, manifest)
    _deliver(source, manifest, files, store)
    return Taken(manifest.sha256, manifest.files, manifest.size)


def path_of(source: DataSource, folder: Path) -> Path:
    """Return the path that a source of kind ``file`` names."""
    text = unquote(urlsplit(source.uri).path) if scheme_of(source.uri) == "file" else source.uri
    return folder / Path(text).expanduser()


def _find(source: DataSource, root: Path, limits: Limits) -> _Files:
    files = _Files()
    why = check_path(source.base)
    if why:
        raise UsageProblem(f"Data `{source.name}` has a name that {why}.", "Rename it.")
    try:
        walk = _walk(source, root, source.base) if root.is_dir() else iter([(source.base, root)])
        for path, place in walk:
            found = place.stat()
            if not stat.S_ISREG(found.st_mode):
                raise UsageProblem(f"Data `{source.name}`: `{place}` is no regular file.", "Leave it out.")
            files.found[path] = (place, found)
            files.size += found.st_size
            if not limits.hold(len(files.found), files.size):
                raise _too_large(source, root, limits)
    except FileNotFoundError as error:
        raise UsageProblem(
            f"Data `{source.name}`: `{error.filename or root}` does not exist.",
            "Its path is relative to the notebook's folder (command line: this folder).",
        ) from None
    except OSError as error:
        raise UsageProblem(
            f"Data `{source.name}` cannot be read: {error.strerror}: `{error.filename}`."
        ) from error
    if not files.found:
        raise UsageProblem(f"Data `{source.name}`: the folder `{root}` has no files.", "Name another.")
    return files


def _walk(source: DataSource, folder: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        path = f"{prefix}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(source, Path(entry.path), path)
            continue
        if why := check_path(path):
            raise UsageProblem(
                f"Data `{source.name}`: a file in `{folder}` has a name that {why}.", "Rename it."
            )
        if entry.is_symlink() and os.path.isdir(entry.path):
            raise UsageProblem(
                f"Data `{source.name}`: `{entry.path}` is a link to a folder.",
                "Name that folder as data of its own.",
            )
        yield path, Path(entry.path)


def _too_large(source: DataSource, root: Path, limits: Limits) -> UsageProblem:
    limit = f"{readable_size(limits.bytes)} and {limits.files:,} files"
    return UsageProblem(
        f"Data `{source.name}` is too large to travel with a job: `{root}` has more than {limit}.",
        f"Put it into a storage once: data put {source.uri} STORAGE:{source.base}, "
        f"then --data {source.name}=storage://STORAGE/{source.base}.",
    )


def _known(row: RowTuple | None, found: os.stat_result) -> bytes | None:
    numbers = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return row[6] if row is not None and row[:4] == numbers else None


def _hash(source: DataSource, place: Path, found: os.stat_result) -> bytes:
    digest, size = hashlib.sha256(), 0
    for chunk in _chunks(place):
        digest.update(chunk)
        size += len(chunk)
    now = place.stat()
    if size != found.st_size or (now.st_size, now.st_mtime_ns) != (found.st_size, found.st_mtime_ns):
        raise _changing(source, place)
    return digest.digest()


def _chunks(place: Path) -> Iterator[bytes]:
    with place.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _check_sum(source: DataSource, manifest: Manifest) -> None:
    if not source.sha256:
        return
    entry = manifest.entries[0]
    if entry.path != source.base:
        raise UsageProblem(f"Data `{source.name}` is a folder, which has no sha256.", "Leave sha256= out.")
    if entry.sha256 != source.sha256.lower():
        raise UsageProblem(f"Data `{source.name}` has the sha256 {entry.sha256}, not {source.sha256}.")


def _deliver(source: DataSource, manifest: Manifest, files: _Files, store: Store) -> None:
    missing = store.missing(manifest)
    try:
        if missing.pack:
            small: Mapping[str, Path] = {entry.path: files.found[entry.path][0] for entry in manifest.pack}
            store.put_pack(manifest, (chunk for place in small.values() for chunk in _chunks(place)))
        large = {entry.sha256: entry.path for entry in manifest.entries if entry.size >= SMALL}
        for sha256 in missing.blobs:
            store.put_blob(sha256, _chunks(files.found[large[sha256]][0]))
    except PaiJupyterError as error:
        if error.code == "package-mismatch":
            raise _changing(source, path_of(source, Path())) from error
        raise
    store.commit(manifest)


def _changing(source: DataSource, place: Path) -> UsageProblem:
    return UsageProblem(f"Data `{source.name}`: `{place}` changed while it was read.", "Submit it again.")


def total_of(folder: Path) -> int:
    """Return the bytes of all files of a package, from its folder in the store; 0 if it cannot be read."""
    try:
        return Manifest.from_bytes((folder / "manifest.json").read_bytes()).size
    except (OSError, PaiJupyterError):
        return 0
