"""A notebook as the command of a task, in a real kernel (O1): what runs, what is kept, how it fails."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from paijupyter.backends.boot import boot_zipapp

SECRET = 'pa$$-"word"-0123'
_WIDGET = "application/vnd.jupyter.widget-view+json"


@dataclass
class Result:
    code: int
    log: str
    notebook: Any
    told: list[dict[str, Any]]


class Task:
    """A folder in which a notebook runs as boot would run it."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder = folder
        self.archive = boot_zipapp(data)
        (folder / "out").mkdir()
        (folder / "secrets").mkdir()
        (folder / "secrets" / "TOKEN").write_text(SECRET)
        self.parameters({})
        self.environment = {
            **os.environ,
            "PAI_OUTPUT_DIR": str(folder / "out"),
            "PAI_SECRETS_DIR": str(folder / "secrets"),
            "PAI_PARAMETERS_FILE": str(folder / "parameters.json"),
            "PAI_METRICS_FILE": str(folder / "metrics.jsonl"),
            "PAI_JOB_NAME": "user~train-a2b3c4",
            "TOKEN": SECRET,
        }

    def parameters(self, values: dict[str, Any]) -> None:
        (self.folder / "parameters.json").write_text(json.dumps(values))

    def start(self, cells: list[Any], *words: str) -> subprocess.Popen[str]:
        nbformat.write(new_notebook(cells=cells), self.folder / "train.ipynb")
        return self.start_file("train.ipynb", *words)

    def start_file(self, name: str, *words: str, python: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [sys.executable, *python, str(self.archive), "notebook", name, *words]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def executed(self) -> Path:
        return self.folder / "out" / "train.ipynb"

    def end(self, process: subprocess.Popen[str]) -> Result:
        log, _ = process.communicate(timeout=100)
        notebook = None
        if self.executed.exists():
            notebook = nbformat.read(self.executed, as_version=4)
            nbformat.validate(notebook)
        metrics = self.folder / "metrics.jsonl"
        lines = metrics.read_text().splitlines() if metrics.exists() else []
        return Result(process.returncode, log, notebook, [json.loads(line)["notebook"] for line in lines])

    def run(self, cells: list[Any], *words: str) -> Result:
        return self.end(self.start(cells, *words))


@pytest.fixture
def task(tmp_path: Path, isolated_home: Path) -> Task:
    return Task(tmp_path, isolated_home / "data")


def code(source: str, *tags: str) -> Any:
    return new_code_cell(source, metadata={"tags": list(tags)} if tags else {})


def test_a_notebook_runs_from_top_to_bottom(task: Task) -> None:
    """O1, O20: parameters, progress, outputs without secrets and widgets; lines about jobs are left out."""
    task.parameters({"lr": 0.1, "name": 'a"b\n'})
    found = task.run(
        [
            new_markdown_cell("# Title"),
            code("lr: float = 0.5\nname = ''", "parameters"),
            code("%load_ext paijupyter\n%paijob submit this-notebook"),
            code("%%paijob --name x\nprint(1)"),
            code("raise ValueError('not me')", "pai:skip"),
            code("if True:\n    %paijob list\nkept = lr\nkept"),
            code(
                "import base64, os, urllib.parse\n"
                "token = os.environ['TOKEN']\n"
                "print(token, base64.b64encode(token.encode()).decode())\n"
                "{'nested': token, 'url': urllib.parse.quote(token)}"
            ),
            code(
                "from IPython.display import display\n"
                "display({'" + _WIDGET + "': {'model_id': 'x'}, 'text/plain': 'bar'}, raw=True)\n"
                "for i in range(3): print(i, end='\\r')\nprint('done')"
            ),
            code("open('train.ipynb', 'w').write('gone')"),
            code("await __import__('asyncio').sleep(0)\nassert name == 'a\"b\\n'", "last"),
            code("raise ValueError('after the end')"),
        ],
        "--until",
        "last",
    )
    assert found.code == 0, found.log
    text = task.executed.read_text()
    for form in (SECRET, json.dumps(SECRET)[1:-1], base64.b64encode(SECRET.encode()).decode()):
        assert form not in text
    assert "widgets" not in found.notebook.metadata
    assert _WIDGET not in json.dumps([cell.outputs for cell in code_cells(found)])
    injected = found.notebook.cells[2]
    assert injected.metadata.tags == ["injected-parameters"]
    assert injected.source == "# Parameters\nlr = 0.1\nname = 'a\"b\\n'\n"
    outputs = [
        [each.get("text") or each.data["text/plain"] for each in cell.outputs] for cell in code_cells(found)
    ]
    assert outputs[5] == ["0.1"]
    assert outputs[6][0] == "*** ***\n"
    assert outputs[7] == ["bar", "done\n"]
    assert found.notebook.cells[3].source.startswith("%load_ext paijupyter")
    assert not found.notebook.cells[-1].outputs
    assert found.notebook.metadata.paijupyter.job == "train-a2b3c4"
    assert [each["cell"] for each in found.told] == [2, 6, 7, 8, 9, 10, 10]
    assert found.told[-1] == {**found.told[-1], "done": True, "cells": 10}
    assert "[paijupyter] cell 6 of 10: if True:" in found.log
    assert "Cell 3 is left out: it is about jobs." in found.log


def code_cells(found: Result) -> list[Any]:
    return [cell for cell in found.notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\nraise ValueError('bad')", "Cell 2 raised ValueError: bad"),
        ("input('name? ')", "Cell 2 asks for input, and nobody answers in a job."),
    ],
)
def test_a_failed_cell_ends_the_run(task: Task, source: str, said: str) -> None:
    """The traceback is in the log without colours, what ran before is kept, what follows does not run."""
    found = task.run([code("print('before')"), code(source), code("print('after')")])
    assert found.code == 1
    assert f"[paijupyter] {said}" in found.log
    assert "\x1b[" not in found.log and "Traceback" in found.log
    first, second, third = code_cells(found)
    assert first.outputs[0].text == "before\n"
    assert second.outputs[-1].output_type == "error"
    assert not third.outputs


