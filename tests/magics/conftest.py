"""A shell in this process that keeps what it would show, and a client that answers without an engine."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@dataclass(frozen=True)
class Chunk:
    task: str
    text: str
    attempt: int = 0


PROFILES = [{"name": "local", "kind": "local"}, {"name": "lab", "kind": "local"}]


class FakeSettings:
    def profiles(self) -> dict[str, Any]:
        return {"profiles": PROFILES, "default": "local", "problems": []}


class FakeGroups:
    """There are no groups of experiments."""

    def list(self, **_: Any) -> dict[str, Any]:
        return {"groups": [], "next": None}


class FakeClient:
    """Answers like the engine, about one job that it is told the states of."""

    def __init__(self) -> None:
        self.problems: list[dict[str, Any]] = []
        self.view: dict[str, Any] = {
            "id": "01JD",
            "name": "mnist-k3f2qd",
            "shortName": "mnist",
            "profile": "local",
            "state": "waiting",
            "reason": "queued",
            "submittedAt": "2026-11-29T12:00:00.000Z",
            "roles": {"worker": {"instances": 1, "states": {}}},
        }
        self.final: dict[str, Any] = {**self.view, "state": "succeeded", "reason": ""}
        self.chunks: Sequence[Chunk] = [Chunk("worker-0", "hello\n")]
        self.interrupt = False
        self.submitted: list[Mapping[str, Any]] = []
        self.scopes: list[dict[str, Any]] = []
        self.stream: queue.Queue[dict[str, Any] | Exception | None] = queue.Queue()

    def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        errors = any(each["severity"] == "error" for each in self.problems)
        return {"ok": not errors, "name": "mnist-k3f2qd", "profile": "local", "problems": self.problems}

    def submit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.submitted.append(request)
        return {**self.view, "created": True}

    def get(self, ref: str, **scope: Any) -> dict[str, Any]:
        self.scopes.append({"ref": ref, **scope})
        return self.view

    def list(self, **_: Any) -> dict[str, Any]:
        return {"jobs": [self.view], "next": None, "seq": 1}

    settings = FakeSettings()
    groups = FakeGroups()

    def profiles(self) -> list[dict[str, Any]]:
        return PROFILES

    def stop(self, ref: str) -> dict[str, Any]:
        return {**self.view, "state": "stopped"}

    def retry(
        self, ref: str, secrets: Mapping[str, Any] | None = None, *, resume_from: str | None = None
    ) -> dict[str, Any]:
        return {**self.view, "id": "02", "name": "mnist-aaaaa2"}

    def export(self, ref: str, what: str = "source") -> str:
        return f"# {what}\n"

    def logs(self, ref: str, task: str | None = None, **_: Any) -> Iterator[Chunk]:
        yield from self.chunks
        if self.interrupt:
            raise KeyboardInterrupt

    def wait(self, ref: str, timeout: float | None = None) -> dict[str, Any]:
        if self.interrupt:
            raise KeyboardInterrupt
        return self.final

    def events(self, since: int | None = None, *, follow: bool = False) -> Iterator[dict[str, Any]]:
        while (event := self.stream.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """Return the client that every connection of this test gets."""
    fake = FakeClient()
    monkeypatch.setattr("paijupyter.client.client.JobsClient.connect", lambda **_: fake)
    return fake


class Publisher(CapturingDisplayPublisher):
    """Keeps every message, with its transient part."""

    def publish(
        self, data: Any, metadata: Any = None, *, transient: Any = None, update: bool = False, **_: Any
    ) -> None:
        self.outputs.append({"data": data, "transient": transient or {}, "update": update})


@pytest.fixture
def shell(isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a shell with the extension loaded, whose outputs are in ``display_pub.outputs``."""
    monkeypatch.chdir(isolated_home)
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=config, display_pub_class=Publisher)
    made.run_line_magic("load_ext", "paijupyter")
    yield made
    InteractiveShell.clear_instance()


@pytest.fixture
def texts(shell: Any) -> Any:
    """Return what was shown so far, as text."""
    return lambda: [each["data"].get("text/plain") for each in shell.display_pub.outputs]
