"""The first half of a snapshot: learn the hash of every selected file, reading only what changed.

If most of the small files have to be read anyway, their bytes go into a pack in the same pass.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from paijupyter.errors import Problem
from paijupyter.package.manifest import FILE, LINK, SMALL, Entry, Manifest
from paijupyter.package.parallel import in_order
from paijupyter.package.problems import broken_notebook, changing, unreadable
from paijupyter.package.progress import Meter
from paijupyter.package.reading import FileChanging, Reading, is_notebook, read_large, read_whole
from paijupyter.package.selection import Selected, Selection
from paijupyter.package.staging import Staging
from paijupyter.package.stat_cache import Row, RowTuple, is_settled

_BROKEN = Row._fields.index("broken")
_BATCH_FILES = 64
_BATCH_BYTES = 4 << 20

Outcome = Reading | Problem | None
"""What came of reading a file: its bytes, a problem, or None if it has vanished."""


@dataclass
class Contents:
    """The files of a package and what is known of them.

    Attributes:
        root: the folder.
        small: what goes into the pack if it turns out small: files on disk, and those of ``given``.
        large: the other files.
        given: contents that are no files on disk: generated files and targets of links.
        fresh: what the next look may believe of the files that were read.
        entries: the rows of the manifest.
        problems: what stands against it.
        pack: a staged file with the bytes of the pack, if they were read in passing.
        blobs: staged large files by hash, likewise.
    """

    root: str
    small: list[Selected] = field(default_factory=list)
    large: list[Selected] = field(default_factory=list)
    given: dict[str, Reading] = field(default_factory=dict)
    fresh: dict[str, Row] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    pack: Path | None = None
    blobs: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def of(cls, selection: Selection, extra: Mapping[str, bytes]) -> Contents:
        """Sort what was selected; a generated file takes the place of one on disk."""
        contents = cls(selection.real_root)
        links = {path: os.fsencode(target) for path, target in selection.links.items()}
        for path, data in {**links, **extra}.items():
            mode = LINK if path in links and path not in extra else FILE
            file = Selected(path, mode, len(data), 0, 0, 0)
            contents.given[path] = Reading(file, data, hashlib.sha256(data).digest())
        small, large = contents.small, contents.large
        for file in selection.files:
            (small if file.size < SMALL or is_notebook(file) else large).append(file)
        if contents.given:
            on_disk = [file for file in small if file.path not in contents.given]
            contents.small = sorted(on_disk + [reading.file for reading in contents.given.values()])
            contents.large = [file for file in large if file.path not in contents.given]
        return contents

    def read_small(self, pool: ThreadPoolExecutor, files: Iterable[Selected]) -> Iterator[Outcome]:
        """Read small files, several at once, and yield what came of it in their order."""
        read = partial(_read_batch, self.root, self.given)
        for outcomes in in_order(pool, read, _batches(files)):
            yield from outcomes


class Moved(Exception):
    """A file is no longer what it was a moment ago, so the folder has to be looked at again."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Identification:
    """Finds the hash of every file.

    Args:
        contents: of one selection; what is found is filled in.
        read_at_ns: a time before the selection was made.
        pool: threads to read with.
        staging: gets what is best copied in passing.
        meter: is told.
    """

    def __init__(
        self, contents: Contents, read_at_ns: int, pool: ThreadPoolExecutor, staging: Staging, meter: Meter
    ) -> None:
        self._contents = contents
        self._read_at_ns = read_at_ns
        self._pool = pool
        self._staging = staging
        self._meter = meter
        self._given_up = False

    def run(self, known: Mapping[str, RowTuple]) -> Manifest:
        """Return the manifest; rows of the last look are believed of files whose numbers are the same.

        Raises:
            Moved: if a large file became a small one on the way.
        """
        contents = self._contents
        believed, new_small = _believe(contents.small, known)
        contents.entries, new_large = _believe(contents.large, known)
        unread = sum(file.size for file in new_small)
        if unread * 2 > sum(file.size for file in contents.small):
            self._expect(contents.small, new_large)
            self._pack(contents.small)
        else:
            self._expect(new_small, new_large)
            contents.entries += believed
            contents.problems += [broken_notebook(e.path) for e in believed if known[e.path][_BROKEN]]
            for outcome in contents.read_small(self._pool, new_small):
                self._note(outcome)
        try:
            for large in in_order(self._pool, self._read_large, new_large):
                self._note_large(large)
        finally:
            self._given_up = True  # after an interrupt no thread goes on with gigabytes
        return Manifest(contents.entries)

    def _expect(self, *lists: Iterable[Selected]) -> None:
        self._meter.expect(sum(file.size for files in lists for file in files))

    def _pack(self, files: Iterable[Selected]) -> None:
        """Read the small files and write the pack in the same pass."""
        pack, self._contents.pack = self._staging.file()
        with pack:
            for outcome in self._contents.read_small(self._pool, files):
                reading = self._note(outcome)
                if reading is None:
                    continue
                if reading.is_small:
                    pack.write(reading.data)
                else:
                    blob, path = self._staging.file()
                    with blob:
                        blob.write(reading.data)
                    self._contents.blobs[reading.digest.hex()] = path

    def _note(self, outcome: Outcome) -> Reading | None:
        contents = self._contents
        if not isinstance(outcome, Reading):
            if outcome:
                contents.problems.append(outcome)
            return None
        file, data, digest, broken = outcome
        contents.entries.append(Entry(file.path, file.mode, len(data), digest.hex()))
        self._remember(file, len(data), digest, broken)
        if broken:
            contents.problems.append(broken_notebook(file.path))
        self._meter.advance(file.size)
        return outcome

    def _remember(self, file: Selected, packed_size: int, digest: bytes, broken: bool = False) -> None:
        _, _, size, mtime_ns, ctime_ns, inode = file
        if file.path not in self._contents.given and is_settled(mtime_ns, ctime_ns, self._read_at_ns):
            row = Row(size, mtime_ns, ctime_ns, inode, packed_size, broken, digest)
            self._contents.fresh[file.path] = row

    def _read_large(self, file: Selected) -> tuple[Selected, bytes, Path | None] | Problem | None:
        with ExitStack() as stack:
            path, copy = None, None
            if self._staging.copies_large:
                copy, path = self._staging.file()
                stack.enter_context(copy)
            try:
                found, digest = read_large(self._contents.root, file, partial(self._write, copy))
            except (FileChanging, OSError) as error:
                return _problem(file.path, error)
        return found, digest, path

    def _write(self, copy: BinaryIO | None, chunk: bytes) -> None:
        if self._given_up:
            raise FileChanging
        if copy and chunk:
            copy.write(chunk)
        elif copy:  # the reading begins again
            copy.seek(0)
            copy.truncate()

    def _note_large(self, outcome: tuple[Selected, bytes, Path | None] | Problem | None) -> None:
        contents = self._contents
        if not isinstance(outcome, tuple):
            contents.problems += [outcome] if outcome else []
            return
        file, digest, path = outcome
        if file.size < SMALL:
            raise Moved(file.path)
        contents.entries.append(Entry(file.path, file.mode, file.size, digest.hex()))
        self._remember(file, file.size, digest)
        if path:
            contents.blobs[digest.hex()] = path
        self._meter.advance(file.size)


