"""What a task tells of the GPUs it uses (O30), by a library in C that answers as the driver's does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from paijupyter.backends.kubernetes.reported import Reported
from paijupyter.backends.kubernetes.sieve import Report, Sieve
from paijupyter.runtime import gpus, reports

DRIVER = Path(__file__).parents[2] / "backends" / "gpu_machine" / "nvml.c"
WHOLE = {"name": "GPU-00000000-aaaa-bbbb-cccc-dddddddddddd", "busy": 0.35, "memoryMB": 3072.0}
LOOK = "import json; from paijupyter.runtime.gpus import Gpus; print(json.dumps(Gpus().look()))"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with libnvidia-ml.so.1."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc or gcc)")
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", DRIVER], check=True)
    return folder


def seen(folder: Path, **variables: str) -> list:
    """Return what a process of its own sees: a library stays loaded."""
    patient = "import paijupyter.runtime.gpus as g; g._PATIENCE = 60; " + LOOK
    environment = {**os.environ, **variables, "LD_LIBRARY_PATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", patient], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ("whole", [WHOLE]),
        ("hidden whole", [{**WHOLE, "name": "GPU-00000001-aaaa-bbbb-cccc-dddddddddddd"}]),
        ("lost", [{"name": WHOLE["name"]}]),
        (
            "slices",
            [{"name": f"MIG-00000000-aaaa-bbbb-cccc-{part:012}", "memoryMB": 5.0} for part in range(2)],
        ),
        ("cut", []),
        ("", []),
    ],
)
def test_the_gpus_that_a_container_was_given(library, there, found):
    assert seen(library, NVML_GPUS=there) == found


def test_without_a_driver_or_with_one_that_refuses_there_are_none(library, tmp_path):
    assert seen(tmp_path) == []
    assert seen(library, NVML_GPUS="whole", NVML_ERROR="18") == []


def test_a_driver_that_never_answers_holds_nobody_up(monkeypatch):
    """What it said before is told on."""
    asked, answers = threading.Event(), threading.Event()
    monkeypatch.setattr(gpus, "_open", lambda: object())
    monkeypatch.setattr(gpus, "_devices", lambda _: (asked.set(), answers.wait(60), ["0"])[2])
    monkeypatch.setattr(gpus, "_used", lambda _, device: {"name": device})
    monkeypatch.setattr(gpus, "_PATIENCE", 0.01)
    told = gpus.Gpus()
    assert told.look() == [] and asked.wait(60)
    assert told.look() == []
    answers.set()
    monkeypatch.setattr(gpus, "_PATIENCE", 60)
    assert told.look() == [{"name": "0"}]


def test_it_comes_home_with_the_reports_of_a_task_that_asked_for_gpus(make_job, library, tmp_path, until):
    job = make_job(worker=1, helper=1)
    job.spec["reports"] = True
    job.role("worker")["resources"] = {"gpu": 1}
    job.spec["commands"] = dict.fromkeys(
        ("worker", "helper"), f"until test -e {tmp_path}/go; do sleep 0.1; done"
    )

    def told(key: str) -> list[Report]:
        return [each for each in Sieve().feed(job.pods[key].log.encode())[1] if each.kind == reports.USAGE]

    for pod in job.pods.values():
        pod.variables.update(LD_LIBRARY_PATH=str(library), NVML_GPUS="whole")
        pod.start()
    until(lambda: all(told(key) for key in job.pods), seconds=60, why="both tasks' use")
    (tmp_path / "go").touch()
    assert [pod.end()["status"] for pod in job.pods.values()] == [0, 0]
    assert json.loads(told("worker-0")[0].text)["gpus"] == [WHOLE]
    assert "gpus" not in json.loads(told("helper-0")[0].text), "others' tasks may use what it sees"
    home = Reported(tmp_path / "home", 0)
    home.take(told("worker-0")[0])
    assert home.usage is not None
    assert [(gpu.name, gpu.busy, gpu.memory_mb) for gpu in home.usage.gpus] == [(WHOLE["name"], 0.35, 3072.0)]
