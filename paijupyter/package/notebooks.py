"""Notebooks travel without what running them leaves behind, so running a cell changes no package hash.

Left out: outputs, execution counts, widget state, times and other traces of execution, the state of output
areas, and the exact version of the language. What a person wrote (sources, attachments, tags) stays.
"""

from __future__ import annotations

import json
from typing import Any

_CELL_TRACES = (
    "ExecuteTime",
    "collapsed",
    "execution",
    "executionInfo",
    "outputId",
    "papermill",
    "scrolled",
    "trusted",
)
_JUPYTER_TRACES = ("is_executing", "outputs_hidden")
_NOTEBOOK_TRACES = ("papermill", "signature", "widgets")


def normalise(data: bytes) -> bytes | None:
    """Return a notebook's bytes in their canonical form, or None if the bytes are no notebook.

    The result is deterministic, and normalising it again changes nothing.
    """
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(notebook, dict):
        return None
    cells = _cells(notebook)
    if cells is None:
        return None
    for cell in cells:
        _strip_cell(cell)
    _strip_notebook(notebook)
    try:
        # Plain ASCII: a lone surrogate in a source, which JSON can hold and UTF-8 cannot, travels too.
        return json.dumps(notebook, sort_keys=True, indent=1).encode() + b"\n"
    except RecursionError:
        return None


def _cells(notebook: dict[str, Any]) -> list[dict[str, Any]] | None:
    """All cells, of format 4 or of the worksheets of format 3; None if this is another kind of JSON."""
    holders = notebook["worksheets"] if isinstance(notebook.get("worksheets"), list) else [notebook]
    cells: list[dict[str, Any]] = []
    for holder in holders:
        found = holder.get("cells") if isinstance(holder, dict) else None
        if not isinstance(found, list) or not all(isinstance(cell, dict) for cell in found):
            return None
        cells += found
    return cells


def _strip_cell(cell: dict[str, Any]) -> None:
    if cell.get("cell_type") == "code":
        cell["outputs"] = []
        if "prompt_number" in cell:  # format 3
            del cell["prompt_number"]
        else:
            cell["execution_count"] = None
    metadata = cell.get("metadata")
    if not isinstance(metadata, dict):
        return
    _drop(metadata, _CELL_TRACES)
    jupyter = metadata.get("jupyter")
    if isinstance(jupyter, dict):
        _drop(jupyter, _JUPYTER_TRACES)
        if not jupyter:
            del metadata["jupyter"]


def _strip_notebook(notebook: dict[str, Any]) -> None:
    metadata = notebook.get("metadata")
    if not isinstance(metadata, dict):
        return
    _drop(metadata, _NOTEBOOK_TRACES)
    language = metadata.get("language_info")
    if isinstance(language, dict):
        language.pop("version", None)  # that of whichever kernel ran last


def _drop(mapping: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        mapping.pop(name, None)
