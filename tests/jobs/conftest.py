"""A backend without processes, and a service on it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from paijupyter import paths
from paijupyter.backends import base
from paijupyter.backends.base import BackendPlan, Capabilities, Change, Exit, Job, Place, Profile, TaskStatus
from paijupyter.jobs import JobService

DOCUMENT = """\
# a comment that stays
protocolVersion: 2
name: {name}
type: job
prerequisites:
  - {{protocolVersion: 2, name: image, type: dockerimage, uri: "python:3.11-slim"}}
parameters: {{lr: 0.1, epochs: 20}}
{secrets}taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 512, gpu: 0}}
    commands:
      - echo <% $parameters.lr %>
  ps:
    instances: 1
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 256, gpu: 0}}
    commands:
      - sleep 1
"""


def document(name: str = "mnist", secrets: Sequence[str] = ()) -> str:
    """Return a job document of two workers and a parameter server."""
    block = "secrets:\n" + "".join(f'  {each}: ""\n' for each in secrets) if secrets else ""
    return DOCUMENT.format(name=name, secrets=block)


class FakeBackend:
    """Does nothing by itself; a test says what happens, by ``emit``."""

    made: list[FakeBackend]
    current: dict[str, Change]  # what runs out there outlives this process

    def __init__(self, profile: Profile, place: Place) -> None:
        self.profile, self.place = profile, place
        self.secrets: dict[str, dict[str, str]] = {}
        self.told: list[tuple[str, str]] = []
        self.known: list[list[str]] = []
        self.queues: list[asyncio.Queue[Change | Exception]] = []
        self.problems: list[base.Problem] = []
        self.features: frozenset[str] = frozenset()
        self.submit_error: Exception | None = None
        self.stop_error: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.closed = False
        self.log_end = asyncio.Event()
        type(self).made.append(self)

    async def capabilities(self) -> Capabilities:
        return Capabilities("local", features=self.features)

    async def plan(self, job: Job) -> BackendPlan:
        text = f"# submitted\nname: {job.name}\n"
        return BackendPlan(text, ({"kind": "Process", "name": job.name},), tuple(self.problems), "now")

    async def submit(self, job: Job, secrets: Mapping[str, str]) -> None:
        self.told.append(("submit", job.id))
        if self.gate is not None:
            await self.gate.wait()
        if self.submit_error is not None:
            raise self.submit_error
        self.secrets[job.id] = dict(secrets)
        if job.id not in self.current:
            self.emit(job.id, "waiting", "queued")

    def emit(self, job: str, state: base.State, reason: str = "", **more: Any) -> None:
        at = more.pop("at", time.time())
        change = Change(job, more.pop("attempt", 0), state, at, reason, **more)
        self.current[job] = change
        for queue in self.queues:
            queue.put_nowait(change)

    def break_watch(self, error: Exception) -> None:
        for queue in self.queues:
            queue.put_nowait(error)

    async def watch(self, known: Sequence[Job]) -> AsyncIterator[Change]:
        queue: asyncio.Queue[Change | Exception] = asyncio.Queue()
        self.queues.append(queue)
        self.known.append([job.id for job in known])
        try:
            for job in known:
                lost = Change(job.id, 0, "failed", time.time(), "lost", "The job is not known.")
                yield self.current.get(job.id, lost)
            while True:
                item = await queue.get()
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.queues.remove(queue)

    async def logs(self, job: Job, role: str, index: int, attempt: int, offset: int) -> AsyncIterator[bytes]:
        path = job.folder / "tasks" / f"{role}-{index}" / str(attempt) / "log"
        while True:
            ended = self.log_end.is_set()
            content = path.read_bytes()[offset:] if path.exists() else b""
            if content:
                offset += len(content)
                yield content
            elif ended:
                return
            await asyncio.sleep(0.005)

    async def stop(self, job: Job) -> None:
        self.told.append(("stop", job.id))
        if self.stop_error is not None:
            raise self.stop_error
        if self.current[job.id].state not in base.FINAL:
            self.emit(job.id, "stopped")

    async def delete(self, job: Job) -> None:
        self.told.append(("delete", job.id))

    async def close(self) -> None:
        self.closed = True


def task(
    role: str,
    index: int,
    state: base.State,
    *,
    attempt: int = 0,
    code: int | None = None,
    lines: Sequence[str] = (),
    **more: Any,
) -> TaskStatus:
    """Return a task's status; with a code it has ended."""
    ended = Exit(code, None, tuple(lines)) if code is not None else None
    return TaskStatus(role, index, attempt, state, exit=ended, started_at=time.time(), **more)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeBackend]]:
    """Put the fake in the place of the kind ``local``."""
    FakeBackend.made = []
    FakeBackend.current = {}
    point = SimpleNamespace(load=lambda: FakeBackend)
    monkeypatch.setattr(base, "backend_kinds", lambda: {"local": point})
    yield FakeBackend


