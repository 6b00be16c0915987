"""A report notebook: runs side by side, in Markdown that needs neither trust nor a kernel."""

from __future__ import annotations

from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

from paijupyter.jobs.report import Run, report
from paijupyter.notebook.reading import Notebook, parse_notebook

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def executed(text: str, *tags: str) -> Notebook:
    picture = new_output("display_data", {"image/png": PIXEL, "text/plain": "<Figure>"})
    cells = [
        new_code_cell("1", id="one", outputs=[new_output("stream", text="quiet\n")]),
        new_code_cell("# the curve\nplot()", id="two", metadata={"tags": list(tags)}, outputs=[picture]),
        new_code_cell(
            "said", id="three", metadata={"tags": list(tags)}, outputs=[new_output("stream", text=text)]
        ),
    ]
    return parse_notebook(nbformat.writes(new_notebook(cells=cells)).encode())


def view(name: str, **more: Any) -> dict[str, Any]:
    metrics = {"last": {"loss": 0.5}, "series": {}}
    return {"name": name, "state": "succeeded", "parameters": {"lr": 0.1}, "metrics": metrics, **more}


def test_parameters_states_metrics_and_tagged_cells_side_by_side() -> None:
    failed = view(
        "b", state="failed", message="Cell 2 | raised <x>", parameters={"lr": 0.01, "n": 1}, metrics={}
    )
    found = report(
        [
            Run(view("a"), executed("first <b>", "pai:report"), 1.5),
            Run(failed, executed("second", "pai:report")),
        ],
        "Rates",
    )
    nbformat.validate(nbformat.from_dict(found))
    title, table, curve, said = (cell["source"] for cell in found["cells"])
    assert title == "# Rates"
    assert table.splitlines() == [
        "| job | lr | n | state | duration | loss |",
        "| --- | --- | --- | --- | --- | --- |",
        "| a | 0.1 | – | succeeded | 1.5 s | 0.5 |",
        r"| b | 0.01 | 1 | failed: Cell 2 \| raised &lt;x&gt; |  | – |",
    ]
    assert curve.splitlines()[0] == "## the curve"
    assert "| ![1.png](attachment:1.png) | ![2.png](attachment:2.png) |" in curve
    assert found["cells"][2]["attachments"]["1.png"] == {"image/png": PIXEL}
    assert "<code>first &lt;b&gt;</code> | <code>second</code>" in said
    assert "quiet" not in str(found)


def test_without_tags_what_was_drawn_is_shown() -> None:
    found = report([Run(view("a"), executed("x")), Run(view("b"))], "Report")
    assert [cell["source"].splitlines()[0] for cell in found["cells"][2:]] == ["## the curve"]
    assert found["cells"][2]["source"].endswith("| ![1.png](attachment:1.png) | – |")
