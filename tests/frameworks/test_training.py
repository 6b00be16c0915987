"""A launcher is right when a real framework trains with it (P25, O24, architecture decision 11).

Each test submits a script by the command line, as a user does, to the local backend, with two tasks that
are two processes; ``python`` on PATH chooses the interpreter, so the framework, of the job.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent
PAIJOB = str(Path(sys.executable).with_name("paijob"))
LOSS = re.compile(r"(\S+) (\S.*) rank (\d) of (\d) loss (\S+) weights \[(\S+), (\S+)\]")


def _installer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("frameworks_install", HERE / "install.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


INSTALL = _installer()
# Looked up here: every test has another home.
PYTHONS = {name: str(INSTALL.interpreter(name)) for name in ("torch", "paddle", "jax", "mpi")}
REASON_FOLDER = INSTALL.cache()


@pytest.fixture
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the interpreter of the framework that the test names, or skip the test with the reason."""
    monkeypatch.setattr(INSTALL, "cache", lambda: REASON_FOLDER)
    reason = INSTALL.lacks(request.param)
    if reason:
        pytest.skip(reason)
    return PYTHONS[request.param]


def train(folder: Path, python: str, *words: str) -> list[str]:
    """Submit, wait, and return what was printed; the job must have succeeded."""
    project = folder / "project"
    shutil.copytree(HERE / "scripts", project)
    path = os.pathsep.join([str(Path(python).parent), "/usr/bin", "/bin"])
    environment = os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"}
    command = [PAIJOB, "submit", "--wait", *words]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    print(done.stdout)  # the figures, for whoever runs with -s or -rP
    return done.stdout.splitlines()


def check(lines: list[str], framework: str) -> None:
    """Both ranks have come to the same line, y = 3x + 1."""
    ranks = [match for match in map(LOSS.search, lines) if match]
    assert sorted(match[3] for match in ranks) == ["0", "1"], lines
    for match in ranks:
        assert (match[1], match[4]) == (framework, "2")
        assert float(match[5]) < 1e-3
        assert (float(match[6]), float(match[7])) == pytest.approx((3, 1), abs=0.05)
    assert ranks[0][6] == ranks[1][6], "all ranks hold the same weights"


@pytest.mark.frameworks
@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("python", "launcher", "script"),
    [
        ("torch", "torchrun", "torch_ddp.py"),
        ("paddle", "paddle", "paddle_collective.py"),
        ("jax", "jax", "jax_distributed.py"),
    ],
    indirect=["python"],
    ids=["torch", "paddle", "jax"],
)
def test_two_processes_train_one_model(isolated_home: Path, python: str, launcher: str, script: str) -> None:
    lines = train(isolated_home, python, "--role", f"worker:2,launcher={launcher}", script)
    check(lines, script.split("_")[0])


@pytest.mark.frameworks
@pytest.mark.parametrize("python", ["mpi"], indirect=True)
def test_mpirun_finds_its_hosts(isolated_home: Path, python: str) -> None:
    """mpirun in the first task reads the host file by the launcher's variables; no option is needed."""
    command = 'if [ "$PAI_MPI_RANK" = 0 ]; then mpirun python mpi_allreduce.py; fi'
    check(train(isolated_home, python, "--role", "worker:2,launcher=mpi", "--command", command), "mpi")


def test_trainers_meet_at_a_parameter_server(isolated_home: Path) -> None:
    """P25, P36: two servers that never end, one weight each; the job ends with its trainers."""
    roles = ["--role", "ps:2,launcher=paddle", "--role", "trainer:2,launcher=paddle"]
    lines = train(isolated_home, sys.executable, *roles, "parameter_server.py")
    check(lines, "pserver")


@pytest.mark.frameworks
@pytest.mark.timeout(200)
@pytest.mark.parametrize("python", ["paddle"], indirect=True)
def test_the_paddle_way_trains(tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """P20: one script for submitting and training, on real Paddle, in an environment without paijupyter."""
    from paijupyter.client import JobsClient
    from paijupyter.paddle import PaddleJob, submit

    JobsClient.connect()  # the engine runs here, before the next interpreter is another
    project = tmp_path / "project"
    shutil.copytree(HERE / "scripts", project)
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "executable", python)  # whose interpreter the tasks get
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(project / "paddle_dist_train.py"))
    monkeypatch.setattr(sys, "argv", ["paddle_dist_train.py"])
    job = submit(PaddleJob(trainers=2, pservers=0, trainer_mem="2Gi", env={"OMP_NUM_THREADS": "1"}))
    assert job.wait(timeout=170).state == "succeeded", job.logs()
    check(job.logs().splitlines(), "paddle")
