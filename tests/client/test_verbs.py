"""Verbs that ask the engine one thing (P3); what the surfaces' own tests do not show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from paijupyter.client import verbs
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.errors import UsageProblem
from paijupyter.protocol import read

DOCUMENT = """\
# mine
protocolVersion: 2
name: first
type: job
prerequisites:
  - {protocolVersion: 2, name: image, type: dockerimage, uri: x}
parameters: {lr: 0.1}   # rate
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ["echo <% $parameters.lr %>"]
"""


class FakeClient:
    def __init__(self) -> None:
        self.changes: Mapping[str, Any] = {}
        self.secrets: Any = None
        self.resumed: str | None = None

    def get(self, ref: str, **_: Any) -> dict[str, Any]:
        return {"id": "1", "name": "first-k3f2qd", "state": "succeeded", "roles": {}}

    def export(self, ref: str, what: str) -> str:
        return DOCUMENT

    def clone(self, ref: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        self.changes = changes
        return {"id": "2", "name": "first-aaaaa2", "state": "waiting", "roles": {}}

    def retry(self, ref: str, secrets: Any = None, *, resume_from: str | None = None) -> dict[str, Any]:
        self.secrets, self.resumed = secrets, resume_from
        return {"id": "2", "name": "first-aaaaa2", "state": "waiting", "roles": {}}

    def files(self, ref: str) -> list[dict[str, Any]]:
        return [{"path": "worker-0/m.npz", "size": 1}]

    def pull(self, ref: str, dest: Path, paths: Any) -> list[Path]:
        dest.mkdir(parents=True)
        return [dest / "worker-0" / "m.npz"]


def run(client: FakeClient, folder: Path, *words: str, ask: Any = None) -> verbs.Reply:
    connect: Any = lambda: client  # noqa: E731
    return verbs.run(connect, parse_verb(words[0], words[1:], "cli"), Origin("cli", folder), ask)


def test_a_clone_with_other_parameters_changes_only_their_bytes(tmp_path: Path) -> None:
    client = FakeClient()
    reply = run(client, tmp_path, "clone", "first", "--param", "lr=0.5", "--name", "second")
    text = client.changes["document"]
    assert read(text).data["parameters"] == {"lr": 0.5}
    assert read(text).data["name"] == "second"
    assert text.startswith("# mine\n") and "# rate" in text
    assert reply.submitted and reply.view is not None and reply.view["id"] == "2"


def test_a_clone_of_another_document(tmp_path: Path) -> None:
    client = FakeClient()
    (tmp_path / "job.yaml").write_text(DOCUMENT.replace("first", "third"))
    run(client, tmp_path, "clone", "-f", "job.yaml")
    assert read(client.changes["document"]).data["name"] == "third"
    with pytest.raises(UsageProblem, match=r"File `.*nowhere\.yaml` does not exist"):
        run(client, tmp_path, "clone", "-f", "nowhere.yaml")


def test_an_unchanged_clone_sends_no_document(tmp_path: Path) -> None:
    client = FakeClient()
    run(client, tmp_path, "clone", "first")
    assert client.changes == {}


def test_secrets_are_given_again_for_a_retry_or_clone(tmp_path: Path) -> None:
    """O20: a value that was typed is nowhere kept, so it is asked for again."""
    client = FakeClient()
    run(client, tmp_path, "retry", "--secret", "A=ask", ask=lambda prompt: "typed")
    assert client.secrets == {"A": {"value": "typed", "reference": "ask"}}
    run(client, tmp_path, "clone", "--secret", "A=keyring:k")
    assert client.changes == {"secrets": {"A": {"reference": "keyring:k"}}}
    run(client, tmp_path, "retry")
    assert client.secrets is None


def test_checkpoints_are_taken_along_only_when_asked(tmp_path: Path) -> None:
    client = FakeClient()
    run(client, tmp_path, "retry")
    assert client.resumed is None
    run(client, tmp_path, "retry", "--resume")
    assert client.resumed == "1"
    run(client, tmp_path, "clone", "--resume-from", "other")
    assert client.changes == {"resumeFrom": "other"}


def test_outputs_are_named_as_seen_from_here(tmp_path: Path) -> None:
    reply = run(FakeClient(), tmp_path, "pull", "--to", "out")
    assert reply.text.splitlines()[1] == "  out/worker-0/m.npz"


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words in (("pull", "--to", "file/out"), ("export", "--to", "file/job.yaml")):
        with pytest.raises(UsageProblem, match=r"Path `.*` cannot be written: Not a directory\."):
            run(FakeClient(), tmp_path, *words)
