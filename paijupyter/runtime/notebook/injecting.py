"""Parameters go into a notebook as papermill's do: a cell of plain assignments after the tagged one.

Values come typed, from JSON; what is written is the ``repr`` of such a value, so a value is never code.
"""

import keyword

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional

    Cell = Dict[str, Any]

DECLARING, INJECTED = "parameters", "injected-parameters"


def inject(cells: "List[Cell]", parameters: "Mapping[str, Any]") -> "Optional[int]":
    """Put the cell in; return its index, None if there is nothing to put in.

    It replaces an injected one, else follows the first cell with the tag ``parameters``, else comes first.
    """
    if not parameters:
        return None
    cell: "Cell" = {
        "cell_type": "code",
        "execution_count": None,
        "id": "injected-parameters",
        "metadata": {"tags": [INJECTED]},
        "outputs": [],
        "source": "# Parameters\n" + "".join(assignments(parameters)),
    }
    former = tagged(cells, INJECTED)
    if former is not None:
        cells[former] = cell
        return former
    declaring = tagged(cells, DECLARING)
    place = 0 if declaring is None else declaring + 1
    cells.insert(place, cell)
    return place


def tagged(cells: "List[Cell]", tag: str) -> "Optional[int]":
    """Return the index of the first code cell with a tag."""
    for index, cell in enumerate(cells):
        if cell.get("cell_type") == "code" and tag in tags(cell):
            return index
    return None


def tags(cell: "Cell") -> "List[str]":
    """Return the tags of a cell."""
    found = (cell.get("metadata") or {}).get("tags")
    return [str(tag) for tag in found] if isinstance(found, list) else []


def assignments(parameters: "Mapping[str, Any]") -> "List[str]":
    """Return one line per parameter whose name Python can bind."""
    names = [name for name in parameters if name.isidentifier() and not keyword.iskeyword(name)]
    return ["%s = %s\n" % (name, literal(parameters[name])) for name in names]


def literal(value: "Any") -> str:
    """Return a JSON value as a Python expression.

    >>> literal({"a": [1, None, True], "b": float("inf")})
    "{'a': [1, None, True], 'b': float('inf')}"
    """
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "float(%r)" % str(value)
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%r: %s" % (str(key), literal(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(literal, value))
    return repr(value)
