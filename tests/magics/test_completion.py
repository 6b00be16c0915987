"""Completion of ``%paijob`` lines."""

from __future__ import annotations

from typing import Any

import pytest

from paijupyter.errors import PaiJupyterError
from paijupyter.magics.completion import candidates


@pytest.mark.parametrize(
    ("before", "fragment", "found"),
    [
        ([], "lo", ["logs", "login"]),
        ([], "de", ["delete"]),
        (["logs"], "--f", ["--follow"]),
        (["logs"], "la", ["last"]),
        (["logs"], "mn", ["mnist-k3f2qd"]),
        (["list", "--state"], "s", ["succeeded", "stopped"]),
        (["submit", "--profile"], "", ["local", "lab"]),
        (["submit", "--role"], "", []),
        (["export", "x", "--what"], "", ["source", "submitted"]),
        (["profile"], "te", ["test"]),
        (["profile", "show"], "la", ["lab"]),
        (["secret"], "s", ["set"]),
        (["frobnicate"], "--he", ["--help"]),
    ],
)
def test_verbs_flags_jobs_and_profiles(
    before: list[str], fragment: str, found: list[str], client: Any
) -> None:
    assert candidates(before, fragment) == found


def test_a_cell_needs_no_verb(client: Any) -> None:
    assert candidates([], "--sec", is_cell=True) == ["--secret"]
    assert "--json" not in candidates([], "--", is_cell=True)


def test_no_engine_is_started_to_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*, start: bool = True) -> Any:
        assert not start
        raise PaiJupyterError("server-unreachable", "No.", status=503)

    monkeypatch.setattr("paijupyter.client.client.JobsClient.connect", connect)
    assert candidates(["logs"], "") == ["last"]
    assert candidates(["submit", "--profile"], "") == ["local"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("%paijob lo", "logs"),
        ("%paijob logs --fol", "--follow"),
        ("%%paijob --para", "--param"),
        ("x = 1\n%paijob sto", "stop"),
    ],
)
def test_the_shell_completes_our_lines(line: str, found: str, shell: Any, client: Any) -> None:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        completions = {each.text for each in shell.Completer.completions(line, len(line))}
    assert found in completions


def test_other_lines_are_left_alone(shell: Any, client: Any) -> None:
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        completions = {each.text for each in shell.Completer.completions("%lo", 3)}
    assert "logs" not in completions and "%load_ext" in completions
