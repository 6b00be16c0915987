"""From options to a request: document, package, secrets (P4, P6, P12, P38, P39, O19, O20)."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from paijupyter import paths
from paijupyter.client import submission
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.errors import PaiJupyterError, Problem, UsageProblem
from paijupyter.package import LocalStore
from paijupyter.protocol import read

CANARY = "canary-9f2e71"


class FakeClient:
    """Remembers what it was asked."""

    def __init__(self, problems: Sequence[Problem] = (), jobs: Sequence[Mapping[str, Any]] = ()) -> None:
        self.problems = [each.to_json() for each in problems]
        self.jobs = list(jobs)
        self.planned: list[Mapping[str, Any]] = []
        self.submitted: list[Mapping[str, Any]] = []
        self.stopped: list[str] = []

    def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.planned.append(request)
        errors = any(each["severity"] == "error" for each in self.problems)
        return {"ok": not errors, "name": "train-k3f2qd", "problems": self.problems}

    def submit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.submitted.append(request)
        return {"id": "1", "name": "train-k3f2qd", "state": "waiting", "created": True}

    def list(self, *, state: str | None = None, folder: str | None = None) -> dict[str, Any]:
        return {"jobs": [job for job in self.jobs if job["state"] == state and job["folder"] == folder]}

    def stop(self, ref: str) -> dict[str, Any]:
        self.stopped.append(ref)
        return {}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / "train.py").write_text("print(1)\n")
    (root / "sub" / "run.sh").write_text("echo 1\n")
    (root / "notes.txt").write_text("x\n")
    return root


def options(line: str, *more: str, surface: Any = "magic") -> Namespace:
    return parse_verb("submit", [*line.split(), *more], surface)


def origin(folder: Path, **changes: Any) -> Origin:
    given: dict[str, Any] = {"surface": "magic", "folder": folder, "python": "/venv/bin/python", **changes}
    return Origin(**given)


def prepared(line: str, folder: Path, body: str | None = None, **changes: Any) -> submission.Submission:
    return submission.prepare(options(line), origin(folder, **changes), body)


def document(found: submission.Submission) -> Mapping[str, Any]:
    return read(found.request["document"]).data


def files(found: submission.Submission) -> dict[str, bytes]:
    store = LocalStore(paths.data_dir())
    sha256 = found.request["package"]
    manifest = json.loads((store.folder(sha256) / "manifest.json").read_text())
    pack, content, place = (store.folder(sha256) / "pack").read_bytes(), {}, 0
    for path, _, size, _ in manifest["files"]:
        content[path] = pack[place : place + size]
        place += size
    return content


def test_a_python_cell_becomes_a_file_of_the_package_and_a_command(folder: Path) -> None:
    found = prepared("--name mnist --param lr=0.1", folder, "print(lr)\n")
    data = document(found)
    assert data["name"] == "mnist"
    assert data["parameters"] == {"lr": 0.1}
    assert data["taskRoles"]["worker"]["commands"] == ["python .paijob/cell.py"]
    assert files(found)[".paijob/cell.py"].endswith(b"\nprint(lr)\n")
    assert set(files(found)) >= {"train.py", "sub/run.sh", ".paijob/cell.py"}
    assert not (folder / ".paijob").exists()


def test_several_roles_run_the_same_cell_unless_a_role_has_its_own_command(folder: Path) -> None:
    line = "--role ps:1 --role worker:4,gpu=1,mem=8Gi --command"
    found = submission.prepare(options(line, "ps=python -m ps --x=1"), origin(folder), "print(1)\n")
    roles = document(found)["taskRoles"]
    assert roles["ps"]["commands"] == ["python -m ps --x=1"]
    assert roles["worker"]["commands"] == ["python .paijob/cell.py"]
    assert roles["worker"]["resourcePerInstance"] == {"cpu": 1, "memoryMB": 8192, "gpu": 1}


def test_an_equals_sign_in_a_command_is_not_a_role(folder: Path) -> None:
    found = submission.prepare(options("--command", "A=1 python x.py"), origin(folder))
    assert document(found)["taskRoles"]["worker"]["commands"] == ["A=1 python x.py"]


@pytest.mark.parametrize(
    ("body", "commands"),
    [
        ("# prepare\necho a\n\\\n", ["# prepare", "echo a", "\\"]),
        ("echo a\necho b\n", ["echo a", "echo b"]),
        ("cat <<X\n  two\nX\n", ["cat <<X\n  two\nX"]),
        ("for i in 1\ndo\n  echo $i\ndone", ["for i in 1\ndo\n  echo $i\ndone"]),
    ],
)
def test_a_shell_cell_is_commands_and_nothing_that_depends_on_spaces_is_cut(
    body: str, commands: list[str], folder: Path
) -> None:
    """O6: several lines, comments and continuations."""
    assert document(prepared("--sh", folder, body))["taskRoles"]["worker"]["commands"] == commands


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["train.py"], "python train.py"),
        (["train.py", "--lr", "0.1", "a b"], "python train.py --lr 0.1 'a b'"),
        (["sub/run.sh", "x"], "bash sub/run.sh x"),
    ],
)
def test_a_script_runs_with_its_arguments(words: list[str], command: str, folder: Path) -> None:
    found = submission.prepare(parse_verb("submit", words, "cli"), origin(folder, surface="cli"))
    data = document(found)
    assert data["taskRoles"]["worker"]["commands"] == [command]
    assert data["name"] == Path(words[0]).stem  # P39


def test_the_package_may_be_another_folder(folder: Path) -> None:
    """P38."""
    for script in ("run.sh", "sub/run.sh"):
        found = prepared(f"--package sub {script}", folder)
        assert document(found)["taskRoles"]["worker"]["commands"] == ["bash run.sh"]
        assert set(files(found)) == {"run.sh"}


@pytest.mark.parametrize(("notebook", "name"), [("/x/My Notebook.ipynb", "My-Notebook"), (None, "cell")])
def test_a_name_that_is_omitted_is_made_from_the_notebook(
    notebook: str | None, name: str, folder: Path
) -> None:
    """P39."""
    where = origin(folder, notebook=Path(notebook) if notebook else None)
    assert document(submission.prepare(options(""), where, "1\n"))["name"] == name


def test_resources_of_the_single_role(folder: Path) -> None:
    """P40: memory with suffixes, everywhere."""
    found = prepared("--gpu 2 --cpu 3 --mem 4Gi train.py", folder)
    expected = {"cpu": 3, "memoryMB": 4096, "gpu": 2}
    assert document(found)["taskRoles"]["worker"]["resourcePerInstance"] == expected
    found = prepared("--role trainer:2,cpu=5 --cpu 3 --gpu 1 train.py", folder)
    assert document(found)["taskRoles"]["trainer"]["resourcePerInstance"]["cpu"] == 5


def test_everything_else_lands_in_the_document(folder: Path) -> None:
    (folder / "req.txt").write_text("numpy\n")
    line = "--env A=b=c --output out/** --time-limit 2h30m --retry 3 --requirements req.txt --image me/img"
    data = document(prepared(f"{line} train.py", folder))
    extras = data["extras"]["paijupyter"]
    assert extras["env"] == {"A": "b=c"}
    assert extras["outputs"] == ["out/**"]
    assert extras["timeLimit"] == 9000
    assert extras["requirements"] == "req.txt"
    assert data["jobRetryCount"] == 3
    assert data["prerequisites"][0]["uri"] == "me/img"


def test_a_whole_document_is_kept_byte_for_byte(folder: Path) -> None:
    """O27; architecture decision 2."""
    text = "# mine\r\nname:   'x'   # odd\r\ntype: job\r\n\r\n"
    (folder / "job.yaml").write_bytes(text.encode())
    found = prepared("-f job.yaml", folder)
    assert found.request["document"] == text
    assert set(files(found)) >= {"train.py", "job.yaml"}
    assert prepared("--yaml", folder, text).request["document"] == text


def test_package_of_a_document_is_seen_from_here(folder: Path, tmp_path: Path) -> None:
    (folder / "job.yaml").write_text("name: x\n")
    found = prepared("-f project/job.yaml --package project/sub", tmp_path)
    assert set(files(found)) == {"run.sh"}


def test_the_package_of_a_document_is_its_folder(folder: Path, tmp_path: Path) -> None:
    (folder / "job.yaml").write_text("name: x\n")
    found = prepared("-f project/job.yaml", tmp_path)
    assert "train.py" in files(found)


def test_a_document_that_names_a_package_gets_no_other(folder: Path) -> None:
    text = f"name: x\nextras:\n  paijupyter:\n    version: 1\n    package: {'a' * 64}\n"
    assert prepared("--yaml", folder, text).request["package"] is None


DOCUMENT = """\
# a comment
protocolVersion: 2
name:   mine   # odd spaces
type: job
prerequisites:
  - {protocolVersion: 2, name: image, type: dockerimage, uri: x}