def _believe(files: Iterable[Selected], known: Mapping[str, RowTuple]) -> tuple[list[Entry], list[Selected]]:
    """Return the entries of the files that are as they were, and the files that have to be read."""
    old: list[Entry] = []
    new: list[Selected] = []
    for file in files:
        row = known.get(file[0])
        if row is not None and row[:4] == file[2:]:
            old.append(tuple.__new__(Entry, (file[0], file[1], row[4], row[6].hex())))
        else:
            new.append(file)
    return old, new


def _batches(files: Iterable[Selected]) -> Iterator[list[Selected]]:
    """Cut a list of files into pieces that are worth the hand-over to a thread."""
    batch: list[Selected] = []
    size = 0
    for file in files:
        batch.append(file)
        size += file.size
        if len(batch) == _BATCH_FILES or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_batch(root: str, given: Mapping[str, Reading], batch: list[Selected]) -> list[Outcome]:
    return [given.get(file.path) or _read_one(root, file) for file in batch]


def _read_one(root: str, file: Selected) -> Outcome:
    try:
        return read_whole(root, file)
    except (FileChanging, OSError) as error:
        return _problem(file.path, error)


def _problem(path: str, error: FileChanging | OSError) -> Problem | None:
    if isinstance(error, FileNotFoundError):
        return None  # it was removed since the walk, so it does not belong to the folder
    return changing(path) if isinstance(error, FileChanging) else unreadable(path, error)
