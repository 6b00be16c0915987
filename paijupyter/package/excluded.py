"""What a package leaves out, folded so that a person can read it: a line per folder, not one per file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

_ROWS = 100
_MEASURED_IN_ONE = 5_000
_MEASURED_IN_ALL = 20_000


@dataclass(frozen=True, slots=True)
class Excluded:
    """Something that is left out.

    Attributes:
        path: in the package; a folder ends with ``/``, several files of a folder are ``folder/*``.
        reason: the ignore file that says so (``.gitignore``), or a phrase (``virtual environment``).
        size: bytes.
        count: how many files or folders this line stands for.
        at_least: there is more than ``size`` says; it was not worth measuring to the end.
        hint: how to have it in the package all the same, or "".
    """

    path: str
    reason: str
    size: int
    count: int = 1
    at_least: bool = False
    hint: str = ""


@dataclass(slots=True)
class _Line:
    path: str
    folded: str
    reason: str
    hint: str
    size: int = 0
    count: int = 0
    at_least: bool = False

    def row(self) -> Excluded:
        path = self.path if self.count == 1 else self.folded
        return Excluded(path, self.reason, self.size, self.count, self.at_least, self.hint)


class ExcludedList:
    """Collects what is left out of the package of one folder."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._lines: dict[tuple[str, str], _Line] = {}
        self._budget = _MEASURED_IN_ALL

    def add_file(self, path: str, reason: str, size: int, *, folded: str = "", hint: str = "") -> None:
        """Add a file; those with the same ``folded`` text and reason share a line."""
        self._line(path, folded or path, reason, hint, size)

    def add_folder(
        self, path: str, reason: str, *, folded: str = "", hint: str = "", worth_measuring: bool = True
    ) -> None:
        """Add a folder, ``path`` ending with ``/``; its size is looked up unless it is only a cache."""
        size, at_least = self._measure(path) if worth_measuring else (0, True)
        self._line(path, folded or path, reason, hint, size).at_least |= at_least

    def rows(self) -> list[Excluded]:
        """Return the lines, the largest first; what is beyond a hundred is folded into the last."""
        rows = sorted((line.row() for line in self._lines.values()), key=lambda row: (-row.size, row.path))
        if len(rows) <= _ROWS:
            return rows
        rest = rows[_ROWS - 1 :]
        size, count = sum(row.size for row in rest), sum(row.count for row in rest)
        return [*rows[: _ROWS - 1], Excluded("…", "for the same reasons", size, count, True)]

    def _line(self, path: str, folded: str, reason: str, hint: str, size: int) -> _Line:
        line = self._lines.setdefault((folded, reason), _Line(path, folded, reason, hint))
        line.count += 1
        line.size += size
        return line

    def _measure(self, path: str) -> tuple[int, bool]:
        """Add up the sizes below a folder until it is not worth going on."""
        sizes = _sizes_below(os.path.join(self._root, path))
        some = list(islice(sizes, min(_MEASURED_IN_ONE, self._budget)))
        self._budget -= len(some)
        return sum(some), next(sizes, None) is not None


def _sizes_below(folder: str) -> Iterator[int]:
    """Yield the size of every entry below a folder, 0 for folders."""
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        yield 0
                    else:
                        yield entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
