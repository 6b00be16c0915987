"""The cells of a running notebook, as page and kernel together know them.

The page's file may be older than what ran, and the kernel knows nothing of the page. So each cell of the
file gets the source and the count of its latest run in this kernel; without a file the runs are the cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paijupyter.errors import Problem, UsageProblem
from paijupyter.notebook.reading import Notebook, NotebookCell, read_notebook, tags_of

_MAGIC = "%%paijob"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a cell in a kernel.

    Attributes:
        count: its execution count.
        source: what ran.
        cell_id: the front end's id of the cell, or None.
        failed: it raised.
    """

    count: int
    source: str
    cell_id: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """What a kernel knows.

    Attributes:
        runs: all runs of cells, the oldest first.
        names: the user's names and their objects.
    """

    runs: Sequence[Run] = ()
    names: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells that a script can be made of.

    Attributes:
        notebook: them.
        current: number of the cell that asks, or None for a line.
        history: they are runs of a kernel, numbered by their counts.
        problems: what is to be said of them.
    """

    notebook: Notebook
    current: int | None = None
    history: bool = False
    problems: tuple[Problem, ...] = ()


def cells_of(session: Session | None, path: Path | None, cell_id: str | None, body: str | None) -> Cells:
    """Return the cells of a notebook and, where there is one, its kernel.

    Args:
        session: the kernel, or None.
        path: the notebook's file, or None where nobody knows it.
        cell_id: the front end's id of the cell that asks.
        body: what stands below its magic; None for a line.

    Raises:
        UsageProblem: neither file nor kernel is known, or the file cannot be read.
    """
    if path is not None and (body is None or session is None or path.is_file()):
        notebook = read_notebook(path)
        current = next((cell.number for cell in notebook.cells if cell.id and cell.id == cell_id), None)
        if session is None:
            return Cells(notebook)
        if body is None or current is not None:
            notebook = _as_it_ran(notebook, session)
            if body is not None and current is not None:
                notebook = _with_source(notebook, current, f"{_MAGIC}\n{body}")
            return Cells(notebook, current if body is not None else None)
    if session is None:
        raise UsageProblem(
            "This notebook's file is not known here.", "Name it: submit NAME.ipynb --cells TAG"
        )
    return _history(session, path, body)


def _as_it_ran(notebook: Notebook, session: Session) -> Notebook:
    """Give each cell the source and the count of its latest run in this kernel."""
    latest = {run.cell_id: run for run in session.runs if run.cell_id}
    known = {run.count: run.source for run in session.runs}
    cells = []
    for cell in notebook.cells:
        run = latest.get(cell.id) if cell.id else None
        if run is not None:
            cell = replace(
                cell, source=run.source, executed=run.count, tags=cell.tags or tags_of({}, run.source)
            )
        elif cell.executed is not None and known.get(cell.executed) != cell.source:
            cell = replace(cell, executed=None)  # A count of another kernel.
        cells.append(cell)
    return replace(notebook, cells=tuple(cells))


def _with_source(notebook: Notebook, number: int, source: str) -> Notebook:
    cells = (replace(cell, source=source) if cell.number == number else cell for cell in notebook.cells)
    return replace(notebook, cells=tuple(cells))


def _history(session: Session, path: Path | None, body: str | None) -> Cells:
    """Take the runs as cells: of each cell the latest one that did not fail."""
    latest: dict[str, Run] = {}
    for run in session.runs:
        key = run.cell_id or run.source
        latest.pop(key, None)
        if not run.failed:
            latest[key] = run
    runs = list(latest.values())
    count = session.runs[-1].count if session.runs else 1
    if body is not None:
        runs = [run for run in runs if run.count != count]
        runs.append(Run(count, f"{_MAGIC}\n{body}"))
    cells = tuple(
        NotebookCell(run.count, "code", run.source, run.cell_id, tags_of({}, run.source), run.count)
        for run in runs
    )
    problems: tuple[Problem, ...] = ()
    if path is not None:
        message = f"`{path.name}` as it is saved does not have this cell, so what the kernel ran is taken."
        problems = (
            Problem("hint", "notebook-not-saved", message, hint="Save the notebook to use its page."),
        )
    return Cells(Notebook(path, cells), count if body is not None else None, True, problems)
