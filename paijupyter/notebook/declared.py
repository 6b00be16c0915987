"""Parameters that a notebook declares, by papermill's convention: assignments in a cell tagged `parameters`.

The type of each is that of its annotation, else of its default. A value is fitted to it before anything is
submitted, so that a mistake is told with the parameter's name and cell, and not by a traceback in the task.
"""

from __future__ import annotations

import ast
import io
import json
import keyword
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from paijupyter.errors import Problem, UsageProblem
from paijupyter.notebook.reading import Notebook, NotebookCell
from paijupyter.protocol.parameters import typed_value

TAG, INJECTED = "parameters", "injected-parameters"
_TYPES = ("int", "float", "str", "bool", "list", "dict")
_NAMES = {"tuple": "list", "List": "list", "Sequence": "list", "Dict": "dict", "Mapping": "dict"}
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Declared:
    """A parameter that a notebook declares.

    Attributes:
        name: the variable.
        type: ``int float str bool list dict``, or "" where nothing tells it.
        optional: whether ``null`` is a value too.
        default: its default as a JSON value, None where it is none.
        source: its default as it is written.
        help: the comment on its line.
        cell: number of the cell.
        line: line in the cell.
    """

    name: str
    type: str = ""
    optional: bool = False
    default: Any = None
    source: str = ""
    help: str = ""
    cell: int = 0
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as the API shows it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def declaring_cell(notebook: Notebook) -> NotebookCell | None:
    """Return the first code cell with the tag ``parameters``."""
    return next((cell for cell in notebook.cells if cell.kind == "code" and TAG in cell.tags), None)


def declared(notebook: Notebook) -> list[Declared]:
    """Return what a notebook declares, in its order; nothing where the cell is no Python."""
    cell = declaring_cell(notebook)
    if cell is None or notebook.language != "python":
        return []
    try:
        tree = ast.parse(cell.source)
    except (SyntaxError, ValueError):
        return []
    comments = _comments(cell.source)
    found: dict[str, Declared] = {}
    for statement in tree.body:
        for name, annotation, value in _assigned(statement):
            kind, optional = _type(annotation, value)
            default = _default(value)
            source = ast.unparse(value) if value is not None else ""
            note = comments.get(statement.end_lineno or statement.lineno, "")
            found[name] = Declared(name, kind, optional, default, source, note, cell.number, statement.lineno)
    return list(found.values())


