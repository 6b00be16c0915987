"""The command in real processes, with a real engine and real tasks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PAIJOB = str(Path(sys.executable).with_name("paijob"))

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(isolated_home: Path) -> Path:
    root = isolated_home / "project"
    root.mkdir()
    (root / "train.py").write_text(
        "import os, pathlib, sys\n"
        "print('args', sys.argv[1:], flush=True)\n"
        "pathlib.Path(os.environ['PAI_OUTPUT_DIR'], 'm.txt').write_text('model')\n"
        "sys.exit(3 if '--fail' in sys.argv else 0)\n"
    )
    (root / "hold.py").write_text(
        "import pathlib, time\nprint('at work', flush=True)\n"
        f"while not pathlib.Path({str(isolated_home / 'gate')!r}).exists():\n    time.sleep(0.02)\n"
    )
    return root


def run(folder: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PAIJOB, *words], cwd=folder, capture_output=True, text=True, check=False, **more)


def test_a_script_from_submission_to_results(folder: Path) -> None:
    """P3, P4, P6, P20, O1: submit, list, get, logs, pull, export, delete, with the same script as locally."""
    done = run(folder, "submit", "--role", "worker:2", "--wait", "train.py", "--lr", "0.1")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "worker-0  args ['--lr', '0.1']",
        "worker-1  args ['--lr', '0.1']",
    ]
    assert done.stderr.splitlines()[-1].startswith("succeeded after ")
    (job,) = json.loads(run(folder, "list", "--json").stdout)
    assert job["state"] == "succeeded" and job["shortName"] == "train"
    assert job["name"] in run(folder, "get").stdout
    assert run(folder, "logs", "--task", "worker-1").stdout == "worker-1  args ['--lr', '0.1']\n"
    assert run(folder, "pull", "--to", "results").returncode == 0
    assert (folder / "results" / "worker-1" / "m.txt").read_text() == "model"
    exported = run(folder, "export", "--to", "job.yaml")
    assert exported.returncode == 0, exported.stderr
    again = run(folder, "submit", "-f", "job.yaml", "--wait")
    assert again.returncode == 0, again.stderr
    assert run(folder, "export", job["name"]).stdout == (folder / "job.yaml").read_text()
    assert run(folder, "delete", job["name"]).returncode == 0
    assert run(folder, "get", job["name"]).returncode == 2


def test_a_job_that_fails_is_exit_code_1_and_says_who_and_how(folder: Path) -> None:
    done = run(folder, "submit", "--wait", "train.py", "--fail")
    assert done.returncode == 1
    assert "failed: worker-0 ended with exit code 3" in done.stderr.splitlines()
    assert run(folder, "wait").returncode == 1
    retried = run(folder, "retry", "--wait")
    assert retried.returncode == 1


def test_interrupting_a_wait_leaves_the_job_running_and_stopping_is_exit_code_3(folder: Path) -> None:
    """Architecture decision 7: interrupt detaches, stop is explicit."""
    child = subprocess.Popen(
        [PAIJOB, "submit", "--wait", "hold.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "worker-0  at work\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "goes on. Stop it with: paijob stop hold-" in said.splitlines()[-1]
    assert json.loads(run(folder, "get", "--json").stdout)["state"] in ("waiting", "running")
    assert "stopped. Its logs stay." in run(folder, "stop").stdout
    assert run(folder, "wait").returncode == 3
    assert run(folder, "logs").stdout.startswith("worker-0  at work\n")


def test_a_reader_that_leaves_is_no_error(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            [PAIJOB, "--help"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (141, "")


def test_a_terminal_without_our_characters_gets_substitutes(folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run(folder, "plan", "train.py", env=environment)
    assert done.returncode == 0, done.stderr
    assert "? can be submitted" in done.stdout


def test_starting_is_cheap() -> None:
    """Help needs no client, no pydantic and no YAML (architecture decision 12)."""
    code = "import sys; from paijupyter.cli import main; main(['submit', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"pydantic", "yaml", "tornado", "asyncio", "IPython", "rich", "http.client"}