def test_a_kernel_that_is_killed_says_in_which_cell(task: Task) -> None:
    found = task.run([code("import os, signal"), code("os.kill(os.getpid(), signal.SIGKILL)")])
    assert found.code == 128 + signal.SIGKILL
    assert "[paijupyter] Cell 2 was running when its kernel was ended by SIGKILL." in found.log
    assert found.notebook.cells[0].execution_count == 1


def test_a_cell_may_take_only_so_long(task: Task) -> None:
    found = task.run([code("import time\ntime.sleep(100)")], "--timeout", "0.5")
    assert found.code == 1
    assert "[paijupyter] Cell 1 took longer than its limit of 0.5 s." in found.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_what_has_run(
    task: Task, number: int, until: Callable[..., object]
) -> None:
    """Also without a chance to say anything: the file on the disk is whole after every cell."""
    process = task.start(
        [
            code("import os\nprint('kept'); os.getpid()"),
            code("open('here', 'w').close()\nimport time\ntime.sleep(100)"),
        ]
    )
    try:
        until((task.folder / "here").exists, 60, "the second cell")
        until(lambda: b"kept\\n" in task.executed.read_bytes(), 20, "the first cell to be written")
    finally:
        process.send_signal(number)
    kernel = int(nbformat.read(task.executed, as_version=4).cells[0].outputs[-1].data["text/plain"])
    if number == signal.SIGKILL:
        os.kill(kernel, signal.SIGKILL)  # boot would end the whole tree
    found = task.end(process)
    assert found.code == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    assert found.notebook.cells[0].outputs[0].text == "kept\n"


def test_no_jupyter_and_nothing_installed(task: Task) -> None:
    """`install: never`: a clear sentence, or the exported script."""
    isolated = ("-I", "-S")
    found = task.end(task.start_file("train.ipynb", python=isolated))
    assert found.code == 2
    assert "this interpreter has no nbclient and ipykernel" in found.log
    (task.folder / "script.py").write_text("print('the script')\n")
    found = task.end(task.start_file("train.ipynb", "--script", "script.py", python=isolated))
    assert (found.code, found.log.splitlines()[-1]) == (0, "the script")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "Notebook `train.ipynb` cannot be read"),
        (json.dumps(new_notebook(cells=[new_markdown_cell("x")])), "Notebook `train.ipynb` has no code."),
        (
            json.dumps(
                new_notebook(
                    cells=[code("1")],
                    metadata={"kernelspec": {"name": "nope", "language": "R", "display_name": "R"}},
                )
            ),
            "Notebook asks for the kernel `nope` (R), which this task does not have",
        ),
    ],
)
def test_what_cannot_run_says_so(task: Task, content: str, said: str) -> None:
    (task.folder / "train.ipynb").write_text(content)
    found = task.end(task.start_file("train.ipynb"))
    assert found.code == 2, found.log
    assert said in found.log


def test_an_old_notebook_runs(task: Task) -> None:
    """Format 3 is upgraded."""
    cell = {
        "cell_type": "code",
        "input": ["print('old')"],
        "language": "python",
        "outputs": [],
        "collapsed": False,
    }
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": [cell], "metadata": {}}],
    }
    (task.folder / "train.ipynb").write_text(json.dumps(old))
    found = task.end(task.start_file("train.ipynb"))
    assert found.code == 0, found.log
    assert found.notebook.cells[0].outputs[0].text == "old\n"
