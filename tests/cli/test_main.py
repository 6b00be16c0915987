"""Exit codes and lines of the command line, with a client that needs no engine (P3, P4, P31, P33)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paijupyter.cli import main, terminal
from paijupyter.errors import NotFound, PaiJupyterError, Problem


@dataclass(frozen=True)
class Chunk:
    task: str
    text: str
    attempt: int = 0


class FakeGroups:
    """No groups."""

    def list(self, **filters: Any) -> dict[str, Any]:
        return {"groups": [], "next": None, "seq": 1}


class FakeClient:
    def __init__(self) -> None:
        self.view: dict[str, Any] = {
            "id": "01JD",
            "name": "train-k3f2qd",
            "profile": "local",
            "state": "waiting",
            "reason": "queued",
            "submittedAt": "2026-11-30T10:00:00Z",
            "roles": {"worker": {"instances": 2, "states": {}}},
        }
        self.final: dict[str, Any] = {**self.view, "state": "succeeded", "reason": ""}
        self.problems: list[dict[str, Any]] = []
        self.submitted: list[Mapping[str, Any]] = []
        self.error: BaseException | None = None
        self.asked: list[Any] = []
        self.groups = FakeGroups()

    def _answer(self, value: Any) -> Any:
        if self.error is not None:
            raise self.error
        return value

    def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        errors = any(each["severity"] == "error" for each in self.problems)
        return {"ok": not errors, "name": "train-k3f2qd", "profile": "local", "problems": self.problems}

    def submit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.submitted.append(request)
        return self._answer({**self.view, "created": True})

    def get(self, ref: str, **scope: Any) -> dict[str, Any]:
        self.asked.append((ref, scope))
        return self._answer(self.view)

    def list(self, **filters: Any) -> dict[str, Any]:
        self.asked.append(filters)
        return self._answer({"jobs": [self.view, self.final], "next": None, "seq": 1})

    def logs(
        self, ref: str, task: str | None = None, *, follow: bool = False, tail: int | None = None
    ) -> Iterator[Chunk]:
        self.asked.append((task, follow, tail))
        yield Chunk("worker-0", "one\ntwo")
        yield Chunk("worker-1", "three\n")
        if self.error is not None:
            raise self.error

    def wait(self, ref: str, timeout: float | None = None) -> dict[str, Any]:
        self.asked.append(timeout)
        return self._answer(self.final)

    def stop(self, ref: str) -> dict[str, Any]:
        return {**self.view, "state": "stopped"}

    def retry(self, ref: str, secrets: Any = None, *, resume_from: str | None = None) -> dict[str, Any]:
        return {**self.view, "name": "train-aaaaa2", "id": "02"}

    def delete(self, ref: str) -> None:
        self.asked.append(ref)

    def export(self, ref: str, what: str) -> str:
        return "name: x\r\n# no line end"

    def files(self, ref: str) -> list[dict[str, Any]]:
        return [{"path": "worker-0/m.npz", "size": 1}, {"path": "worker-0/log.txt", "size": 1}]

    def pull(self, ref: str, dest: Path, paths: Sequence[str] | None) -> list[Path]:
        self.asked.append((dest, paths))
        return [dest / path for path in paths or ["worker-0/m.npz"]]

    def version(self) -> dict[str, Any]:
        return self._answer({"version": "9.9.9", "engine": {"pid": 1}, "backends": ["local"]})

    def profiles(self) -> list[dict[str, Any]]:
        return [{"name": "local", "kind": "local"}]


FAILED_TASK = {"role": "worker", "index": 0, "code": 3, "signal": None, "lastLines": []}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, isolated_home: Path) -> FakeClient:
    fake = FakeClient()
    monkeypatch.setattr("paijupyter.client.client.JobsClient.connect", lambda **_: fake)
    folder = isolated_home / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(folder)
    return fake


Captured = pytest.CaptureFixture[str]


def test_submit_ends_with_three_lines(client: FakeClient, capsys: Captured) -> None:
    """screens.md: name and id, where it runs, what to type next."""
    assert main(["submit", "train.py", "--epochs", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "train-k3f2qd  id 01JD",
        "runs on local: worker ×2",
        "next: paijob logs train-k3f2qd -f",
    ]
    assert captured.err == ""
    (request,) = client.submitted
    assert "python train.py --epochs 2" in request["document"]
    assert request["context"]["surface"] == "cli"
    assert request["context"]["folder"] == os.getcwd()


def test_json_of_a_submission_is_the_job(client: FakeClient, capsys: Captured) -> None:
    assert main(["submit", "--json", "train.py"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "train-k3f2qd"


@pytest.mark.parametrize(
    ("final", "code", "last"),
    [
        ({"state": "succeeded"}, 0, "succeeded after 0 s"),
        (
            {"state": "failed", "reason": "user", "failedTask": FAILED_TASK},
            1,
            "failed: worker-0 ended with exit code 3",
        ),
        ({"state": "stopped", "message": "Stopped by ann."}, 3, "stopped: Stopped by ann"),
    ],
)
def test_the_end_of_the_job_decides_the_exit_code(
    final: dict[str, Any], code: int, last: str, client: FakeClient, capsys: Captured
) -> None:
    client.final = {**client.view, "reason": "", **final}
    assert main(["submit", "--wait", "train.py"]) == code
    captured = capsys.readouterr()
    assert captured.out == "worker-0  one\nworker-1  three\nworker-0  two\n"
    assert captured.err.splitlines() == ["train-k3f2qd is submitted to local", last]
    assert main(["wait", "--timeout", "1m"]) == code
    assert capsys.readouterr().err.splitlines() == [last]
    assert client.asked[-1] == 60


def test_json_of_a_wait_keeps_the_log_out_of_stdout(client: FakeClient, capsys: Captured) -> None:
    assert main(["submit", "--wait", "--json", "train.py"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["state"] == "succeeded"
    assert "worker-0  one" in captured.err


def test_advice_follows_the_failure(client: FakeClient, capsys: Captured) -> None:
    client.final = {**client.view, "state": "failed", "failedTask": FAILED_TASK, "advice": "Read the log."}
    main(["wait"])
    assert capsys.readouterr().err.splitlines()[-1] == "→ Read the log."


@pytest.mark.parametrize("words", [["submit", "--wait", "train.py"], ["wait", "last"]])
def test_interrupting_detaches(words: list[str], client: FakeClient, capsys: Captured) -> None:
    """Architecture decision 7."""
    logs, client.wait = client.logs, None  # type: ignore[assignment]

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    client.wait = client.logs = interrupted  # type: ignore[assignment,method-assign]
    assert main(words) == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "`train-k3f2qd` goes on. Stop it with: paijob stop train-k3f2qd"
    assert logs is not None


def test_interrupting_a_log_is_silent(client: FakeClient, capsys: Captured) -> None:
    client.error = None
    real = client.logs

    def interrupted(*args: Any, **more: Any) -> Iterator[Chunk]:
        yield from real(*args, **more)
        raise KeyboardInterrupt

    client.logs = interrupted  # type: ignore[method-assign]
    assert main(["logs", "-f"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words",
    [
        ["submit"],
        ["submit", "missing.py"],
        ["submit", "--gpu", "x", "train.py"],
        ["submit", "--nosuch", "train.py"],
        ["submit", "--sh", "train.py"],
        ["frobnicate"],
        ["logs", "--tail", "x"],
        ["delete"],
        ["pull", "--path", "nothing*"],
    ],
)
def test_usage_is_exit_code_2_and_one_line(words: list[str], client: FakeClient, capsys: Captured) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and "Traceback" not in captured.err


def test_a_refused_plan_is_shown_with_every_problem(client: FakeClient, capsys: Captured) -> None:
    """Architecture decision 13: all problems in one list, each with its place and what to do."""
    client.problems = [
        Problem("warning", "w", "Odd.", line=9).to_json(),
        Problem("error", "e", "Role `x` never fits.", line=3, hint="Ask for less.").to_json(),
    ]
    assert main(["submit", "train.py"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and client.submitted == []
    first, *_, error, warning = captured.err.splitlines()
    assert first == "train on local   ✕ cannot be submitted: 1 error"
    assert error == "  ✕ line 3: Role `x` never fits. Ask for less."
    assert warning == "  ⚠ line 9: Odd."
    assert main(["plan", "train.py"]) == 2
    assert "cannot be submitted" in capsys.readouterr().out


def test_warnings_are_said_and_do_not_stop(client: FakeClient, capsys: Captured) -> None:
    client.problems = [Problem("warning", "w", "Odd.").to_json()]
    assert main(["submit", "train.py"]) == 0
    assert capsys.readouterr().err == "⚠ Odd.\n"


@pytest.mark.parametrize("words", [["plan", "train.py"], ["submit", "--plan", "train.py"]])
def test_a_plan_submits_nothing(words: list[str], client: FakeClient, capsys: Captured) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("train on local   ✓ can be submitted")
    assert client.submitted == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PaiJupyterError("server-unreachable", "The job server does not answer.", status=503), 4),
        (PaiJupyterError("timeout", "The job `x` has not ended yet.", status=408), 4),
        (NotFound("Job", "x"), 2),
    ],
)
def test_errors_have_an_exit_code_and_one_line(
    error: PaiJupyterError, code: int, client: FakeClient, capsys: Captured
) -> None:
    client.error = error
    assert main(["get", "x"]) == code
    assert capsys.readouterr().err == f"{error}\n"


def test_last_is_of_this_folder(client: FakeClient) -> None:
    """P1: every verb accepts name, id or last; at the command line the latest of this folder."""
    for words in (["get"], ["get", "last"], ["stop"]):
        main(words)
    assert [each for each in client.asked if isinstance(each, tuple)] == [
        ("last", {"folder": os.getcwd()})
    ] * 3
    main(["get", "train"])
    assert client.asked[-1] == ("train", {})


def test_lists_are_plain_and_stable(client: FakeClient, capsys: Captured) -> None:
    assert main(["list", "--here", "--limit", "3", "--state", "failed"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["state", "name", "profile", "tasks", "time", "what"]
    assert first.startswith("○ waiting    train-k3f2qd  local")
    assert second.startswith("✓ succeeded  train-k3f2qd  local")
    asked = {"state": "failed", "profile": None, "folder": os.getcwd(), "limit": 3, "group": None}
    assert client.asked[0] == asked
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == ["train-k3f2qd"] * 2
    assert {"id", "name", "state", "reason", "profile"} <= set(listed[0])


def test_a_terminal_gets_the_table_of_rich(client: FakeClient, monkeypatch: Any, capsys: Captured) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr(terminal, "is_coloured", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["list"]) == 0
    drawn = capsys.readouterr().out
    assert "train-k3f2qd" in drawn and "○ waiting" in drawn
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert main(["list"]) == 0
    assert capsys.readouterr().out.startswith("state        name")


def test_logs_print_and_end_or_follow(client: FakeClient, capsys: Captured) -> None:
    assert main(["logs", "train", "--task", "worker-0", "-n", "5"]) == 0
    assert main(["logs", "-f"]) == 0
    assert [each for each in client.asked if len(each) == 3] == [("worker-0", False, 5), (None, True, None)]
    assert capsys.readouterr().out.startswith("worker-0  one\nworker-1  three\nworker-0  two\n")


def test_tasks_have_their_colour_on_a_terminal(monkeypatch: Any, capsys: Captured) -> None:
    monkeypatch.setattr(terminal, "is_coloured", lambda stream: True)
    terminal.write_log("worker-0  a\nworker-1  b\nworker-0  c\n", sys.stdout)
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.split("m")[0] == third.split("m")[0] != second.split("m")[0]
    assert first.endswith("\x1b[0m  a")


def test_export_is_byte_for_byte(client: FakeClient, capsys: Captured) -> None:
    """O27."""
    assert main(["export", "x"]) == 0
    assert capsys.readouterr().out == "name: x\r\n# no line end"
    assert main(["export", "x", "--to", "job.yaml"]) == 0
    assert Path("job.yaml").read_bytes() == b"name: x\r\n# no line end"


def test_pull_brings_what_matches(client: FakeClient, capsys: Captured) -> None:
    """O15."""
    assert main(["pull", "x", "--to", "out", "--path", "*/m.*"]) == 0
    here = Path.cwd()
    assert client.asked[-1] == (here / "out", ["worker-0/m.npz"])
    assert capsys.readouterr().out.splitlines()[0] == "1 file of `train-k3f2qd`:"
    assert main(["pull"]) == 0
    assert client.asked[-1] == (here / "train-k3f2qd", None), "outputs of two jobs do not mix"


def test_deleting_needs_a_name_and_says_what_is_gone(client: FakeClient, capsys: Captured) -> None:
    assert main(["delete", "train"]) == 0
    assert capsys.readouterr().out == "`train-k3f2qd` is deleted: its record, logs and outputs are gone.\n"
    assert client.asked[-1] == "01JD"


def test_retry_is_a_submission(client: FakeClient, capsys: Captured) -> None:
    assert main(["retry"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "train-aaaaa2  id 02"
    assert main(["retry", "--wait"]) == 0


def test_stop_says_that_logs_stay(client: FakeClient, capsys: Captured) -> None:
    """P24: cancel is not delete."""
    assert main(["stop"]) == 0
    client.view = client.final
    assert main(["stop"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "`train-k3f2qd` stopped. Its logs stay.",
        "`train-k3f2qd` has already ended: succeeded.",
    ]


def test_version_is_shown(client: FakeClient, capsys: Captured) -> None:
    """P31."""
    assert main(["version"]) == 0
    assert "engine 9.9.9" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.count(".") == 2


def test_doctor_says_what_mends(client: FakeClient, capsys: Captured) -> None:
    assert main(["doctor"]) == 4
    said = capsys.readouterr().out
    assert "✓ data folder: " in said
    assert "✕ engine: version 9.9.9" in said and "\n  → " in said
    client.error = PaiJupyterError("engine-failed", "The engine could not be started.", "See its log.", 500)
    assert main(["doctor"]) == 4
    assert "✕ engine: The engine could not be started.\n  → See its log." in capsys.readouterr().out


def test_help(client: FakeClient, capsys: Captured) -> None:
    assert main(["--help"]) == main(["submit", "--help"]) == 0
    captured = capsys.readouterr()
    assert "usage: paijob VERB" in captured.out and "usage: paijob submit" in captured.out
    assert captured.err == ""
    assert main([]) == 2
    assert "usage: paijob VERB" in capsys.readouterr().err


def test_a_large_package_says_how_far_it_is_on_a_terminal(monkeypatch: Any, capsys: Captured) -> None:
    assert terminal.package_progress() is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = terminal.package_progress()
    assert progress is not None
    progress(1, 1000)
    assert capsys.readouterr().err == ""
    progress(10_000_000, 20_000_000)
    progress(20_000_000, 20_000_000)
    assert "packaging 10 MB of 20 MB (50 %)" in capsys.readouterr().err
