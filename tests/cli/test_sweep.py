"""`paijob sweep` with a real engine and real tasks, as the article's script is used (T1 to T8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paijupyter.cli import main

pytestmark = pytest.mark.slow
TEMPLATE = """\
protocolVersion: 2
name: demo
type: job
prerequisites: [{protocolVersion: 2, name: image, type: dockerimage, uri: python}]
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ["echo code={1}; echo kept > $PAI_OUTPUT_DIR/f; exit {1}"]
"""


@pytest.fixture
def paijob(isolated_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Carry out a command line in a folder with a template of three experiments; return code, out, err."""
    folder = isolated_home / "project"
    folder.mkdir()
    (folder / "t.yaml").write_text(TEMPLATE)
    (folder / "x.yaml").write_text("1: [0]\n2: [3]\n3: [0]\n")
    monkeypatch.chdir(folder)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_a_sweep_from_the_first_look_to_the_last_trace(paijob: Any) -> None:
    sweep = ("sweep", "t.yaml", "--experiments", "x.yaml")
    code, out, _ = paijob(*sweep, "--print", "--only", "2-3")
    assert code == 0 and out.count("---Running experiment") == 2 and "echo code=3;" in out
    assert paijob("list")[1] == "No jobs.\n"

    code, out, _ = paijob(*sweep, "--wait", "--at-once", "2")
    assert code == 1  # 0 only if all succeeded
    assert out.startswith(
        "---Running experiment 1---\n---Running experiment 2---\n---Running experiment 3---\n"
    )
    assert "commands:" not in out and "1 failed · 2 succeeded" in out and "exit code 3" in out

    code, out, _ = paijob(*sweep, "--only", "1,3", "--wait", "-v")
    assert code == 0 and "echo code=0;" in out  # both are kept, nothing runs
    assert len(json.loads(paijob("list", "--json")[1])) == 3
    folded, opened = paijob("list")[1].splitlines(), paijob("list", "--all")[1].splitlines()
    assert len(folded) == 2 and "demo (3)" in folded[1] and "1 failed · 2 succeeded" in folded[1]
    assert len(opened) == 4 and "demo (3)" not in "".join(opened)

    code, out, _ = paijob("logs", "--group", "demo")
    assert out.splitlines() == [
        "---Running experiment 1---", "main-0  code=0", "---Running experiment 2---", "main-0  code=3",
        "---Running experiment 3---", "main-0  code=0",
    ]  # fmt: skip
    Path("x.yaml").write_text("1: [0]\n2: [0]\n3: [0]\n")
    assert paijob(*sweep, "--failed", "--wait", "--json")[0] == 0  # the edited list
    listed = json.loads(paijob("list", "--groups", "--json")[1])
    assert listed[0]["counts"] == {"succeeded": 3} and listed[0]["round"] == 3

    code, out, _ = paijob("pull", "--group", "demo", "--to", "home")
    assert (
        Path("home/2/main-0/f").read_text() == "kept\n"
        and Path("home/2.log").read_text() == "main-0  code=0\n"
    )
    assert "exit 0" in Path("home/2.yaml").read_text()

    assert paijob(*sweep, "--delete-only", "--only", "2")[:2] == (
        0,
        "experiments of group `demo` are deleted\n",
    )
    assert "2 experiments" in paijob("get", "--group", "demo")[1]
    assert paijob(*sweep, "--delete-only")[0] == 0
    assert paijob(*sweep, "--delete-only")[:2] == (0, "\n")  # nothing there: an empty line, no failure
    assert paijob("list")[1] == "No jobs.\n"


def test_what_is_wrong_is_told_before_anything_runs(paijob: Any) -> None:
    Path("x.yaml").write_text("1: [0]\n2: ['\"']\n")
    Path("t.yaml").write_text(TEMPLATE.replace("code={1}", "{nobody}"))
    code, _, err = paijob("sweep", "t.yaml", "-x", "x.yaml")
    assert code == 2 and "line 10: Placeholder `{nobody}` stands for nothing." in err
    code, _, err = paijob("sweep", "t.yaml", "-x", "x.yaml", "--only", "7")
    assert code == 2
    code, _, err = paijob("get", "--group", "nobody")
    assert code == 2 and "Group `nobody` does not exist." in err
    code, _, err = paijob("stop", "last", "--group", "demo")
    assert code == 2 and "does not go with a job" in err
