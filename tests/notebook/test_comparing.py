"""What changed between two versions of a notebook, cell by cell."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paijupyter.notebook.comparing import cell_hashes, compare_cells
from paijupyter.notebook.reading import Notebook, NotebookCell


def notebook(*cells: tuple[str | None, str]) -> Notebook:
    made = (NotebookCell(number, "code", source, ident) for number, (ident, source) in enumerate(cells, 1))
    return Notebook(None, tuple(made))


def changes(old: Notebook, new: Notebook) -> list[tuple[str, int | None, int | None]]:
    return [(each["change"], each["before"], each["after"]) for each in compare_cells(old, new)]


def test_cells_are_the_same_by_their_id() -> None:
    old = notebook(("a", "x = 1"), ("b", "y = 2"), ("c", "z = 3"))
    new = notebook(("b", "y = 2"), ("a", "x = 7"), ("d", "new"))
    moved = ("moved", 2, 1)  # two cells changed places: one of them has moved
    assert changes(old, new) == [moved, ("changed", 1, 2), ("added", None, 3), ("removed", 3, None)]
    changed = compare_cells(old, new)[1]
    assert changed["moved"] is False and changed["diff"][1:] == ["-x = 1", "+x = 7"]


def test_a_cell_that_only_moved() -> None:
    old = notebook(("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"))
    new = notebook(("d", "4"), ("a", "1"), ("b", "2"), ("c", "3"))
    assert changes(old, new) == [("moved", 4, 1)]


def test_cells_without_ids_are_found_by_what_is_around_them() -> None:
    old = notebook((None, "a"), (None, "b"), (None, "c"))
    new = notebook((None, "a"), (None, "B"), (None, "c"), (None, "d"))
    assert changes(old, new) == [("changed", 2, 2), ("added", None, 4)]


CELLS = st.lists(st.tuples(st.none(), st.sampled_from("abcd")), max_size=8)


@given(CELLS, CELLS)
def test_every_cell_is_accounted_for_once(old: list[tuple[None, str]], new: list[tuple[None, str]]) -> None:
    first, second = notebook(*old), notebook(*new)
    found = compare_cells(first, second)
    assert len([each for each in found if each["change"] == "added"]) - len(
        [each for each in found if each["change"] == "removed"]
    ) == len(new) - len(old)
    assert compare_cells(first, first) == []
    equal = [each["hash"] for each in cell_hashes(first)] == [each["hash"] for each in cell_hashes(second)]
    assert (found == []) == equal