@pytest.fixture
def folders() -> tuple[Path, Path]:
    """Data and runtime folder of this test."""
    return paths.data_dir(), paths.runtime_dir()


class Bench:
    """A service on the fake backend, and what tests need again and again."""

    def __init__(self, data: Path, runtime: Path) -> None:
        self.data, self.runtime = data, runtime
        self.service = JobService(data, runtime)

    @property
    def backend(self) -> FakeBackend:
        return next(each for each in reversed(FakeBackend.made) if not each.closed)

    def request(self, name: str = "mnist", **more: Any) -> dict[str, Any]:
        secrets = more.pop("secrets", {})
        names = more.pop("names", list(secrets))
        text = more.pop("document", None) or document(name, names)
        return {"document": text, "secrets": secrets, "context": {"user": "ann", "folder": "/work"}, **more}

    async def submit(self, name: str = "mnist", **more: Any) -> dict[str, Any]:
        view, created = await self.service.submit(self.request(name, **more))
        assert created
        await eventually(lambda: self.service.get(view["id"])["reason"] != "submitting")
        return view

    async def state(self, ref: str, state: str, reason: str | None = None) -> dict[str, Any]:
        """Wait for a state."""

        def there() -> dict[str, Any] | None:
            view = self.service.get(ref)
            return view if view["state"] == state and reason in (None, view["reason"]) else None

        return await eventually(there)

    async def finish(self, ref: str, state: base.State = "succeeded", **more: Any) -> dict[str, Any]:
        """End a job."""
        self.backend.emit(self.service.get(ref)["id"], state, **more)
        return await self.state(ref, state)

    async def restart(self) -> None:
        """End the service, and start another one on the same folders."""
        await self.service.close()
        self.service = JobService(self.data, self.runtime)
        await self.service.start()
        if self.service.unfinished():
            await eventually(lambda: any(not each.closed for each in FakeBackend.made))

    def folder(self, view: Mapping[str, Any]) -> Path:
        return self.data / "jobs" / view["id"]

    def write(self, view: Mapping[str, Any], path: str, content: bytes | str) -> Path:
        target = self.folder(view) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target


async def eventually(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Return the first true value of a condition."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.002)
    return value


@pytest_asyncio.fixture
async def bench(fake: type[FakeBackend], folders: tuple[Path, Path]) -> AsyncIterator[Bench]:
    """A started service."""
    found = Bench(*folders)
    await found.service.start()
    yield found
    await found.service.close()


@pytest.fixture
def kit() -> SimpleNamespace:
    """Helpers of this file, for tests (which import nothing from each other)."""
    return SimpleNamespace(
        document=document,
        task=task,
        eventually=eventually,
        Bench=Bench,
        FakeBackend=FakeBackend,
        replace=replace,
    )


def snapshot(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {
        os.path.relpath(os.path.join(root, name), folder): Path(root, name).read_bytes()
        for root, _, names in os.walk(folder)
        for name in names
    }


Waiter = Callable[..., Awaitable[Any]]