parameters:
  lr: 0.1  # rate
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ["echo <% $parameters.lr %>"]
"""


def test_overrides_change_only_their_bytes(folder: Path) -> None:
    found = prepared("--yaml --param lr=0.5 --param new=1 --name other", folder, DOCUMENT)
    text = found.request["document"]
    data = document(found)
    assert data["parameters"] == {"lr": 0.5, "new": 1}
    assert data["name"] == "other"
    for kept in ("# a comment\n", "# odd spaces", "# rate", "{protocolVersion: 2, name: image,"):
        assert kept in text


def test_overrides_of_a_document_without_parameters(folder: Path) -> None:
    text = DOCUMENT.replace("parameters:\n  lr: 0.1  # rate\n", "")
    found = prepared("--yaml --param lr=0.5", folder, text)
    assert document(found)["parameters"] == {"lr": 0.5}


@pytest.mark.parametrize(
    ("line", "body", "message"),
    [
        ("", None, "Job has nothing to run."),
        ("", " \n\n", "Cell is empty"),
        ("--sh", "\n", "Cell is empty"),
        ("train.py", "print(1)\n", "Script `train.py` does not go with a cell"),
        ("missing.py", None, "Script `missing.py` does not exist."),
        ("notes.txt", None, "Script `notes.txt` is neither .py, .sh nor .ipynb."),
        ("../outside.py", None, "Script `../outside.py` is not in the package folder"),
        ("--package nowhere train.py", None, "Package folder `"),
        ("-f nowhere.yaml", None, "File `"),
        ("--yaml", None, "Option `--yaml` needs a cell"),
        ("--sh", None, "Option `--sh` needs a cell"),
        ("--yaml --role worker:2", "name: x\n", "Option `--role` does not go with a whole job document."),
        ("-f job.yaml", "name: x\n", "Option `--file` does not go with a cell"),
        ("--command x", "print(1)\n", "Option `--command` for all roles does not go with a cell"),
        ("--role a:1 --role b:1 --gpu 1", "print(1)\n", "Option `--gpu` is for a job of one role."),
        ("--gpu many", "print(1)\n", "Option `--gpu` needs a whole number from 0 on"),
        ("--cpu 0", "print(1)\n", "Option `--cpu` needs a whole number from 1 on"),
        ("--retry -1", "print(1)\n", "Option `--retry` needs a"),
        ("--requirements ../r.txt", "print(1)\n", "Requirements file `../r.txt` is not in the package"),
        ("--again --replace", "print(1)\n", "Options `--again` and `--replace` exclude each other."),
        ("--role worker:x", "print(1)\n", ""),
        ("--param novalue", "print(1)\n", ""),
        ("--time-limit soon", "print(1)\n", ""),
    ],
)
def test_what_does_not_fit_is_one_sentence(line: str, body: str | None, message: str, folder: Path) -> None:
    (folder.parent / "outside.py").write_text("")
    with pytest.raises(PaiJupyterError) as caught:
        prepared(line, folder, body)
    assert caught.value.message.startswith(message)
    assert "\n" not in str(caught.value)


def test_a_program_in_place_of_a_script_is_told_its_option(folder: Path) -> None:
    """As other launchers take them: ``-- python train.py``."""
    with pytest.raises(PaiJupyterError) as caught:
        submission.prepare(options("", "sh", "-c", "echo it's me"), origin(folder))
    line = caught.value.hint.removeprefix("A program is run with: ")
    said = document(submission.prepare(options("", *shlex.split(line)), origin(folder)))
    assert said["taskRoles"]["worker"]["commands"] == [shlex.join(["sh", "-c", "echo it's me"])]


def test_options_after_the_script_are_the_scripts_with_a_hint(folder: Path) -> None:
    found = submission.prepare(options("", "train.py", "--role=worker:2"), origin(folder))
    assert document(found)["taskRoles"]["worker"]["commands"] == ["python train.py --role=worker:2"]
    (problem,) = (each for each in found.problems if each.code == "option-after-script")
    assert "`--role=worker:2`" in problem.message and "before `train.py`" in problem.hint


def test_the_context_says_where_a_job_comes_from(folder: Path) -> None:
    notebook = folder / "n.ipynb"
    where = {"notebook": notebook, "cell_id": "abc", "cell_number": 4, "kernel": "k"}
    found = prepared("--name x", folder, "print(1)\n", **where)
    context = found.request["context"]
    assert context["cell"]["id"] == "abc" and context["cell"]["number"] == 4
    assert (context["folder"], context["notebook"], context["kernel"]) == (str(folder), str(notebook), "k")
    assert (context["python"], context["surface"]) == ("/venv/bin/python", "magic")
    assert document(found)["extras"]["paijupyter"]["notebook"] == {"path": "n.ipynb", "cell": "abc"}
    assert prepared("--kernel-free", folder, "1\n").request["context"]["python"] is None


def test_the_hash_of_a_cell_is_of_what_would_be_submitted(folder: Path) -> None:
    def digest(line: str, body: str) -> str:
        return str(prepared(line, folder, body, cell_id="c").request["context"]["cell"]["hash"])

    assert digest("--param lr=1", "print(1)\n") == digest("--param lr=1 --wait --as job", "print(1)\n")
    assert digest("--param lr=1", "print(1)\n") != digest("--param lr=2", "print(1)\n")
    assert digest("--param lr=1", "print(1)\n") != digest("--param lr=1", "print(2)\n")


@pytest.mark.parametrize(("line", "mode"), [("", "normal"), ("--again", "again"), ("--replace", "replace")])
def test_the_mode_of_a_submission(line: str, mode: str, folder: Path) -> None:
    found = prepared(line, folder, "print(1)\n")
    assert found.request["mode"] == mode
    assert found.request["requestId"] != prepared(line, folder, "print(1)\n").request["requestId"]


def test_secrets_are_resolved_where_the_user_is_and_only_for_the_submission(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O20; architecture decision 8: a secret is a name and a reference."""
    monkeypatch.setenv("HF", CANARY)
    found = prepared("--secret A=env:HF --secret B=ask --secret C=keyring:k", folder, "print(1)\n")
    assert CANARY not in json.dumps(found.request)
    client, prompts = FakeClient(), []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return CANARY + "-2"

    submission.submit(client, found, ask)
    assert CANARY not in json.dumps(client.planned)
    assert prompts == ["Secret B: "]
    assert client.submitted[0]["secrets"] == {
        "A": {"value": CANARY, "reference": "env:HF"},
        "B": {"value": CANARY + "-2", "reference": "ask"},
        "C": {"reference": "keyring:k"},
    }
    assert CANARY not in client.submitted[0]["document"]
    assert document(found)["secrets"] == {"A": "", "B": "", "C": ""}


