"""Read a notebook file: its cells with number, id, tags, source and execution count.

Format 4 is read as it is, older ones are upgraded by nbformat. Nothing is validated that is not used, so
that a notebook of thousands of cells is read in milliseconds; what is wrong is said with its cell.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paijupyter.errors import Problem, UsageProblem

_OLDEST_AS_IT_IS, _NEWEST = 4, 4  # major formats
_DIRECTIVE = "#| pai "  # The tag as a comment, for tools that hide tags: `#| pai export`.


@dataclass(frozen=True, slots=True)
class NotebookCell:
    """A cell as its file has it.

    Attributes:
        number: place among all cells of the notebook, from 1; what every message calls "cell 3".
        kind: ``code``, ``markdown`` or ``raw``.
        source: its text.
        id: the front end's id, or None: formats before 4.5 have none.
        tags: its tags; a first line ``#| pai export`` counts as the tag ``pai:export``.
        executed: the execution count that the file has kept, or None.
    """

    number: int
    kind: str
    source: str
    id: str | None = None
    tags: tuple[str, ...] = ()
    executed: int | None = None

    @property
    def is_code(self) -> bool:
        """Whether it is a code cell that is not empty."""
        return self.kind == "code" and bool(self.source.strip())


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook as its file has it.

    Attributes:
        path: the file, or None for one that was given as text.
        cells: all cells in the order of the page.
        language: that of its kernel, ``python`` where it says none.
        kernel: name of its kernelspec, or None.
        data: the whole of it in format 4, as JSON has it.
    """

    path: Path | None
    cells: tuple[NotebookCell, ...]
    language: str = "python"
    kernel: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """File name, for messages."""
        return self.path.name if self.path else "notebook"

    @property
    def code(self) -> tuple[NotebookCell, ...]:
        """Code cells that are not empty."""
        return tuple(cell for cell in self.cells if cell.is_code)


def read_notebook(path: Path) -> Notebook:
    """Read a notebook file.

    Raises:
        UsageProblem: it is not there, no notebook, or of a format that nobody here can read; with its cell.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UsageProblem(f"Notebook `{path}` does not exist.") from None
    except OSError as error:
        raise UsageProblem(f"Notebook `{path}` cannot be read: {error.strerror or error}.") from None
    return parse_notebook(content, path)


def parse_notebook(content: bytes, path: Path | None = None) -> Notebook:
    """Read the content of a notebook file.

    Args:
        content: its bytes.
        path: the file, for messages.

    Raises:
        UsageProblem: as :func:`read_notebook`.
    """
    name = path.name if path else "notebook"
    data = _in_format_4(_json(content, name), name)
    given = data.get("cells")
    if not isinstance(given, list):
        raise _refuse(name, "not-a-notebook", f"`{name}` is JSON without cells, so it is no notebook.")
    metadata = _mapping(data.get("metadata"))
    kernelspec, language = _mapping(metadata.get("kernelspec")), _mapping(metadata.get("language_info"))
    spoken = language.get("name") or kernelspec.get("language") or "python"
    kernel = kernelspec.get("name")
    cells = tuple(_cell(each, number, name) for number, each in enumerate(given, 1))
    return Notebook(path, cells, str(spoken).lower(), str(kernel) if kernel else None, data)


def _json(content: bytes, name: str) -> dict[str, Any]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"`{name}` is not UTF-8 at byte {error.start}, so it is no notebook."
        raise _refuse(name, "not-a-notebook", message) from None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        merged = any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in text.splitlines())
        hint = "It has the marks of a merge conflict; settle them, for example with nbdime." if merged else ""
        message = f"`{name}` is not valid JSON, so it is no notebook: {error.msg}."
        raise _refuse(name, "not-a-notebook", message, hint, line=error.lineno) from None
    except RecursionError:
        raise _refuse(name, "not-a-notebook", f"`{name}` is nested too deeply for a notebook.") from None
    if not isinstance(data, dict):
        raise _refuse(name, "not-a-notebook", f"`{name}` is JSON without cells, so it is no notebook.")
    return data


def _in_format_4(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a notebook in format 4, upgraded where it is older."""
    major = data.get("nbformat", _NEWEST if "cells" in data else 3 if "worksheets" in data else None)
    if major is None:
        return data  # Without cells; that is said next.
    if not isinstance(major, int) or major < 1:
        raise _refuse(
            name, "notebook-format", f"`{name}` has the notebook format `{str(major)[:20]}`, which is none."
        )
    if major > _NEWEST:
        raise _refuse(
            name,
            "notebook-format",
            f"`{name}` has notebook format {major}; this version reads formats up to {_NEWEST}.",
            "Save it as format 4 with the Jupyter that wrote it.",
        )
    if major >= _OLDEST_AS_IT_IS:
        return data
    return _upgraded(data, major, name)


def _upgraded(data: dict[str, Any], major: int, name: str) -> dict[str, Any]:
    import nbformat

    try:
        return dict(nbformat.convert(nbformat.from_dict(data), 4))
    except Exception as error:  # What a damaged old notebook raises there is anything.
        message = f"`{name}` of notebook format {major} cannot be upgraded: {type(error).__name__}: {error}."
        hint = "Open it in Jupyter and save it, which upgrades it."
        raise _refuse(name, "notebook-format", message, hint) from error


def _cell(data: object, number: int, name: str) -> NotebookCell:
    if not isinstance(data, dict) or "cell_type" not in data:
        raise _refuse(name, "not-a-cell", f"Cell {number} of `{name}` is no cell.", cell=number)
    source = data.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise _refuse(
            name, "not-a-cell", f"Cell {number} of `{name}` has a source that is no text.", cell=number
        )
    count, cell_id = data.get("execution_count"), data.get("id")
    return NotebookCell(
        number,
        str(data["cell_type"]),
        source,
        cell_id if isinstance(cell_id, str) else None,
        tags_of(data, source),
        count if isinstance(count, int) else None,
    )


def tags_of(data: Mapping[str, Any], source: str) -> tuple[str, ...]:
    """Return the tags of a cell: those of its metadata, and those that its first lines name in comments."""
    given = _mapping(data.get("metadata")).get("tags")
    tags = [tag for tag in given if isinstance(tag, str)] if isinstance(given, list) else []
    for line in source.split("\n"):
        if not line.startswith("#"):
            break
        if line.startswith(_DIRECTIVE):
            tags += [f"pai:{word}" for word in line.removeprefix(_DIRECTIVE).split()]
    return tuple(dict.fromkeys(tags))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _refuse(
    name: str, code: str, message: str, hint: str = "", line: int | None = None, cell: int | None = None
) -> UsageProblem:
    problem = Problem("error", code, message, line=line, file=name, cell=cell, hint=hint)
    said = f"Line {line}: {message}" if line else message
    return UsageProblem(said, hint, [problem])
