"""A queue served by a real process, and workers that are real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.local.ports import allocate

_LIBRARY = Path(__file__).parents[2] / "paijupyter"


class Group:
    """The processes of a small job, told about each other as its tasks would be.

    The variables are those of the environment contract (O25): what the tasks' side reads and nothing more.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.state = folder / "checkpoints" / "tasks.queue.jsonl"
        self.port = allocate({"queue-0": {"tasks": 1}}, ())["queue-0"]["tasks"][0]
        self._processes: list[subprocess.Popen[str]] = []
        (folder / "checkpoints").mkdir()
        key = folder / "job.key"
        key.write_text("k" * 64)
        self._common = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(_LIBRARY),
            "PAI_TASK_ROLE_LIST": "queue,worker",
            "PAI_TASK_ROLE_TASK_COUNT_queue": "1",
            "PAI_TASK_ROLE_TASK_COUNT_worker": str(workers),
            "PAI_HOST_IP_queue_0": "127.0.0.1",
            "PAI_PORT_LIST_queue_0_tasks": str(self.port),
            "PAI_CHECKPOINT_DIR": str(folder / "checkpoints"),
            "PAI_JOB_KEY_FILE": str(key),
        }

    def variables(self, role: str, index: int) -> dict[str, str]:
        own = {"PAI_CURRENT_TASK_ROLE_NAME": role, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index)}
        return self._common | own

    def start(self, role: str, index: int, code: str, **more: str) -> subprocess.Popen[str]:
        # `tasks` here is what `pai_tasks` is in a task: the same folder, alone on the path.
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(_LIBRARY)!r})\n{code}"],
            env=self.variables(role, index) | more,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def serve(self, blocks: str, options: str = "") -> subprocess.Popen[str]:
        """Serve these blocks, an expression; it prints what each worker has done."""
        code = f"import json, tasks; print(json.dumps(tasks.serve_tasks({blocks}, {options})))"
        return self.start("queue", 0, code)

    def work(self, index: int, body: str = "print(block, flush=True)") -> subprocess.Popen[str]:
        """Take blocks; the body is run for each."""
        return self.start(
            "worker",
            index,
            f"import os, time, tasks\nfor block in tasks.take_tasks(patience=30):\n    {body}",
        )

    def recorded(self) -> list[int]:
        """Return the blocks in the order in which their end was recorded."""
        if not self.state.exists():
            return []
        lines = [json.loads(line) for line in self.state.read_text().splitlines()]
        return [line["done"] for line in lines[1:]]

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Callable[..., Group]]:
    """Return a maker of groups with so many workers."""
    made: list[Group] = []

    def make(workers: int) -> Group:
        made.append(Group(tmp_path, workers))
        return made[-1]

    yield make
    for each in made:
        each.close()


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return exit code, output and last line of the errors of a process, at its end."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, (err.strip().splitlines() or [""])[-1]


@pytest.fixture(name="outcome")
def outcome_fixture() -> Callable[..., Any]:
    """Hand :func:`outcome` to tests."""
    return outcome
