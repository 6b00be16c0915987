"""The manifest of a trainer package: what it holds, in canonical JSON, whose sha256 names the package.

``{"schema":1,"files":[[path, mode, size, sha256], …]}``, sorted by the bytes of the paths, no spaces, UTF-8.
The pack of a package is the contents of its small entries, one after another in this order; the sizes imply
where each begins. Large files are blobs of their own, named by their hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from paijupyter.errors import PaiJupyterError

SCHEMA = 1
SMALL = 262_144
"""Files of fewer bytes than this travel in the pack, larger ones as blobs."""

FILE, EXECUTABLE, LINK = "100644", "100755", "120000"
_MODES = frozenset({FILE, EXECUTABLE, LINK})
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NEEDS_ESCAPES = re.compile(r'["\\\x00-\x1f]')
_BAD_PARTS = frozenset({"", ".", ".."})


class Entry(NamedTuple):
    """One file of a package; a link's content is its target."""

    path: str
    mode: str
    size: int
    sha256: str


class Changes(NamedTuple):
    """What differs between two packages, as paths."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


class Summary(NamedTuple):
    """The figures of a package: files, bytes of all, bytes of the pack, size of each blob by its hash."""

    files: int
    size: int
    pack_size: int
    blobs: Mapping[str, int]


class Manifest:
    """An immutable, sorted list of entries; build one from outside data with :meth:`from_json`."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.__dict__["entries"] = tuple(sorted(entries))

    @classmethod
    def recalled(cls, data: bytes, summary: Summary) -> Manifest:
        """Return a manifest from its sound canonical JSON; the entries are read when asked for."""
        manifest = cls.__new__(cls)
        manifest.__dict__.update(data=data, summary=summary)
        return manifest

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The files, sorted by the bytes of their paths."""
        return tuple(Entry(*row) for row in json.loads(self.data)["files"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifest) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"<Manifest {self.sha256[:12]} of {self.files} files>"

    @cached_property
    def data(self) -> bytes:
        """The canonical JSON."""
        if _NEEDS_ESCAPES.search("".join([entry.path for entry in self.entries])):
            text = json.dumps(self.entries, separators=(",", ":"), ensure_ascii=False)
        else:  # the same text in a third of the time
            rows = [f'["{path}","{mode}",{size},"{sha256}"]' for path, mode, size, sha256 in self.entries]
            text = f"[{','.join(rows)}]"
        return f'{{"schema":{SCHEMA},"files":{text}}}'.encode()

    @cached_property
    def sha256(self) -> str:
        """The name of the package: the hash of :attr:`data`, 64 hex digits."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def summary(self) -> Summary:
        """The figures of the package, all from one pass."""
        size = pack_size = 0
        blobs = {}
        for _, mode, length, sha256 in self.entries:
            size += length
            if length < SMALL or mode == LINK:
                pack_size += length
            else:
                blobs[sha256] = length
        return Summary(len(self.entries), size, pack_size, blobs)

    @property
    def files(self) -> int:
        """How many files it has."""
        return self.summary.files

    @property
    def size(self) -> int:
        """Bytes of all contents."""
        return self.summary.size

    @property
    def pack_size(self) -> int:
        """Bytes of the pack."""
        return self.summary.pack_size

    @property
    def blobs(self) -> Mapping[str, int]:
        """Hash and size in bytes of each distinct large file."""
        return self.summary.blobs

    @property
    def pack(self) -> list[Entry]:
        """The entries whose contents make up the pack, in its order."""
        return [entry for entry in self.entries if entry.size < SMALL or entry.mode == LINK]

    def changes_since(self, older: Manifest) -> Changes:
        """Say which paths differ from an older package."""
        now = {entry.path: entry for entry in self.entries}
        then = {entry.path: entry for entry in older.entries}
        return Changes(
            added=tuple(path for path in now if path not in then),
            changed=tuple(path for path in now if path in then and now[path] != then[path]),
            removed=tuple(path for path in then if path not in now),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object; :meth:`from_json` of it has the same hash."""
        return {"schema": SCHEMA, "files": [list(entry) for entry in self.entries]}

    @classmethod
    def from_json(cls, data: Any) -> Manifest:
        """Build a manifest from an untrusted JSON object.

        Raises:
            PaiJupyterError: ``bad-manifest`` if it is malformed, or a path could leave the package's folder.
        """
        if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
            raise _bad(f"it is not of schema {SCHEMA}")
        rows = data.get("files")
        if not isinstance(rows, list):
            raise _bad("it has no list of files")
        manifest = cls(_entry(row) for row in rows)
        _check_tree(manifest.entries)
        return manifest

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Build a manifest from untrusted JSON text; raises as :meth:`from_json` does."""
        try:
            return cls.from_json(json.loads(data))
        except (ValueError, RecursionError) as error:
            raise _bad("it is not JSON") from error


def check_path(path: str) -> str | None:
    """Say what is wrong with a package path, or None: relative, no ``..``, valid UTF-8."""
    if "\0" in path:
        return "holds a NUL"
    if not _BAD_PARTS.isdisjoint(path.split("/")):
        return "is not a plain relative path"
    try:
        path.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return None


def _entry(row: Any) -> Entry:
    if not isinstance(row, list) or len(row) != 4:
        raise _bad("a row is not [path, mode, size, sha256]")
    path, mode, size, sha256 = row
    if not isinstance(path, str) or (why := check_path(path)):
        raise _bad(f"the path {path!r} {why if isinstance(path, str) else 'is not text'}")
    if not isinstance(mode, str) or mode not in _MODES:
        raise _bad(f"`{path}` has the mode {mode!r}")
    if type(size) is not int or size < 0 or (mode == LINK and size >= SMALL):
        raise _bad(f"`{path}` has the size {size!r}")
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise _bad(f"`{path}` has no sha256")
    return Entry(path, mode, size, sha256)


def _check_tree(entries: tuple[Entry, ...]) -> None:
    """Refuse a path that is there twice, or that is a file and a folder (a link would be written through)."""
    paths = {entry.path for entry in entries}
    if len(paths) != len(entries):
        raise _bad("a path is there twice")
    for path in paths:
        head = path
        while cut := head.rpartition("/")[0]:
            if cut in paths:
                raise _bad(f"`{cut}` is a file and a folder")
            head = cut


def _bad(why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "bad-manifest", f"Manifest cannot be used: {why}.", "Take the snapshot again.", status=422
    )
