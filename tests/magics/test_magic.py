"""``%paijob`` and ``%%paijob`` in a shell (architecture, "Running a %%paijob cell"; P3, P4, P19)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from IPython.core.error import StdinNotImplementedError, UsageError

from paijupyter.client.card import MIME
from paijupyter.client.job import Job, JobFailed
from paijupyter.errors import Problem
from paijupyter.magics.runner import Detached
from paijupyter.magics.show import PackageProgress

Texts = Callable[[], list[str]]


def test_loading_imports_next_to_nothing() -> None:
    """``%load_ext`` stays cheap: no options, no client, no pydantic, no YAML (architecture decision 12)."""
    code = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
config = Config(); config.HistoryManager.enabled = False
shell = InteractiveShell.instance(config=config)
before = set(sys.modules)
shell.run_line_magic("load_ext", "paijupyter")
print(*sorted(name for name in set(sys.modules) - before if not name.startswith("IPython")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = {"paijupyter", "paijupyter._version", "paijupyter.magics", "paijupyter.magics.magic"}
    ours.add("paijupyter.magics.history")  # notes which cell each run is of, from the first one on
    assert set(done.stdout.split()) <= ours


def test_loading_twice_adds_nothing(shell: Any) -> None:
    matchers = len(shell.Completer.custom_matchers)
    shell.run_line_magic("reload_ext", "paijupyter")
    assert len(shell.Completer.custom_matchers) == matchers


def test_a_cell_is_submitted_and_its_card_shown_once(shell: Any, client: Any) -> None:
    result = shell.run_cell("%%paijob --name mnist --param lr=0.1\nprint(lr)\n")
    assert result.success and result.result is None
    (shown,) = shell.display_pub.outputs
    assert set(shown["data"]) == {MIME, "text/html", "text/plain"}
    assert shown["transient"]["display_id"]
    (request,) = client.submitted
    assert "learning" not in request["document"] and "lr: 0.1" in request["document"].replace('"', "")
    assert request["context"]["surface"] == "magic"
    assert request["context"]["python"] == sys.executable


def test_only_the_name_that_was_asked_for_is_assigned(shell: Any, client: Any) -> None:
    before = set(shell.user_ns)
    shell.run_cell("%%paijob\nprint(1)\n").raise_error()
    assert set(shell.user_ns) <= before | {"_i", "_ii", "_iii", "_i1", "_exit_code"}
    shell.run_cell("%%paijob --as job\nprint(1)\n").raise_error()
    assert isinstance(shell.user_ns["job"], Job)
    with pytest.raises(UsageError, match="Option `--as` needs a name of a variable"):
        shell.run_cell_magic("paijob", "--as 1x", "print(1)\n")


def test_values_come_from_the_users_names_and_nothing_else_is_expanded(shell: Any, client: Any) -> None:
    shell.user_ns.update(rate=0.25, label="x")
    shell.run_cell(
        "%%paijob --param lr={rate} --env A=$HOME --env B=a{label}\nprint('{rate} $HOME')\n"
    ).raise_error()
    document = client.submitted[0]["document"].replace('"', "")
    assert "lr: 0.25" in document
    assert "A: $HOME" in document and "B: a{label}" in document


def test_what_is_wrong_is_one_clean_line(shell: Any, client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Domain errors are one line, also inside a cell that runs on (architecture decision 13)."""
    for cell in (
        "%%paijob --nosuch\nprint(1)\n",
        "%%paijob --gpu x\nprint(1)\n",
        "%%paijob\n!ls\n",
        "%%paijob\n\n",
        "%%paijob",
        "%paijob frobnicate",
        "%paijob --wait",
        "%paijob logs a b",
    ):
        result = shell.run_cell(cell)
        assert isinstance(result.error_in_exec, UsageError), cell
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("UsageError: ") and captured.err.count("\n") == 1, cell
    assert client.submitted == []


def test_a_plan_with_an_error_is_shown_and_fails_the_cell(shell: Any, client: Any, texts: Texts) -> None:
    client.problems = [Problem("error", "no-room", "Role `worker` never fits.", line=3).to_json()]
    with pytest.raises(UsageError, match="line 3: Role `worker` never fits"):
        shell.run_cell_magic("paijob", "--secret A=ask", "print(1)\n")
    assert "cannot be submitted: 1 error" in texts()[0]
    assert client.submitted == []


def test_warnings_of_the_plan_are_folded_into_the_card(shell: Any, client: Any, texts: Texts) -> None:
    client.problems = [Problem("warning", "w", "Something is odd.").to_json()]
    shell.run_cell_magic("paijob", "", "print(1)\n")
    assert "⚠ Something is odd." in texts()[0]
    assert "<details" in shell.display_pub.outputs[0]["data"]["text/html"]


@pytest.mark.parametrize("line", ["--plan --name mnist", "plan --name mnist"])
def test_plan_submits_nothing(line: str, shell: Any, client: Any, texts: Texts) -> None:
    shell.run_cell_magic("paijob", line, "print(1)\n")
    assert "can be submitted" in texts()[0]
    assert client.submitted == []


def test_waiting_streams_the_log_and_ends_with_the_final_card(
    shell: Any, client: Any, texts: Texts, capsys: pytest.CaptureFixture[str]
) -> None:
    result = shell.run_cell("%%paijob --wait --as job\nprint(1)\n")
    assert result.success
    assert capsys.readouterr().out == "mnist-k3f2qd is submitted to local\nworker-0  hello\n"
    (card,) = texts()
    assert card.startswith("✓ succeeded")
    assert shell.user_ns["job"].state == "succeeded"