def test_a_secret_that_is_missing_submits_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    client = FakeClient()
    with pytest.raises(UsageProblem, match="Variable `NOT_SET` of secret `A` is not set here"):
        submission.submit(client, prepared("--secret A=env:NOT_SET", folder, "1\n"))
    with pytest.raises(UsageProblem, match="Secret `A` was left empty"):
        submission.submit(client, prepared("--secret A=ask", folder, "1\n"), lambda prompt: "")
    assert client.submitted == []


def test_a_value_in_place_of_a_reference_is_not_repeated(folder: Path) -> None:
    with pytest.raises(UsageProblem) as caught:
        prepared(f"--secret A={CANARY}", folder, "1\n")
    assert CANARY not in str(caught.value)


def test_nobody_is_asked_for_a_secret_of_a_plan_that_is_refused(folder: Path) -> None:
    problem = Problem("error", "no-room", "Role `worker` never fits.")
    client = FakeClient([problem])

    def ask(prompt: str) -> str:
        raise AssertionError("asked")

    with pytest.raises(submission.PlanRefused) as caught:
        submission.submit(client, prepared("--secret A=ask", folder, "1\n"), ask)
    assert caught.value.problems == [problem]
    assert client.submitted == []


def test_what_was_found_here_joins_the_plan(folder: Path) -> None:
    found = prepared("--param lr=1", folder, "lr = 2\n")
    submitted = submission.submit(FakeClient(), found)
    assert [each.code for each in submitted.problems] == ["parameter-overwritten"]
    assert submitted.created


