"""A notebook that shows runs side by side: parameters, states, metrics, and what chosen cells have put out.

It is all Markdown with attachments: it needs no kernel, no trust, and shows the same in every front end.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paijupyter.notebook.outputs import Output, outputs_by_cell
from paijupyter.notebook.reading import Notebook, NotebookCell

TAG = "pai:report"
_LINES = 40  # of one text output
_WIDTH = 4  # jobs beside each other; more go below
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/svg+xml": "svg"}
Cell = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """One job of a report.

    Attributes:
        view: its JobView.
        notebook: its executed notebook, or None.
        seconds: how long it ran, or None.
    """

    view: Mapping[str, Any]
    notebook: Notebook | None = None
    seconds: float | None = None

    @property
    def name(self) -> str:
        """Its full name."""
        return str(self.view["name"])


def report(runs: Sequence[Run], title: str, tag: str = TAG) -> dict[str, Any]:
    """Return a notebook, as JSON, that shows runs side by side.

    Args:
        runs: the jobs, in the order of the columns.
        title: its first line.
        tag: cells with this tag are shown; if no cell has it, those that have drawn something.
    """
    cells = [_markdown(f"# {_escaped(title)}"), _markdown(_table(runs))]
    for heading, outputs in _sections(runs, tag):
        cells.append(_side_by_side(heading, outputs))
    for number, cell in enumerate(cells, 1):
        cell["id"] = f"report-{number}"
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def _markdown(source: str, attachments: Mapping[str, Any] | None = None) -> Cell:
    cell: Cell = {"cell_type": "markdown", "id": "", "metadata": {}, "source": source}
    if attachments:
        cell["attachments"] = dict(attachments)
    return cell


def _table(runs: Sequence[Run]) -> str:
    """Return the table of facts: what differs between the parameters first, then what came out."""
    parameters = _names(run.view.get("parameters") or {} for run in runs)
    metrics = _names((run.view.get("metrics") or {}).get("last") or {} for run in runs)
    head = ["job", *parameters, "state", "duration", *metrics]
    rows = []
    for run in runs:
        given = run.view.get("parameters") or {}
        last = (run.view.get("metrics") or {}).get("last") or {}
        rows.append(
            [
                run.name,
                *(_value(given, name) for name in parameters),
                _state(run.view),
                "" if run.seconds is None else f"{run.seconds:.1f} s",
                *(_value(last, name) for name in metrics),
            ]
        )
    return _markdown_table(head, rows)


def _names(mappings: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(name) for each in mappings for name in each))


def _value(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return "–"
    value = values[name]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _state(view: Mapping[str, Any]) -> str:
    said = str(view["state"])
    return f"{said}: {view['message']}" if said == "failed" and view.get("message") else said


def _sections(runs: Sequence[Run], tag: str) -> Iterable[tuple[str, list[tuple[Run, list[Output]]]]]:
    """Yield a heading and what each run has put out there, cell by cell as the first notebook has them."""
    chosen: dict[str, str] = {}
    by_run: list[dict[str, list[Output]]] = []
    tagged = any(tag in cell.tags for run in runs if run.notebook for cell in run.notebook.code)
    for run in runs:
        found: dict[str, list[Output]] = {}
        outputs = outputs_by_cell(run.notebook) if run.notebook else {}
        for cell in run.notebook.code if run.notebook else ():
            there = outputs.get(cell.number) or []
            if (tag in cell.tags) if tagged else any(each.is_picture for each in there):
                key = cell.id or str(cell.number)
                chosen.setdefault(key, _heading(cell))
                found[key] = there
        by_run.append(found)
    for key, heading in chosen.items():
        yield heading, [(run, found.get(key) or []) for run, found in zip(runs, by_run, strict=True)]


def _heading(cell: NotebookCell) -> str:
    lines = [line.strip() for line in cell.source.splitlines() if line.strip()]
    comment = next(
        (line.lstrip("# ").strip() for line in lines if line.startswith("#") and "|" not in line), ""
    )
    code = next((line for line in lines if not line.startswith("#")), "")
    return comment or (f"`{code[:60]}`" if code else f"Cell {cell.number}")


def _side_by_side(heading: str, outputs: Sequence[tuple[Run, list[Output]]]) -> Cell:
    attachments: dict[str, dict[str, str]] = {}
    parts = [f"## {heading}"]
    for start in range(0, len(outputs), _WIDTH):
        shown = outputs[start : start + _WIDTH]
        head = [f"{run.name}{_parameters(run)}" for run, _ in shown]
        row = [_content(found, attachments) for _, found in shown]
        parts.append(_markdown_table(head, [row], raw=True))
    return _markdown("\n\n".join(parts), attachments)


def _parameters(run: Run) -> str:
    given = run.view.get("parameters") or {}
    return "".join(f"<br>{_escaped(f'{name} = {_value(given, name)}')}" for name in given)


def _content(outputs: Sequence[Output], attachments: dict[str, dict[str, str]]) -> str:
    said = []
    for output in outputs:
        if output.is_picture:
            name = f"{len(attachments) + 1}.{_ENDINGS[output.kind]}"
            data = output.content
            if output.kind == "image/svg+xml":
                data = base64.b64encode(data.encode()).decode()
            attachments[name] = {output.kind: data.replace("\n", "")}
            said.append(f"![{name}](attachment:{name})")
        else:
            lines = output.content.rstrip("\n").split("\n")
            kept = lines if len(lines) <= _LINES else [*lines[:_LINES], "…"]
            said.append("<code>" + "<br>".join(_escaped(line) for line in kept) + "</code>")
    return "<br>".join(said) or "–"


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], raw: bool = False) -> str:
    shown = [list(row) if raw else [_escaped(each) for each in row] for row in rows]
    titles = list(head) if raw else [_escaped(each) for each in head]
    lines = [titles, ["---"] * len(titles), *shown]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _escaped(text: str) -> str:
    """Return a text that a table of Markdown shows as it is."""
    safe = html.escape(text.replace("\n", " "), quote=False)
    return re.sub(r"([\\`*_\[\]|~$#])", r"\\\1", safe)
