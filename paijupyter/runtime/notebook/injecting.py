"""Parameters go into a notebook as papermill's do: a cell of plain assignments after the tagged one.

Values come typed, from JSON; what is written is the ``repr`` of such a value, so a value is never code.
"""

import ast
import keyword

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Set

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
        "source": "# Parameters\n" + "".join(assignments(as_declared(parameters, cells))),
    }
    former = tagged(cells, INJECTED)
    if former is not None:
        cells[former] = cell
        return former
    declaring = tagged(cells, DECLARING)
    place = 0 if declaring is None else declaring + 1
    cells.insert(place, cell)
    return place


def as_declared(parameters: "Mapping[str, Any]", cells: "List[Cell]") -> "Dict[str, Any]":
    """Return the parameters, whole numbers as floats where a float is declared: documents know one kind."""
    place = tagged(cells, DECLARING)
    floats = _floats(cells[place].get("source") or "") if place is not None else set()
    return {
        name: float(value) if name in floats and type(value) is int else value
        for name, value in parameters.items()
    }


def _floats(source: str) -> "Set[str]":
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return set()
    found = set()
    for each in body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            if isinstance(each.annotation, ast.Name) and each.annotation.id == "float":
                found.add(each.target.id)
        elif isinstance(each, ast.Assign) and isinstance(getattr(each.value, "value", None), float):
            found.update(target.id for target in each.targets if isinstance(target, ast.Name))
    return found


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
