"""The Paddle way with a real engine: a script and a cell that submit themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from paijupyter.client.client import JobsClient
from paijupyter.errors import UsageProblem
from paijupyter.paddle import PaddleJob, submission, submit

SCRIPT = """\
import os
import sys
import time
from paijupyter.paddle import PaddleJob, dist_train

def make_trainer():
    def train():
        where = os.environ.get("TRAINING_ROLE", "alone"), os.environ.get("PADDLE_TRAINER_ID", "none")
        print("trains", *where, *sys.argv[1:], flush=True)
        servers = os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST", "").split(",")
        if where[0] == "PSERVER":
            open(os.path.join(SAID, os.environ["PAI_TASK_INDEX"]), "w").close()
            time.sleep(600)
        while where[0] == "TRAINER" and len(os.listdir(SAID)) < len(servers):
            time.sleep(0.05)  # they are ended with the trainers, in the middle of a word too
    return train

job = dist_train(trainer=make_trainer, paddle_job=PaddleJob(JOB))
"""


@pytest.fixture
def folder(isolated_home: Path) -> Path:
    made = isolated_home / "project"
    made.mkdir()
    return made


def run(folder: Path, fields: str, *arguments: str, **environment: str) -> str:
    """Run the script as a person does; return what it printed."""
    import os

    said = folder.parent / "said"
    said.mkdir(exist_ok=True)
    (folder / "train.py").write_text(SCRIPT.replace("JOB", fields).replace("SAID", repr(str(said))))
    command = [sys.executable, "train.py", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def final(name: str) -> tuple[dict[str, Any], str]:
    client = JobsClient.connect()
    view = client.wait(name, timeout=60)
    return view, "".join(chunk.text for chunk in client.logs(view["id"]))


def test_a_script_submits_itself(folder: Path) -> None:
    """P12, P20, P39: no entry point, no name, no package: all three are the script's, and its arguments."""
    said = run(folder, "trainers=2, pservers=0", "--lr", "0.1")
    name = said.split()[0]
    assert name.startswith("train-")
    assert "2 trainers, 0 parameter servers" in said
    view, log = final(name)
    assert view["state"] == "succeeded"
    assert sorted(log.splitlines()) == ["trains alone 0 --lr 0.1", "trains alone 1 --lr 0.1"]


def test_parameter_servers_end_with_the_trainers(folder: Path) -> None:
    """P25, P36, D6: computed and shown; they serve until all trainers are done, and decide nothing."""
    said = run(folder, "trainers=2")
    assert "2 parameter servers (computed)" in said
    view, log = final(said.split()[0])
    assert view["state"] == "succeeded"
    lines = sorted(line for line in log.splitlines() if line.startswith("trains"))
    assert lines == ["trains PSERVER none"] * 2 + ["trains TRAINER 0", "trains TRAINER 1"]


def test_a_trainer_that_fails_fails_the_job(folder: Path) -> None:
    """D6: what sees its peers fail does not end as a success."""
    said = run(folder, 'entry_point="exit 3", trainers=2, pservers=1')
    view, _ = final(said.split()[0])
    assert (view["state"], view["reason"]) == ("failed", "user")


def test_inside_a_job_it_trains(folder: Path) -> None:
    """P20: RUNNING_ON_CLOUD makes the same script train in this very process."""
    assert run(folder, "trainers=2", RUNNING_ON_CLOUD="YES") == "trains alone none\n"
    assert not JobsClient.connect().list()["jobs"]


def test_a_name_can_be_used_again_at_once(folder: Path) -> None:
    """D11, P2: also while the job of that name is being stopped."""
    sleeper = PaddleJob(job_name="again", entry_point="sleep 600", trainer_package=str(folder))
    first = submission.submit(sleeper)
    first.stop()
    second = submit(sleeper)
    third = submit(sleeper)
    assert len({first.name, second.name, third.name}) == 3
    assert {each.view["shortName"] for each in (first, second, third)} == {"again"}
    for each in (second, third):
        assert each.stop().state == "stopped"


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (PaddleJob(), "started without one"),
        (PaddleJob(entry_point="true", trainer_package="nowhere"), "does not exist"),
    ],
)
def test_what_cannot_be_found_is_said(
    monkeypatch: pytest.MonkeyPatch, folder: Path, job: PaddleJob, words: str
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(UsageProblem, match=words):
        submit(job)


def test_a_script_outside_of_its_package_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P38: another folder than the script's cannot hold it by accident."""
    other = folder / "other"
    other.mkdir()
    (folder / "train.py").write_text("pass\n")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(folder / "train.py"), raising=False)
    with pytest.raises(UsageProblem, match=r"train\.py.*is not in the package folder"):
        submit(PaddleJob(trainer_package=str(other)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_notebook_cell_submits_itself(folder: Path) -> None:
    """P19: what the design could not do, whose entry point was `python %s` of `__file__`."""
    cell = SCRIPT.replace("JOB", 'job_name="cell", trainers=2, pservers=0')
    cells = [cell, "print(job.wait().state, job.logs('trainer-1'))"]
    notebook = new_notebook(cells=[new_code_cell(source) for source in cells])
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    texts = [output.get("text", "") for cell in notebook.cells for output in cell.outputs]
    assert "succeeded trains alone 1" in "".join(texts)
    assert any(
        "application/vnd.paijupyter.job+json" in each.get("data", {}) for each in notebook.cells[0].outputs
    )
