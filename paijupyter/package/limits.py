"""How much a package may hold. Data does not belong in it, and the plan says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paijupyter.errors import Problem

_NAMED = 3
_MOST = 0.9


@dataclass(frozen=True, slots=True)
class Limits:
    """The most a package may hold: a number of files, and bytes in total."""

    files: int = 50_000
    bytes: int = 2 << 30

    def hold(self, files: int, size: int) -> bool:
        """Say whether a package may have so many files and bytes."""
        return files <= self.files and size <= self.bytes

    def problem(self, files: Sequence[tuple[str, int]], complete: bool) -> Problem:
        """Return the problem of a selection that is too large, naming what is largest in it.

        Args:
            files: path and size in bytes of each.
            complete: False if the walk was given up, so that there is more than ``files`` says.
        """
        total = sum(each[1] for each in files)
        if len(files) > self.files:
            more = "" if complete else "more than "
            what = f"{more}{len(files):,} files, and {self.files:,} are the limit"
            named = [f"`{path}` ({n:,} files)" for path, n in _largest([(path, 1) for path, _ in files])]
        else:
            what = f"{readable_size(total)}, and {readable_size(self.bytes)} are the limit"
            named = [f"`{path}` ({readable_size(n)})" for path, n in _largest(files)]
        return Problem(
            "error",
            "package-too-large",
            f"Package would hold {what}.",
            hint=f"Largest: {', '.join(named)}. Name in `.paiignore` what the task does not need.",
        )


def readable_size(size: int) -> str:
    """Return a number of bytes as screens show it: ``212 kB``, ``1.2 GB``."""
    if size < 1000:
        return f"{size} B"
    number, units = float(size), iter(("kB", "MB", "GB", "TB", "PB"))
    unit = ""
    while number >= 999.5 or not unit:
        number, unit = number / 1000, next(units)
    return f"{number:.3g} {unit}" if number < 99.5 else f"{number:.0f} {unit}"


def _largest(files: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The heaviest folders and files, each as deep as nearly all of its weight lies in one place."""
    children: dict[str, Counter[str]] = {}
    for path, weight in files:
        parent = ""
        for end in [i + 1 for i, char in enumerate(path) if char == "/"]:
            children.setdefault(parent, Counter())[path[:end]] += weight
            parent = path[:end]
        children.setdefault(parent, Counter())[path] += weight
    top = children.get("", Counter()).most_common(_NAMED)
    return [_descend(path, weight, children) for path, weight in top]


def _descend(path: str, weight: int, children: Mapping[str, Counter[str]]) -> tuple[str, int]:
    while path in children:
        child, part = children[path].most_common(1)[0]
        if part < weight * _MOST:
            break
        path, weight = child, part
    return path, weight
