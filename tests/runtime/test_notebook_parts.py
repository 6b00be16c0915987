"""Parts of a notebook's run: what is left out of a cell, and the file that is whole at any moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook, new_output

from paijupyter.runtime.notebook.injecting import inject
from paijupyter.runtime.notebook.own_lines import without_job_lines
from paijupyter.runtime.notebook.saving import LONGEST_STREAM, Saver


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("x = 1", "x = 1"),
        ("# about paijob\nx = 1", "# about paijob\nx = 1"),
        ("text = '''\n%paijob list\n'''", "text = '''\n%paijob list\n'''"),
        ("%%paijob --name x\nx = 1", None),
        ("%load_ext paijupyter", None),
        ("%load_ext paijupyter\n\n%paijob submit this-notebook --wait", None),
        ("if x:\n    %paijob list\ny = 2", "if x:\n    pass\ny = 2\n"),
        ("jobs = %paijob list", "jobs = %paijob list"),
        ("%load_ext other # not paijupyter", "%load_ext other # not paijupyter"),
        ("paijob = = 1", "paijob = = 1"),
    ],
)
def test_lines_about_jobs_are_left_out_and_no_others(source: str, left: str | None) -> None:
    assert without_job_lines(source) == left


def saved(tmp_path: Path, notebook: Any, clean: Any = lambda text: text) -> str:
    saver = Saver(str(tmp_path / "x.ipynb"), notebook, clean)
    saver.write(durable=True)
    return (tmp_path / "x.ipynb").read_text()


def test_five_thousand_cells_are_not_written_five_thousand_times(tmp_path: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell(f"x = {n}") for n in range(5000)])
    saver = Saver(str(tmp_path / "x.ipynb"), notebook, lambda text: text)
    writes = 0

    def count(durable: bool = False) -> None:
        nonlocal writes
        writes += 1
        Saver.write(saver, durable)

    saver.write = count  # type: ignore[method-assign]
    for index in range(5000):
        notebook.cells[index].execution_count = index + 1
        saver.take(index)
        saver.save()
    saver.settle()
    assert writes < 500
    found = nbformat.read(tmp_path / "x.ipynb", as_version=4)
    nbformat.validate(found)
    assert [cell.execution_count for cell in found.cells] == list(range(1, 5001))


@settings(deadline=None)  # it writes files
@given(st.lists(st.text(st.characters(exclude_categories=[])), max_size=4))
def test_whatever_a_cell_says_can_be_read_again(tmp_path_factory: Any, texts: list[str]) -> None:
    """Also halves of characters, which a program may print."""
    folder = tmp_path_factory.mktemp("saved")
    outputs = [
        new_output("execute_result", {"text/plain": text, "application/json": {"a": text}}) for text in texts
    ]
    notebook = new_notebook(cells=[new_code_cell("x", outputs=outputs)])
    text = saved(folder, notebook)
    read = json.loads(text)["cells"][0]["outputs"]
    meant = [json.loads(json.dumps(text)) for text in texts]  # two halves are one character then
    assert ["".join(each["data"]["text/plain"]) for each in read] == meant


def test_a_stream_keeps_last_frames_and_no_more_than_its_ends(tmp_path: Path) -> None:
    long = "a" * LONGEST_STREAM + "b" * 10
    outputs = [
        new_output("stream", text="0%\r50%\r100%\ndone\r\n"),
        new_output("stream", name="stderr", text=long),
    ]
    read = json.loads(saved(tmp_path, new_notebook(cells=[new_code_cell("x", outputs=outputs)])))["cells"][0][
        "outputs"
    ]
    assert "".join(read[0]["text"]) == "100%\ndone\r\n"
    assert "10 characters are left out here" in "".join(read[1]["text"])


def test_secrets_are_hidden_everywhere_in_a_cell(tmp_path: Path) -> None:
    data = {"application/json": {"secret-1": ["secret-1"]}, "text/html": "<b>secret-1</b>"}
    cell = new_code_cell(
        "x = 'secret-1'", outputs=[new_output("display_data", data)], metadata={"note": "secret-1"}
    )
    notebook = new_notebook(cells=[cell], metadata={"title": "secret-1", "widgets": {"state": "secret-1"}})
    assert "secret-1" not in saved(tmp_path, notebook, lambda text: text.replace("secret-1", "***"))


def test_a_whole_number_is_a_float_where_one_is_declared() -> None:
    declaring = "lr: float = 0.5\nmomentum = 0.9\nsteps = 3\nother: int = 1"
    cells: list[Any] = [{"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": declaring}]
    inject(cells, {"lr": 1, "momentum": 2, "steps": 3, "other": 4})
    assert cells[1]["source"] == "# Parameters\nlr = 1.0\nmomentum = 2.0\nsteps = 3\nother = 4\n"
