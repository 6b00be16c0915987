"""Where in a notebook a job failed, in words and as a link that JupyterLab scrolls to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from paijupyter.errors import UsageProblem


def place(view: Mapping[str, Any]) -> tuple[str, str]:
    """Return the place, and the address of its cell from the notebook's folder; "" for what is not known."""
    found = (view.get("failedTask") or {}).get("place")
    if not found:
        return "", ""
    notebook = found.get("notebook") or PurePath(str(view.get("notebook") or "")).name
    cell = (
        f"cell {found['cell']}"
        if found.get("cell")
        else f"In [{found['run']}]"
        if found.get("run")
        else "the cell"
    )
    said = ", ".join(filter(None, [notebook, cell, f"line {found['line']}"]))
    cell_id = found.get("id") or _id(view.get("notebook"), notebook, found.get("cell"))
    return said, f"{quote(notebook)}#cell-id={quote(cell_id)}" if notebook and cell_id else ""


def _id(path: Any, name: str, number: Any) -> str:
    """Look up the id of a cell in the notebook's file, where it is on this host."""
    if not path or not number or PurePath(str(path)).name != name or not Path(str(path)).is_file():
        return ""
    from paijupyter.notebook.reading import read_notebook

    try:
        cells = read_notebook(Path(str(path))).cells
    except UsageProblem:
        return ""
    return next((cell.id or "" for cell in cells if cell.number == number), "")
