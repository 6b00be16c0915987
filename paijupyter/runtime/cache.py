"""Fetched data that tasks share, each under the key of its content; readers get it read-only.

``<cache>/<key>/content/<base name>`` is there as a whole or not at all: it is fetched into ``<key>.part`` and
renamed. ``entry.json`` beside it has a print of all files, so that data which somebody changed is noticed and
fetched again. Who fetches holds ``<key>.lock``; who uses it holds the same lock shared.
"""

import json
import os
import stat

from .files import remove_tree, write_atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Callable, Dict, Iterator, Optional, Tuple

ENTRY = "entry.json"


class Cache:
    """The cache below one folder.

    Args:
        folder: where it is; made if absent.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def key(self, *facts: "Any") -> str:
        """Return the key of some content, from whatever tells it from all other."""
        from hashlib import sha256

        return sha256(json.dumps([1, *facts], sort_keys=True).encode("ascii")).hexdigest()[:40]

    def content(self, key: str, base: str) -> "Optional[str]":
        """Return where the content of a key lies, or None if it is not there, or not as it was fetched."""
        folder = os.path.join(self._folder, key)
        try:
            with open(os.path.join(folder, ENTRY), "rb") as stream:
                entry = json.loads(stream.read().decode("utf-8"))
            sound = entry["print"] == print_of(os.path.join(folder, "content"))
            os.utime(os.path.join(folder, ENTRY), None)  # what was used of late is not swept
        except (OSError, ValueError, KeyError):
            return None
        path = os.path.join(folder, "content", base)
        return path if sound and os.path.lexists(path) else None

    def lock(self, key: str) -> "IO[bytes]":
        """Wait until nobody else fetches this; closing what is returned lets others in."""
        return locked(os.path.join(self._folder, key + ".lock"))

    def share(self, key: str) -> "IO[bytes]":
        """Say that this is used, as long as what is returned is open."""
        import fcntl

        lock = open(os.path.join(self._folder, key + ".lock"), "ab")
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock

    def draft(self, key: str) -> str:
        """Return the folder to fetch into; what an ended fetch left there may be gone on with."""
        path = os.path.join(self._folder, key + ".part")
        os.makedirs(os.path.join(path, "content"), mode=0o700, exist_ok=True)
        return path

    def discard(self, key: str) -> None:
        """Remove a draft."""
        remove_tree(os.path.join(self._folder, key + ".part"))

    def publish(self, key: str, base: str, about: "Dict[str, Any]") -> str:
        """Make a complete draft the content of its key, read-only; return where it lies.

        Args:
            key: the key.
            base: base name of the content.
            about: what ``entry.json`` says of it besides its print.
        """
        draft, target = os.path.join(self._folder, key + ".part"), os.path.join(self._folder, key)
        content = os.path.join(draft, "content")
        protect(content)
        entry = dict(about, schema=1, print=print_of(content))
        write_atomic(os.path.join(draft, ENTRY), json.dumps(entry).encode("ascii"))
        remove_tree(target)  # damaged, or it would have been used
        os.rename(draft, target)
        return os.path.join(target, "content", base)


def locked(path: str, busy: "Optional[Callable[[], None]]" = None) -> "IO[bytes]":
    """Open a lock file and hold it alone; the lock ends with the file or its process.

    Args:
        path: the file.
        busy: called once if somebody else holds it, before waiting.
    """
    import fcntl

    lock = open(path, "ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if busy:
            busy()
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def print_of(content: str) -> str:
    """Return a digest of names, sizes, times and modes of all files below a folder."""
    from hashlib import sha256

    digest = sha256()
    for path, found in sorted(_walk(os.fsencode(content), b"")):
        facts = (found.st_size, found.st_mtime_ns, stat.S_IFMT(found.st_mode))
        digest.update(path + b"\0" + repr(facts).encode("ascii") + b"\n")
    return digest.hexdigest()


def protect(content: str) -> None:
    """Take the right to write from all files and folders below a folder."""
    for folder, _, names in os.walk(os.fsencode(content), topdown=False):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & ~0o222)
        os.chmod(folder, 0o500)


def measure(content: str) -> "Tuple[int, int]":
    """Return how many files are below a folder, and their bytes."""
    sizes = [found.st_size for _, found in _walk(os.fsencode(content), b"")]
    return len(sizes), sum(sizes)


def _walk(folder: bytes, prefix: bytes) -> "Iterator[Tuple[bytes, os.stat_result]]":
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        found = os.lstat(path)
        if stat.S_ISDIR(found.st_mode):
            yield from _walk(path, prefix + name + b"/")
        else:
            yield prefix + name, found
