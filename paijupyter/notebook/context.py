"""Which notebook and which cell a submission comes from, as far as a kernel can know."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LARGEST = 20_000_000  # Bytes of a notebook that is still worth reading for the number of a cell.


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a notebook.

    Attributes:
        id: the front end's id of the cell, or None where it sends none.
        number: place in the saved notebook, from 1, or None.
    """

    id: str | None = None
    number: int | None = None


def notebook_path(user_ns: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the path of the running notebook, or None.

    ``PAIJUPYTER_NOTEBOOK`` says it outright; Jupyter Server sets ``JPY_SESSION_NAME``, VS Code the global
    ``__vsc_ipynb_file__``. Under nbclient and papermill nobody says it.
    """
    for found in (
        environ.get("PAIJUPYTER_NOTEBOOK"),
        environ.get("JPY_SESSION_NAME"),
        user_ns.get("__vsc_ipynb_file__"),
    ):
        # A console's session has a name that is no path; a collaborative one starts with its drive.
        if isinstance(found, str) and found.endswith(".ipynb"):
            return Path(found.partition(":")[2] if found.startswith("RTC:") else found)
    return None


def cell_of(parent: Mapping[str, Any], notebook: Path | None) -> Cell:
    """Return the cell that sent an execute request.

    Args:
        parent: the request, as the kernel's ``get_parent()`` returns it.
        notebook: path of the notebook, to look up the cell's number.
    """
    metadata = parent.get("metadata") or {}
    found = metadata.get("cellId") or metadata.get("cell_id")
    if not isinstance(found, str):
        return Cell()
    return Cell(found, _number(found, notebook))


def _number(cell_id: str, notebook: Path | None) -> int | None:
    if notebook is None:
        return None
    try:
        if notebook.stat().st_size > _LARGEST:
            return None
        cells = json.loads(notebook.read_text("utf-8")).get("cells") or []
    except (OSError, ValueError, AttributeError):
        return None
    ids = [cell.get("id") for cell in cells if isinstance(cell, dict)]
    return ids.index(cell_id) + 1 if cell_id in ids else None


def source_hash(*texts: str) -> str:
    """Return the hash that tells whether a cell would submit the same again."""
    digest = hashlib.sha256()
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