def test_a_package_that_cannot_be_taken_is_a_problem_of_the_plan(folder: Path) -> None:
    found = submission.Submission(
        {"context": {}}, problems=(Problem("error", "too-large", "Folder is large."),)
    )
    assert submission.plan(FakeClient(), found)["ok"] is False


def test_replace_without_a_cell_stops_the_namesakes_of_this_folder(folder: Path) -> None:
    """P2: resubmission never clashes; optional replace mode."""
    there = str(folder)
    jobs = [
        {"id": "1", "shortName": "train", "state": "running", "folder": there},
        {"id": "2", "shortName": "train", "state": "waiting", "folder": there},
        {"id": "3", "shortName": "other", "state": "running", "folder": there},
        {"id": "4", "shortName": "train", "state": "running", "folder": "/elsewhere"},
    ]
    client = FakeClient(jobs=jobs)
    submission.submit(client, prepared("--replace train.py", folder))
    assert sorted(client.stopped) == ["1", "2"]
    client = FakeClient(jobs=jobs)
    submission.submit(client, prepared("--replace", folder, "1\n", cell_id="c"))
    assert client.stopped == []  # Of a cell the engine knows it by itself.


def test_what_is_left_out_is_said(folder: Path) -> None:
    (folder / ".gitignore").write_text("data/\n")
    (folder / "data").mkdir()
    (folder / "data" / "big.bin").write_bytes(b"x" * 1000)
    found = prepared("train.py", folder)
    assert any(said.startswith("data/ (.gitignore, ") for said in found.left_out)
