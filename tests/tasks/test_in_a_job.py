"""The tasks' side in real jobs: any interpreter finds it, also one that has no paijupyter (P10, P41)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAIJOB = str(Path(sys.executable).with_name("paijob"))
TRAIN = """
import os, signal, sys
from pai_tasks import serve_tasks, shard, take_tasks

assert "paijupyter" not in sys.modules
if os.environ["PAI_CURRENT_TASK_ROLE_NAME"] == "queue":
    print(sum(serve_tasks(range(12), linger=1.0).values()), "blocks")
else:
    print("mine", shard(range(5)))
    for block in take_tasks():
        print("block", block)
        if block == 5 and len(sys.argv) > 1:
            try:
                os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def folder(isolated_home: Path) -> Path:
    root = isolated_home / "project"
    root.mkdir()
    (root / "train.py").write_text(TRAIN)
    return root


def submit(folder: Path, *words: str) -> list[str]:
    command = [PAIJOB, "submit", "--wait", "--role", "queue:1,port=tasks,service=true", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return [" ".join(line.split()) for line in done.stdout.splitlines()]  # however wide a column is


def _interpreters() -> list[str]:
    """This one, and the oldest of the others: none of them has paijupyter."""
    for name in ("python3.6", "python3.7", "python3.8", "/usr/bin/python3"):
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return [sys.executable, found]
    return [sys.executable]


@pytest.mark.parametrize("python", _interpreters())
def test_a_queue_and_its_workers(folder: Path, python: str) -> None:
    lines = submit(folder, "--role", "worker:2", "--command", f"{python} train.py")
    assert {"worker-0 mine [0, 2, 4]", "worker-1 mine [1, 3]"} <= set(lines)
    blocks = [int(line.split()[-1]) for line in lines if " block " in line]
    assert sorted(blocks) == list(range(12))


def test_a_job_outlives_a_worker_that_is_killed(folder: Path, tmp_path: Path) -> None:
    """P36, P41: with min-failed a lost worker is not the job's end, and its block is another's."""
    lines = submit(
        folder, "--role", "worker:2,min-failed=2", "--command", f"python train.py {tmp_path / 'once'}"
    )
    assert "queue-0 12 blocks" in lines
    assert sorted(int(line.split()[-1]) for line in lines if " block " in line) == sorted([5, *range(12)])
