"""What differs between two versions of a notebook, cell by cell."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from paijupyter.notebook.reading import Notebook, NotebookCell

_LINES = 400  # of one difference


def cell_hashes(notebook: Notebook) -> list[dict[str, Any]]:
    """Return ``{number, id, kind, hash}`` of every cell; equal sources have equal hashes."""
    return [
        {"number": cell.number, "id": cell.id, "kind": cell.kind, "hash": source_digest(cell.source)}
        for cell in notebook.cells
    ]


def source_digest(source: str) -> str:
    """Return the hash of a cell's source."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()


def compare_cells(old: Notebook, new: Notebook) -> list[dict[str, Any]]:
    """Return the cells that were added, removed, changed or moved, in the order of the new page.

    A cell is the same as another one by its id; without ids, by its place between cells that are equal.

    Returns:
        Objects of ``change``, ``before`` and ``after`` (numbers of the cell, or None), ``kind``, ``id`` and
        ``diff`` (lines of a unified difference).
    """
    pairs = _pairs(old.cells, new.cells)
    moved = _moved([pair for pair in pairs if pair[0] and pair[1]])
    return [
        _difference(before, after, (before, after) in moved)
        for before, after in pairs
        if before is None
        or after is None
        or before.source != after.source
        or before.kind != after.kind
        or (before, after) in moved
    ]


Pair = tuple[NotebookCell | None, NotebookCell | None]


def _pairs(old: Sequence[NotebookCell], new: Sequence[NotebookCell]) -> list[Pair]:
    known = {cell.id: cell for cell in old if cell.id} if _unique(old) and _unique(new) else {}
    found: dict[int, NotebookCell] = {}
    for cell in new:
        if cell.id and cell.id in known:
            found[cell.number] = known.pop(cell.id)
    taken = {cell.number for cell in found.values()}
    rest_old = [cell for cell in old if cell.number not in taken]
    rest_new = [cell for cell in new if cell.number not in found]
    found |= _by_place(rest_old, rest_new)
    taken = {cell.number for cell in found.values()}
    pairs: list[Pair] = [(found.get(cell.number), cell) for cell in new]
    return [*pairs, *((cell, None) for cell in old if cell.number not in taken)]


def _unique(cells: Iterable[NotebookCell]) -> bool:
    return all(count == 1 for count in Counter(cell.id for cell in cells if cell.id).values())


def _by_place(old: Sequence[NotebookCell], new: Sequence[NotebookCell]) -> dict[int, NotebookCell]:
    matcher = difflib.SequenceMatcher(
        None, [cell.source for cell in old], [cell.source for cell in new], autojunk=False
    )
    found: dict[int, NotebookCell] = {}
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            pairs = zip(old[first:last], new[begin:end], strict=False)
            # Cells that have another id on both sides are other cells.
            found.update((b.number, a) for a, b in pairs if kind == "equal" or not (a.id and b.id))
    return found


def _moved(pairs: Sequence[Pair]) -> set[Pair]:
    """Return the pairs that are out of order: all but the longest run of pairs that keep theirs."""
    numbers = [before.number for before, _ in pairs if before]
    kept = _longest_growing(numbers)
    return {pair for place, pair in enumerate(pairs) if place not in kept}


def _longest_growing(numbers: Sequence[int]) -> set[int]:
    """Return the places of a longest growing part of a sequence."""
    from bisect import bisect_left

    ends: list[int] = []
    places: list[int] = []
    former: list[int | None] = []
    for place, number in enumerate(numbers):
        length = bisect_left(ends, number)
        former.append(places[length - 1] if length else None)
        ends[length : length + 1] = [number]
        places[length : length + 1] = [place]
    found: set[int] = set()
    at = places[-1] if places else None
    while at is not None:
        found.add(at)
        at = former[at]
    return found


def _difference(before: NotebookCell | None, after: NotebookCell | None, moved: bool) -> dict[str, Any]:
    cell = after or before
    changed = before and after and (before.source != after.source or before.kind != after.kind)
    change = "added" if before is None else "removed" if after is None else "changed" if changed else "moved"
    return {
        "change": change,
        "before": before.number if before else None,
        "after": after.number if after else None,
        "kind": cell.kind if cell else "",
        "id": cell.id if cell else None,
        "moved": moved,
        "diff": []
        if change == "moved"
        else lines_of(before.source if before else "", after.source if after else ""),
    }


def lines_of(old: str, new: str) -> list[str]:
    """Return the lines of a unified difference, without the lines that name files."""
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    lines = list(found)[2 : _LINES + 3]
    return lines if len(lines) <= _LINES else [*lines[:_LINES], "…"]
