"""Notebooks as jobs, and what jobs were made of, through the real engine with a real kernel in the task."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from paijupyter.client.client import JobsClient
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.client.submission import PlanRefused, plan, prepare, submit
from paijupyter.client.verbs import run
from paijupyter.errors import Conflict, PaiJupyterError, UsageProblem
from paijupyter.package import select

FIRST = "import json, os, pathlib\nstart = 1"
TRAIN = """\
import time
while wait and not pathlib.Path(wait).exists():
    time.sleep(0.02)
print(json.dumps({"loss": lr * 2}), flush=True)
pathlib.Path(os.environ["PAI_OUTPUT_DIR"], "model.txt").write_text(str(lr))"""


def write(folder: Path, *more: str) -> Path:
    cells = [
        new_code_cell(FIRST, id="first"),
        new_code_cell("lr: float = 0.5\nwait: str = ''", id="given", metadata={"tags": ["parameters"]}),
        new_code_cell(TRAIN, id="train"),
        new_code_cell("f'loss is {lr * 2}'", id="said", metadata={"tags": ["pai:report"]}),
        *(new_code_cell(source, id=f"more-{number}") for number, source in enumerate(more)),
    ]
    path = folder / "train.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return path


def prepared(folder: Path, *words: str) -> Any:
    return prepare(parse_verb("submit", words, "cli"), Origin("cli", folder, sys.executable))


def submitted(client: JobsClient, folder: Path, *words: str) -> dict[str, Any]:
    return dict(submit(client, prepared(folder, *words)).view)


def verb(client: JobsClient, folder: Path, *words: str) -> Any:
    parsed = parse_verb(words[0], words[1:], "cli")
    return run(lambda: client, parsed, Origin("cli", folder, sys.executable), lambda _: "")


def test_a_notebook_runs_and_what_it_was_made_of_is_known(tmp_path: Path, until: Callable[..., Any]) -> None:
    """O1, O19: progress by cell, the executed notebook beside its source; provenance, rerun, diff, report."""
    client, (work, flag) = JobsClient.connect(), (tmp_path / "work", tmp_path / "go")
    work.mkdir()
    source = write(work)
    original = source.read_bytes()
    package = prepared(work, "train.ipynb").request["package"]
    first = submitted(client, work, "train.ipynb", "--param", "lr=1", "--param", f"wait={flag}")
    running = until(lambda: _at(client.get(first["id"]), 3), 100, "the third cell")
    assert running["message"] == "Cell 3 of 4: `import time`"
    assert running["progress"] == {"done": 3, "total": 4, "unit": "cell", "fraction": 0.5, "etaSeconds": None}
    flag.touch()
    view = client.wait(first["id"], timeout=100)
    assert view["state"] == "succeeded", view
    assert view["metrics"]["last"] == {"loss": 2.0}
    beside = work / f"{first['name']}.ipynb"
    assert view["executedNotebook"] == str(beside)
    assert source.read_bytes() == original
    executed = nbformat.read(beside, as_version=4)
    assert executed.cells[2].source.startswith("# Parameters\nlr = 1.0\n")
    assert executed.cells[4].outputs[0].data["text/plain"] == "'loss is 2.0'"
    assert {each.path for each in select(work).excluded} >= {beside.name}
    assert prepared(work, "train.ipynb").request["package"] == package

    found = client.history.provenance(first["id"])
    assert [each["number"] for each in found["notebook"]["cells"]] == [1, 2, 3, 4]
    assert found["packageSha256"] == package and found["parameters"]["lr"] == 1.0
    assert found["environment"]["packages"]["nbclient"] and found["environment"]["python"].startswith("3.")

    repeated = verb(client, work, "rerun", first["name"])
    assert client.wait(repeated.view["id"], timeout=100)["state"] == "succeeded"
    # Somebody may install something here meanwhile; that is told, and is the only thing that is.
    assert {each["what"] for each in repeated.view["differs"]} <= {"environment"}
    assert repeated.view["clonedFrom"] == first["id"]
    same = client.history.diff(first["id"], repeated.view["id"])
    made_of = (
        "code",
        "commands",
        "parameters",
        "images",
        "resources",
        "data",
        "secrets",
        "profile",
        "versions",
    )
    assert not any(same[part] for part in made_of)
    assert same["environment"]["known"] and not same["environment"]["interpreter"]
    assert (same["results"]["cells"], same["results"]["outputs"]) == ([], [])

    source.write_text(source.read_text().replace("loss is", "the loss is"))
    other = submitted(client, work, "train.ipynb", "--param", "lr=2")
    assert client.wait(other["id"], timeout=100)["state"] == "succeeded"
    text = verb(client, work, "diff", first["name"], other["name"]).text
    assert "changed train.ipynb" in text and "cell 4 changed" in text
    assert "lr: 1 → 2" in text and "loss: 2 → 4" in text
    assert "output worker-0/model.txt" in text and "made of the same" not in text

    reply = verb(client, work, "report", first["name"], other["name"], "-o", "sub.ipynb")
    written = nbformat.read(work / "sub.ipynb", as_version=4)
    nbformat.validate(written)
    assert reply.data["jobs"] == [first["id"], other["id"]]
    assert "<code>'loss is 2.0'</code> | <code>'the loss is 4.0'</code>" in written.cells[2].source
    with pytest.raises(UsageProblem, match="is there and is no report"):
        verb(client, work, "report", first["name"], "-o", "train.ipynb")


def _at(view: dict[str, Any], cell: int) -> dict[str, Any] | None:
    assert view["state"] in ("waiting", "running"), view
    return view if (view["execution"] or {}).get("cell") == cell else None


def test_a_failed_cell_is_in_the_card_and_the_rest_is_kept(tmp_path: Path) -> None:
    client = JobsClient.connect()
    write(tmp_path, "import nowhere")
    view = client.wait(submitted(client, tmp_path, "train.ipynb")["id"], timeout=100)
    assert view["state"] == "failed"
    assert view["message"] == "Cell 5 raised ModuleNotFoundError: No module named 'nowhere'."
    assert "Add `nowhere` to requirements.txt" in view["advice"]
    shown = verb(client, tmp_path, "get", view["id"]).text
    assert "Cell 5 raised ModuleNotFoundError" in shown and f"{view['name']}.ipynb" in shown
    executed = nbformat.read(view["executedNotebook"], as_version=4)
    assert executed.cells[3].outputs and executed.cells[-1].outputs[-1].output_type == "error"


def test_a_repetition_that_cannot_be_the_same_is_refused(tmp_path: Path) -> None:
    client = JobsClient.connect()
    (tmp_path / "train.py").write_text("print(1)\n")
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    found = prepare(parse_verb("submit", ["train.py"], "cli"), Origin("cli", tmp_path, str(python)))
    job = submit(client, found).view["id"]
    client.wait(job, timeout=60)
    python.unlink()
    with pytest.raises(PaiJupyterError, match="is no longer there") as caught:
        client.history.rerun(job)
    assert (caught.value.code, caught.value.status) == ("interpreter-gone", Conflict("x", "x").status)


def test_the_plan_says_what_is_against_a_notebook(tmp_path: Path) -> None:
    """All problems at once, each with its cell; also for a document that comes without options."""
    client = JobsClient.connect()
    write(tmp_path, "name = input('who? ')")
    found = plan(client, prepared(tmp_path, "train.ipynb", "--param", "lrr=1"))
    codes = {each["code"]: each for each in found["problems"]}
    assert (codes["unknown-parameter"]["hint"], codes["unknown-parameter"]["cell"]) == ("`lr` is near.", 2)
    assert (codes["asks-for-input"]["cell"], codes["asks-for-input"]["line"]) == (5, 1)
    made = client.history.document_of(str(tmp_path / "train.ipynb"), parameters={"lr": "3"}, until="said")
    assert [each["name"] for each in made["parameters"]] == ["lr", "wait"]
    assert "notebook train.ipynb --until said" in made["document"]
    wrong = {
        "document": made["document"].replace("lr: 3", "lr: fast"),
        "package": prepared(tmp_path, "train.ipynb").request["package"],
    }
    (problem,) = [each for each in client.plan(wrong)["problems"] if each["severity"] == "error"]
    assert problem["message"] == "Parameter `lr` of cell 2 is a float, and `fast` is none."


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        ("{", (), "is not valid JSON, so it is no notebook"),
        (json.dumps({"nbformat": 4}), (), "is JSON without cells"),
        (json.dumps({"nbformat": 9, "cells": []}), (), "has notebook format 9"),
        ("ok", ("--until", "nope"), "Cell `nope` does not exist"),
        ("ok", ("--param", "lr=fast"), "Parameter `lr` of cell 2 is a float, and `fast` is none."),
        ("ok", ("--param", "lr=fast", "extra"), "Argument `extra` after the notebook has no use."),
    ],
)
def test_a_notebook_that_cannot_be_a_job(
    tmp_path: Path, content: str, words: tuple[str, ...], said: str
) -> None:
    path = write(tmp_path)
    if content != "ok":
        path.write_text(content)
    with pytest.raises(UsageProblem, match=said):
        prepared(tmp_path, "train.ipynb", *words)


def test_a_notebook_without_code_is_refused_by_the_plan(tmp_path: Path) -> None:
    nbformat.write(new_notebook(cells=[]), tmp_path / "empty.ipynb")
    with pytest.raises(PlanRefused, match=r"`empty\.ipynb` has no code"):
        submit(JobsClient.connect(), prepared(tmp_path, "empty.ipynb"))


def test_this_notebook_is_the_one_of_the_kernel(tmp_path: Path) -> None:
    path = write(tmp_path)
    options = parse_verb("submit", ["this-notebook", "--param", "lr=3"], "magic")
    found = prepare(options, Origin("magic", tmp_path, sys.executable, path))
    assert found.request["context"]["notebook"] == str(path)
    assert "lr: 3" in found.request["document"]
    with pytest.raises(UsageProblem, match=r"file is not known here\."):
        prepare(options, Origin("magic", tmp_path, sys.executable))


def test_where_nothing_is_installed_a_script_travels_too(tmp_path: Path) -> None:
    write(tmp_path)
    found = prepared(tmp_path, "train.ipynb", "--install", "never")
    assert "--script .paijob/notebook.py" in found.request["document"]


def test_a_script_is_not_exported_as_a_folder(tmp_path: Path) -> None:
    """P12: `-o study.py` means a script; a folder of that name would be in its way for ever after."""
    write(tmp_path)
    with pytest.raises(UsageProblem, match="named like a script") as refused:
        verb(JobsClient.connect(), tmp_path, "export", "train.ipynb", "-o", "study.py")
    assert "--to study.py" in refused.value.hint
    assert not (tmp_path / "study.py").exists()


@pytest.mark.parametrize(
    ("words", "body", "said"),
    [
        (["--carry", "scaler", "train.py"], None, "Option `--carry` needs a notebook."),
        (["--order", "run", "train.py"], None, "Option `--order` needs a notebook."),
        (["--with-cells"], None, "Option `--with-cells` needs a cell below it."),
        (["--sh", "--carry", "scaler"], "echo hi", "Option `--carry` is for a cell with Python."),
        (["--carry", "scaler"], "print(scaler)", "Option `--carry` needs a kernel"),
    ],
)
def test_what_is_said_of_cells_is_never_left_unheard(
    tmp_path: Path, words: list[str], body: str | None, said: str
) -> None:
    """`--carry` alone asks for the cell as a script, which the object travels with."""
    (tmp_path / "train.py").write_text("print(1)\n")
    path = tmp_path / "train.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(body or "1")]), path)
    origin = Origin("magic", tmp_path, sys.executable, path)
    with pytest.raises(UsageProblem, match=re.escape(said)):
        prepare(parse_verb("submit", words, "magic"), origin, body)
