"""A notebook as the job beside papermill on the same notebook, the start of the task aside."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from paijupyter.client import JobsClient
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.client.submission import prepare, submit
from paijupyter.package import LocalStore
from paijupyter.paths import data_dir
from tests.bench.places import engine, home
from tests.bench.rows import Row, interleaved

RUNS = 5
CELLS = 60
REACH = 1.15
_CELL = """\
total = 0
for n in range(200_000):
    total += n * lr
print("step", step, total)
step += 1"""


def run() -> list[Row]:
    """Measure (ms) from the first line of the runner's process to its end: kernel, cells, files."""
    with home() as folder, engine() as client:
        work = folder / "work"
        work.mkdir()
        first = new_code_cell("lr = 0.5\nstep = 0", metadata={"tags": ["parameters"]})
        cells = [first, *(new_code_cell(_CELL) for _ in range(CELLS))]
        kernel = {"name": "python3", "language": "python", "display_name": "Python 3"}
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), work / "train.ipynb")
        _papermill(work)  # the first ones warm the disk's cache
        _job(client, work)
        ours, theirs = interleaved(lambda: _job(client, work), lambda: _papermill(work), RUNS)
    return [
        Row(
            f"notebook of {CELLS} cells as a job, start of the task aside",
            ours,
            theirs,
            "papermill",
            "ms",
            "+15 %",
            ours <= REACH * theirs,
        )
    ]


def _job(client: JobsClient, folder: Path) -> float:
    """Run it as a job; what counts is the time from the task being ready to its end."""
    options = parse_verb("submit", ["train.ipynb", "--param", "lr=0.1"], "cli")
    prepared = prepare(options, Origin("cli", folder, sys.executable))
    job = submit(client, prepared).view["id"]
    final = client.wait(job)
    assert final["state"] == "succeeded", final
    task = data_dir() / "jobs" / job / "tasks" / "worker-0" / "0"
    ready = int((task / "ready").read_text()) / 1e3
    ended = float(json.loads((task / "exit.json").read_text())["endedAt"])
    Path(final["executedNotebook"]).unlink()
    assert str(prepared.request["package"]) in LocalStore(data_dir())
    return (ended - ready) * 1e3


def _papermill(folder: Path) -> float:
    start = time.perf_counter()
    command = [
        sys.executable, "-m", "papermill", "train.ipynb", str(folder.parent / "out.ipynb"),
        "-p", "lr", "0.1", "--log-output", "--no-progress-bar",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1e3