def test_a_job_that_fails_fails_the_cell_with_one_line(
    shell: Any, client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    task = {"role": "worker", "index": 0, "code": 3, "signal": None, "lastLines": []}
    client.final = {**client.view, "state": "failed", "reason": "user", "failedTask": task}
    result = shell.run_cell("%%paijob --wait --as job\nprint(1)\n")
    assert isinstance(result.error_in_exec, JobFailed)
    last = capsys.readouterr().out.rstrip("\n").splitlines()[-1]
    assert "failed: worker-0 ended with exit code 3" in last
    assert "Traceback" not in last
    assert shell.user_ns["job"].state == "failed"


def test_interrupting_the_wait_detaches(
    shell: Any, client: Any, texts: Texts, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interrupt detaches, stop is explicit (architecture decision 7)."""
    client.interrupt = True
    result = shell.run_cell("%%paijob --wait\nprint(1)\n")
    assert isinstance(result.error_in_exec, Detached)
    assert texts()[0].startswith("○ waiting")
    said = capsys.readouterr().out
    assert "`mnist-k3f2qd` goes on. Stop it with: %paijob stop mnist-k3f2qd" in said


def test_the_unfinished_job_of_the_same_cell_is_shown_with_a_word(
    shell: Any, client: Any, texts: Texts, monkeypatch: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(client, "submit", lambda request: {**client.view, "created": False})
    shell.run_cell_magic("paijob", "", "print(1)\n")
    assert (
        "→ The job of this cell has not ended, so nothing was submitted: --again submits another."
        in texts()[0]
    )
    shell.run_cell_magic("paijob", "--wait", "print(1)\n")
    assert capsys.readouterr().out.startswith("mnist-k3f2qd runs already on local\n")


def test_a_secret_that_nobody_can_type_is_one_line(
    shell: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(prompt: str) -> str:
        raise StdinNotImplementedError("no stdin")

    monkeypatch.setattr("getpass.getpass", ask)
    with pytest.raises(UsageError, match="Secret `A` cannot be asked for here: nobody can answer"):
        shell.run_cell_magic("paijob", "--secret A=ask", "print(1)\n")


def test_a_large_package_says_how_far_it_is() -> None:
    shown: list[str] = []

    class Recorder:
        def show(self, bundle: Any) -> None:
            shown.append(bundle["text/plain"])

    recorder: Any = Recorder()
    progress = PackageProgress(recorder)
    progress(5, 10)
    progress(10, 10)
    progress(5, 100_000_000)
    progress(100_000_000, 100_000_000)
    assert shown == ["packaged 100 MB"]


def test_last_is_of_this_kernel(shell: Any, client: Any) -> None:
    """P1: every verb accepts name, id or last."""
    shell.run_line_magic("paijob", "get")
    shell.run_line_magic("paijob", "stop last")
    shell.run_line_magic("paijob", "logs mnist")
    first, second, third = client.scopes
    assert first["ref"] == second["ref"] == "last"
    assert first["kernel"] == second["kernel"] and first["kernel"].startswith("ipython-")
    assert third == {"ref": "mnist"}


def test_verbs_show_text_and_tables(shell: Any, client: Any, texts: Texts) -> None:
    for verb in ("list", "profile list", "stop", "export --what submitted", "get"):
        shell.run_line_magic("paijob", verb)
    listed, profiles, stopped, exported, card = texts()
    assert listed.splitlines()[0].split() == ["state", "name", "profile", "tasks", "time", "what"]
    assert "○ waiting  mnist-k3f2qd" in listed
    assert "lab" in profiles
    assert stopped == "`mnist-k3f2qd` stopped. Its logs stay."
    assert exported == "# submitted\n"
    assert card.startswith("○ waiting")
    assert "<table" in shell.display_pub.outputs[0]["data"]["text/html"]


def test_json_is_for_machines(shell: Any, client: Any) -> None:
    shell.run_line_magic("paijob", "get --json")
    assert shell.display_pub.outputs[0]["data"]["application/json"]["name"] == "mnist-k3f2qd"


def test_retry_shows_the_card_of_the_new_job(shell: Any, client: Any, texts: Texts) -> None:
    shell.run_line_magic("paijob", "retry last --as again")
    assert "mnist-aaaaa2" in texts()[0]
    assert shell.user_ns["again"].id == "02"


@pytest.mark.parametrize("line", ["", "--help", "-h", "help"])
def test_help_lists_the_verbs(line: str, shell: Any, texts: Texts) -> None:
    shell.run_line_magic("paijob", line)
    assert "usage: %paijob VERB" in texts()[0] and "\n  logs " in texts()[0]


def test_help_of_a_verb_and_of_the_cell(shell: Any, texts: Texts) -> None:
    shell.run_line_magic("paijob", "logs --help")
    shell.run_cell("%%paijob --help\nprint(1)\n").raise_error()
    logs, cell = texts()
    assert "usage: %paijob logs" in logs
    assert "usage: %%paijob" in cell and "--sh" in cell


def test_the_question_mark_shows_the_whole_help(shell: Any) -> None:
    found = shell.object_inspect_mime("%paijob")["text/plain"]
    assert "usage: %paijob VERB" in found and "--role ROLE" in found


def test_secrets_are_asked_for_without_being_shown(
    shell: Any, client: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """O20: the value never enters the notebook."""
    monkeypatch.setattr("getpass.getpass", lambda prompt: "canary-1")
    shell.run_cell("%%paijob --secret A=ask --wait\nprint(1)\n").raise_error()
    assert client.submitted[0]["secrets"]["A"]["value"] == "canary-1"
    shown = str([each["data"] for each in shell.display_pub.outputs]) + str(shell.user_ns)
    assert "canary-1" not in shown + capsys.readouterr().out
