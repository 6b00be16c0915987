"""The engine's side of the cache of fetched data; its layout on disk is that of ``runtime/cache.py``.

``datasets/<key>/content/<base name>`` is there as a whole or not at all, read-only, with a print of all files
in ``entry.json``. Whoever fetches holds ``<key>.lock``; tasks that use it hold the same lock shared.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

KEPT_UNUSED = 30 * 24 * 3600.0
"""Seconds after its last use until data may be swept."""
_CONTENT = "content"
_ENTRY = "entry.json"


class DataCache:
    """Fetched data of this host.

    Args:
        data: the data folder.
    """

    def __init__(self, data: Path) -> None:
        self.folder = data / "datasets"

    def key(self, *facts: Any) -> str:
        """Return the key of some content, from whatever tells it from all other."""
        return hashlib.sha256(json.dumps([1, *facts], sort_keys=True).encode()).hexdigest()[:40]

    def content(self, key: str, base: str) -> Path | None:
        """Return where the content of a key lies, or None if it is not there as it was fetched."""
        entry = self.folder / key / _ENTRY
        try:
            sound = json.loads(entry.read_bytes())["print"] == print_of(self.folder / key / _CONTENT)
            os.utime(entry)
        except (OSError, ValueError, KeyError):
            return None
        path = self.folder / key / _CONTENT / base
        return path if sound and os.path.lexists(path) else None

    def provide(self, key: str, base: str, about: dict[str, Any], fetch: Callable[[Path], None]) -> Path:
        """Return the content of a key, fetched if it is not there; others wait meanwhile.

        Args:
            key: its key.
            base: its base name.
            about: what its entry says besides the print.
            fetch: makes the file or folder it is given; part of it may be there from a killed try.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked(key):
            found = self.content(key, base)
            if found is not None:
                return found
            draft = self.folder / f"{key}.part"
            content = draft / _CONTENT
            content.mkdir(mode=0o700, parents=True, exist_ok=True)
            fetch(content / base)
            _protect(content)
            _write(draft / _ENTRY, {**about, "schema": 1, "print": print_of(content)})
            _remove(self.folder / key)
            draft.rename(self.folder / key)
            return self.folder / key / _CONTENT / base

    def discard(self, key: str) -> None:
        """Remove what a fetch has left unfinished."""
        _remove(self.folder / f"{key}.part")

    def sweep(self, older_than: float = KEPT_UNUSED) -> int:
        """Remove data that nobody has used for long, and what killed fetches left; return the bytes freed."""
        before = time.time() - older_than
        freed = 0
        keys = {path.name.partition(".")[0] for path in self.folder.glob("*") if path.is_dir()}
        for key in keys:
            with self._if_unused(key) as unused:
                for path in (self.folder / key, self.folder / f"{key}.part"):
                    if unused and path.is_dir() and _last_use(path) < before:
                        freed += _remove(path)
        return freed

    @contextlib.contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        with self._lock(key) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _if_unused(self, key: str) -> Iterator[bool]:
        with self._lock(key) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _lock(self, key: str) -> IO[bytes]:
        return (self.folder / f"{key}.lock").open("ab")


def print_of(content: Path) -> str:
    """Return a digest of names, sizes, times and kinds of all files below a folder."""
    digest = hashlib.sha256()
    for path, found in sorted(_walk(os.fsencode(content), b"")):
        facts = (found.st_size, found.st_mtime_ns, stat.S_IFMT(found.st_mode))
        digest.update(path + b"\0" + repr(facts).encode() + b"\n")
    return digest.hexdigest()


def _walk(folder: bytes, prefix: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        found = os.lstat(path)
        if stat.S_ISDIR(found.st_mode):
            yield from _walk(path, prefix + name + b"/")
        else:
            yield prefix + name, found


def _protect(content: Path) -> None:
    for folder, _, names in os.walk(content, topdown=False):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & ~0o222)
        os.chmod(folder, 0o500)


def _write(path: Path, value: dict[str, Any]) -> None:
    with path.open("w") as stream:
        json.dump(value, stream)
        stream.flush()
        os.fsync(stream.fileno())


def _last_use(folder: Path) -> float:
    entry = folder / _ENTRY
    with contextlib.suppress(OSError):
        return (entry if entry.exists() else folder).stat().st_mtime
    return time.time()


def _remove(folder: Path) -> int:
    """Remove a folder whose files and folders may be read-only; return the bytes that it had."""
    if not folder.is_dir():
        return 0
    size = 0
    for place, _, names in os.walk(folder):
        os.chmod(place, stat.S_IRWXU)
        size += sum(os.lstat(os.path.join(place, name)).st_size for name in names)
    shutil.rmtree(folder)
    return size
