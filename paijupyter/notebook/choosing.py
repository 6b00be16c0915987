"""Which cells are chosen (``--cells``), for which role, and in which order the cells of a notebook run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paijupyter.errors import UsageProblem
from paijupyter.notebook.parts import ROLE, SKIP
from paijupyter.notebook.reading import NotebookCell

EVERYTHING = "all"


def chosen(cells: Sequence[NotebookCell], words: Iterable[str], role: str = "") -> set[int]:
    """Return the numbers of the chosen cells.

    Args:
        cells: all code cells.
        words: each a number, a range ``3-5``, ``all``, or a tag; commas may stand between.
        role: also the cells of this role (tag ``pai:role=ROLE``); those of other roles are not meant.

    Raises:
        UsageProblem: a number or tag is none of the notebook.
    """
    found: set[int] = set()
    for word in (part.strip() for text in words for part in text.split(",")):
        if word:
            found |= _meant(word, cells)
    own = {cell.number for cell in cells if f"{ROLE}{role}" in cell.tags}
    others = {cell.number for cell in cells if any(tag.startswith(ROLE) for tag in cell.tags)}
    return (found - (others - own)) | own


def roles(cells: Iterable[NotebookCell]) -> list[str]:
    """Return the roles that cells are tagged with, in the order of the page."""
    tags = (tag for cell in cells for tag in cell.tags if tag.startswith(ROLE))
    return list(dict.fromkeys(tag.removeprefix(ROLE) for tag in tags))


def _meant(word: str, cells: Sequence[NotebookCell]) -> set[int]:
    numbers = {cell.number for cell in cells}
    first, dash, last = word.partition("-")
    if word == EVERYTHING:
        return {cell.number for cell in cells if SKIP not in cell.tags and not _submits(cell)}
    if first.isdigit() and (not dash or last.isdigit()):
        meant = set(range(int(first), int(last or first) + 1)) & numbers
        if not meant or (not dash and int(first) not in numbers):
            listed = ", ".join(map(str, sorted(numbers)[:12]))
            raise UsageProblem(f"Cell {word} is no code cell.", f"The code cells are {listed or 'none'}.")
        return meant
    meant = {cell.number for cell in cells if word in cell.tags or cell.id == word}
    if not meant:
        tags = sorted({tag for cell in cells for tag in cell.tags})
        hint = (
            f"The tags are {', '.join(tags)}."
            if tags
            else "No cell has a tag; numbers do too: --cells 3,5-7."
        )
        raise UsageProblem(f"Tag `{word}` is at no code cell.", hint)
    return meant


def in_run_order(cells: Sequence[NotebookCell]) -> list[NotebookCell]:
    """Return cells as the kernel ran them; one that never ran follows the one above it."""
    keys: dict[int, tuple[int, int]] = {}
    count = 0
    for place, cell in enumerate(cells):
        count = cell.executed if cell.executed is not None else count
        keys[cell.number] = (count, place)
    return sorted(cells, key=lambda cell: keys[cell.number])


def ran_as_on_page(cells: Sequence[NotebookCell]) -> bool:
    """Say whether the execution counts grow down the page, as far as cells ran."""
    counts = [cell.executed for cell in cells if cell.executed is not None]
    return counts == sorted(counts)


def _submits(cell: NotebookCell) -> bool:
    """Say whether a cell only submits a job or looks after one."""
    lines = [line for line in cell.source.splitlines() if line.strip()]
    return lines[0].startswith("%%paijob") or all(line.startswith("%paijob") for line in lines)