def fitted(notebook: Notebook, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as the parameters of a notebook want them; those that it does not declare stay.

    Args:
        notebook: the notebook.
        values: by name; a text is as somebody has typed it.

    Raises:
        UsageProblem: a value does not fit; all of them, each with its cell.
    """
    known = {each.name: each for each in declared(notebook)}
    found, problems = dict[str, Any](), list[Problem]()
    for name, value in values.items():
        try:
            found[name] = fit(known[name], value) if name in known else _as_given(value)
        except UsageProblem as error:
            problems += error.problems
    if problems:
        raise UsageProblem(" ".join(each.message for each in problems), problems[0].hint, problems)
    return found


def fit(parameter: Declared, value: Any) -> Any:
    """Return a value as a parameter wants it.

    >>> fit(Declared("lr", "float"), "1"), fit(Declared("name", "str"), "007")
    (1.0, '007')

    Raises:
        UsageProblem: it does not fit.
    """
    typed = _as_given(value)
    if typed is None or (parameter.optional and value == "None"):
        if parameter.optional or not parameter.type:
            return None
    elif not parameter.type:
        return typed
    elif parameter.type == "str":
        return typed if isinstance(typed, str) else value if isinstance(value, str) else _text(typed)
    elif parameter.type == "bool":
        if isinstance(typed, bool) or value in ("True", "False"):
            return typed if isinstance(typed, bool) else value == "True"
    elif parameter.type == "float":
        if isinstance(typed, (int, float)) and not isinstance(typed, bool):
            return float(typed)
    elif parameter.type == "int":
        if isinstance(typed, (int, float)) and not isinstance(typed, bool) and float(typed).is_integer():
            return int(typed)
    elif isinstance(typed, list if parameter.type == "list" else dict):
        return typed
    raise _misfit(parameter, value)


def problems_of(notebook: Notebook, values: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with typed values for a notebook: misfits, and names that it does not declare."""
    cell, known = declaring_cell(notebook), {each.name: each for each in declared(notebook)}
    found: list[Problem] = []
    for name, value in values.items():
        if not name.isidentifier() or keyword.iskeyword(name):
            message = f"Parameter `{name}` cannot be a variable, so `{notebook.name}` does not get it."
            found.append(Problem("warning", "parameter-name", message, f"/parameters/{name}"))
        elif name in known:
            try:
                fit(known[name], value)
            except UsageProblem as error:
                found += error.problems
        elif cell is not None:
            found.append(_unknown(notebook, cell, name, known))
    if values and cell is None and not _is_injected(notebook):
        message = f"`{notebook.name}` has no cell with the tag `parameters`, so the parameters come first."
        hint = "Give the cell that assigns their defaults the tag `parameters`."
        found.append(Problem("warning", "no-parameters-cell", message, file=notebook.name, hint=hint))
    return found


def _is_injected(notebook: Notebook) -> bool:
    return any(INJECTED in cell.tags for cell in notebook.cells)


def _unknown(notebook: Notebook, cell: NotebookCell, name: str, known: Iterable[str]) -> Problem:
    names = list(known)
    near = get_close_matches(name, names, 1)
    hint = f"`{near[0]}` is near." if near else f"It declares {_listed(names)}." if names else ""
    message = f"Parameter `{name}` is not declared in `{notebook.name}`; it is assigned all the same."
    return Problem(
        "warning",
        "unknown-parameter",
        message,
        f"/parameters/{name}",
        file=notebook.name,
        cell=cell.number,
        hint=hint,
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _misfit(parameter: Declared, value: Any) -> UsageProblem:
    shown = value if isinstance(value, str) else json.dumps(value, default=str)
    shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
    wanted = f"Parameter `{parameter.name}` of cell {parameter.cell} is {_a(parameter.type)}"
    message = f"{wanted}, and `{shown}` is none."
    hint = f"Its default is `{parameter.source}`." if parameter.source else ""
    path = f"/parameters/{parameter.name}"
    problem = Problem(
        "error", "parameter-type", message, path, line=parameter.line, cell=parameter.cell, hint=hint
    )
    return UsageProblem(message, hint, [problem])


def _a(kind: str) -> str:
    return f"an {kind}" if kind == "int" else f"a {kind}"


def _as_given(value: Any) -> Any:
    return typed_value(value) if isinstance(value, str) else value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _assigned(statement: ast.stmt) -> Iterable[tuple[str, ast.expr | None, ast.expr | None]]:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id, statement.annotation, statement.value
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Name):
                yield target.id, None, statement.value


def _type(annotation: ast.expr | None, value: ast.expr | None) -> tuple[str, bool]:
    """Return a type and whether None is a value too."""
    if annotation is not None:
        return _annotated(annotation)
    default = _default(value)
    for kind, python in (
        ("bool", bool),
        ("int", int),
        ("float", float),
        ("str", str),
        ("list", list),
        ("dict", dict),
    ):
        if isinstance(default, python):
            return kind, False
    return "", True


def _annotated(node: ast.expr) -> tuple[str, bool]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _annotated(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return "", True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [side for side in (node.left, node.right) if not _is_none(side)]
        return (_annotated(sides[0])[0], True) if len(sides) == 1 else ("", True)
    if isinstance(node, ast.Subscript):
        outer = _name(node.value)
        if outer == "Optional":
            return _annotated(node.slice)[0], True
        return _NAMES.get(outer, outer if outer in ("list", "dict") else ""), False
    name = _name(node)
    kind = _NAMES.get(name, name)
    return (kind, False) if kind in _TYPES else ("", True)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _default(value: ast.expr | None) -> Any:
    """Return a default as a JSON value; None where it is no plain value."""
    if value is None:
        return None
    try:
        found = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    found = list(found) if isinstance(found, tuple) else found
    try:
        json.dumps(found)
    except (TypeError, ValueError):
        return None
    return found


def _comments(source: str) -> dict[int, str]:
    found: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string.lstrip("# ").strip()
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found
