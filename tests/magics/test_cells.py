"""Cells as entry points from a real kernel, with a real engine and real tasks (P12, P13, P20)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

LOAD = "%load_ext paijupyter"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def execute(folder: Path, cells: list[Any], fails: bool = False) -> list[Any]:
    """Execute cells by nbclient; return their outputs cell by cell."""
    notebook = new_notebook(cells=cells)
    client = NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(folder)}})
    if fails:
        with pytest.raises(CellExecutionError):
            client.execute()
    else:
        client.execute()
    return [cell.outputs for cell in notebook.cells]


def streamed(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def shown(outputs: list[Any], kind: str = "text/plain") -> str:
    return "\n".join(str(output.data.get(kind, "")) for output in outputs if output.get("data"))


def test_a_cell_takes_along_what_it_needs_and_objects_of_the_kernel(isolated_home: Path) -> None:
    """With no file of the notebook the kernel's own history is the page."""
    folder = isolated_home / "project"
    folder.mkdir()
    cells = [
        LOAD,
        "import numpy as np\nnp.random.seed(1)",
        "class Scaler:\n    def fit(self, x):\n        self.mean = x.mean()\n        return self\n"
        "    def scale(self, x):\n        return x - self.mean",
        "raise_me = 1 / 0",
        "data = np.arange(6.0)\nscaler = Scaler().fit(data)\ntable = {'a': [1, 2]}",
        "def report(x):\n    print('mean of', len(x), 'is', x.mean(), flush=True)",
        "data[0] = 30\nimport asyncio",
        "%%paijob --with-cells --wait --param factor=2.0 --carry scaler,table\n"
        "report(scaler.scale(data) * factor)\nawait asyncio.sleep(0)\nprint(table, type(scaler).__name__)\n"
        "!echo {len(data)} rows",
        "%%paijob plan --carry scaler\nreport(data)",
        "expected = (data - 2.5).mean() * 2\nprint(expected)",
    ]
    made = [new_code_cell(source) for source in cells]
    made[3].metadata["tags"] = ["raises-exception"]
    *_, ran, planned, expected = execute(folder, made)
    log = streamed(ran)
    assert f"worker-0  mean of 6 is {float(streamed(expected))}" in log
    assert "worker-0  {'a': [1, 2]} Scaler" in log
    assert "worker-0  6 rows" in log
    plan = shown(planned)
    assert re.search(r"carried scaler +Scaler, [\d.]+ \w+, as cloudpickle", plan)
    assert re.search(r"\+ cell 6 +binds `report`, which cell 9 uses", plan)


def test_a_traceback_is_of_the_notebook_and_the_card_links_to_the_cell(
    isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = isolated_home / "project"
    folder.mkdir()
    path = folder / "train it.ipynb"
    sources = [
        (LOAD, []),
        ("def half(x):\n    if x < 0:\n        raise ValueError(f'negative: {x}')\n    return x / 2", []),
        ("unrelated = [1]", []),
        ("print(half(4))\nhalf(-3)", ["pai:export"]),
        ("%paijob submit this-notebook --cells pai:export --wait", ["raises-exception"]),
        ("%paijob export this-notebook -o kept --name kept --role worker:2", []),
    ]
    cells = [new_code_cell(source, metadata={"tags": tags}) for source, tags in sources]
    nbformat.write(new_notebook(cells=cells), path)
    monkeypatch.setenv("PAIJUPYTER_NOTEBOOK", str(path))
    cells[3] = new_code_cell("'not run here, as it fails'", id=cells[3].id)
    *_, ran, exported = execute(folder, cells)
    log = streamed(ran)
    assert '  File "train it.ipynb[cell 4]", line 2, in <module>\nworker-0      half(-3)' in log
    assert '  File "train it.ipynb[cell 2]", line 3, in half' in log
    assert "paicells.py" not in log
    assert "at train it.ipynb, cell 2, line 3" in shown(ran)
    assert f'<a href="train%20it.ipynb#cell-id={cells[1].id}">' in shown(ran, "text/html")
    assert "paijob submit -f kept/job.yaml" in shown(exported)
    kept = folder / "kept"
    assert sorted(file.name for file in kept.iterdir()) == ["job.yaml", "paicells.py", "train it.py"]
    from paijupyter.protocol import check, read

    document = (kept / "job.yaml").read_text()
    assert [str(problem) for problem in check(read(document), target="openpai")] == []
    assert "unrelated" not in (kept / "train it.py").read_text()
