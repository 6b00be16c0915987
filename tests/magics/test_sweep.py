"""`%%paijob sweep` in a real kernel: the preview, the live table, the handle (T3, 2.2)."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = [
    pytest.mark.slow,
    # pyzmq and nbclient leave sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
CELLS = (
    "%load_ext paijupyter\nrows = [{'n': 2}, {'n': 3}]",
    "%%paijob sweep --group squares --rows {rows} --plan\nprint(n)",
    "%%paijob sweep --group squares --rows {rows} --at-once 1 --as group\nprint(f'square={n * n}')",
    # The cell above has returned; its table follows the group while this one waits.
    "import time\ngroup.wait()\nend = time.monotonic() + 30\n"
    "while group.state != 'succeeded' and time.monotonic() < end: time.sleep(0.05)\n"
    "print([each['values']['n'] for each in group.experiments], group.counts)",
    "group",
    "%paijob stop --group squares",
)


def test_a_sweep_in_a_kernel(isolated_home: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    resources = {"metadata": {"path": str(isolated_home)}}
    NotebookClient(notebook, timeout=90, resources=resources, store_widget_state=False).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    plan = outputs[1][0].data["text/plain"]
    assert "2 experiments" in plan and "squares-1  n = 2" in plan
    table = outputs[2][0].data
    assert (
        "paijupyter-group" in table["text/html"]
        and "2 experiments · at most 1 at once" in table["text/plain"]
    )
    assert "[2, 3] {'succeeded': 2}" in outputs[3][0].text
    drawn = outputs[4][0].data["text/plain"]
    assert "✓ succeeded  squares" in drawn and "square=9" in drawn
    assert "succeeded" in outputs[5][0].data["text/plain"]
    nbformat.validate(notebook)
