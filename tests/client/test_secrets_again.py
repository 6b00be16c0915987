"""Retry and clone keep references and ask only for `ask`; a job that lost its values is given them again."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from paijupyter import paths
from paijupyter.client import submission, verbs
from paijupyter.client.client import JobsClient
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.errors import PaiJupyterError, UsageProblem

COMMAND = 'test "$ASKED" = typed && test "$SET" = of-env && echo right'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OF_TEST", "of-env")
    return tmp_path


def run(folder: Path, *words: str, ask: Any = None) -> verbs.Reply:
    return verbs.run(JobsClient.connect, parse_verb(words[0], words[1:], "cli"), Origin("cli", folder), ask)


def submit(folder: Path, *words: str, command: str = COMMAND) -> dict[str, Any]:
    line = (
        "--name",
        "j",
        *words,
        "--secret",
        "ASKED=ask",
        "--secret",
        "SET=env:OF_TEST",
        "--command",
        command,
    )
    prepared = submission.prepare(parse_verb("submit", line, "cli"), Origin("cli", folder))
    return dict(submission.submit(JobsClient.connect(), prepared, lambda prompt: "typed").view)


def test_retry_and_clone_ask_for_what_was_asked_and_for_nothing_else(folder):
    """O20, decision 8: values are nowhere kept; references are."""
    client = JobsClient.connect()
    first = submit(folder)
    assert client.wait(first["id"], timeout=60)["state"] == "succeeded"
    assert first["secretReferences"] == {"ASKED": "ask", "SET": "env:OF_TEST"}
    for words in (("retry", first["id"]), ("clone", first["id"], "--param", "x=1")):
        asked: list[str] = []
        reply = run(folder, *words, ask=lambda prompt: asked.append(prompt) or "typed")  # noqa: B023
        assert asked == ["Secret ASKED: "]
        assert client.wait(reply.view["id"], timeout=60)["state"] == "succeeded"
        assert reply.view["secretReferences"] == first["secretReferences"]


def test_a_variable_that_is_gone_is_said_and_another_reference_goes_before(folder, monkeypatch):
    first = submit(folder)
    monkeypatch.delenv("OF_TEST")
    with pytest.raises(UsageProblem, match="Variable `OF_TEST` of secret `SET` is not set here"):
        run(folder, "retry", first["id"], ask=lambda prompt: "typed")
    monkeypatch.setenv("NEW", "of-env")
    reply = run(folder, "retry", first["id"], "--secret", "SET=env:NEW", ask=lambda prompt: "typed")
    assert JobsClient.connect().wait(reply.view["id"], timeout=60)["state"] == "succeeded"


def test_a_job_whose_values_are_gone_waits_and_goes_on_when_it_is_given_them(folder, until):
    """Decision 8: the machine lost its runtime folder while the job was queued."""
    client = JobsClient.connect()
    client.settings.edit_profile("local", {"cpu": 1})
    before = submit(folder, command="while [ ! -e go ]; do sleep 0.05; done")
    waiting = submit(folder)
    until(lambda: client.get(waiting["id"])["reason"] == "queued")
    with pytest.raises(PaiJupyterError, match="does not wait for a secret"):
        run(folder, "secret", "give", waiting["id"], ask=lambda prompt: "typed")
    os.kill(client.version()["engine"]["pid"], signal.SIGKILL)
    (paths.runtime_dir() / "secrets" / f"{waiting['id']}.json").unlink()
    view = until(lambda: (found := client.get(waiting["id"]))["reason"] == "secret" and found)
    assert view["advice"] == f"Give it its values again: paijob secret give {waiting['name']}"
    client.stop(before["id"])
    asked: list[str] = []
    reply = run(folder, "secret", "give", waiting["name"], ask=lambda prompt: asked.append(prompt) or "typed")
    assert asked == ["Secret ASKED: "] and "goes on" in reply.text
    assert client.wait(waiting["id"], timeout=60)["state"] == "succeeded"
    assert "right" in "".join(chunk.text for chunk in client.logs(waiting["id"]))
    assert not list((paths.runtime_dir() / "secrets").iterdir())


def test_what_is_still_missing_is_named(folder, until):
    client = JobsClient.connect()
    client.settings.edit_profile("local", {"cpu": 1})
    submit(folder, command="sleep 300")
    waiting = submit(folder)
    until(lambda: client.get(waiting["id"])["reason"] == "queued")
    os.kill(client.version()["engine"]["pid"], signal.SIGKILL)
    shutil.rmtree(paths.runtime_dir() / "secrets")
    until(lambda: client.get(waiting["id"])["reason"] == "secret")
    with pytest.raises(PaiJupyterError) as refused:
        client.settings.give_secrets(waiting["id"], {"ASKED": {"value": "typed"}})
    assert refused.value.code == "secrets-needed" and "`SET`" in refused.value.message
    for job in client.list()["jobs"]:
        client.stop(job["id"])
