"""What tests of backends need around a job: a place, jobs with packages, and a watch that remembers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from paijupyter import paths
from paijupyter.backends.base import FINAL, Backend, Change, Job, Package, Place, TaskStatus
from paijupyter.package.manifest import FILE, Entry, Manifest
from paijupyter.protocol import read as read_document
from paijupyter.protocol import render_commands, with_suffix, write

DEADLINE = 40.0  # seconds until a test gives up on a job


@pytest.fixture
def place() -> Place:
    """The private folders of a backend."""
    return Place(paths.data_dir(), paths.runtime_dir())


def role(commands: str | Sequence[str], **more: Any) -> dict[str, Any]:
    """Return a task role; keyword arguments replace or add its fields."""
    return {
        "instances": 1,
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
        "commands": [commands] if isinstance(commands, str) else list(commands),
        **more,
    }


def document(roles: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a whole job document of these roles."""
    return {
        "protocolVersion": 2,
        "name": "job",
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "python:3.11-slim"}],
        "taskRoles": {name: dict(each) for name, each in roles.items()},
        **more,
    }


def make_job(
    place: Place, source: Mapping[str, Any] | str, files: Mapping[str, bytes | str] | None = None
) -> Job:
    """Return a job as the service would hand it to a backend: folder made, commands rendered."""
    text = source if isinstance(source, str) else write(source)
    read = read_document(text)
    job_id = uuid.uuid4().hex[:12]
    folder = place.data / "jobs" / job_id
    folder.mkdir(parents=True)
    return Job(
        id=job_id,
        name=with_suffix(str(read.data["name"])),
        user="tester",
        folder=folder,
        document=read.data,
        commands=render_commands(read),
        package=store_package(place, files) if files else None,
        python=sys.executable,
    )


def store_package(place: Place, files: Mapping[str, bytes | str]) -> Package:
    """Put files into the store of packages, in its format on disk."""
    contents = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    manifest = Manifest(
        Entry(path, FILE, len(data), hashlib.sha256(data).hexdigest()) for path, data in contents.items()
    )
    package = Package(manifest.sha256, place.data / "packages" / manifest.sha256, place.data / "blobs")
    package.folder.mkdir(parents=True, exist_ok=True)
    (package.folder / "manifest.json").write_bytes(manifest.data)
    (package.folder / "pack").write_bytes(b"".join(contents[entry.path] for entry in manifest.pack))
    for digest in manifest.blobs:
        blob = package.blobs / digest[:2] / digest
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(
            next(each for each in contents.values() if hashlib.sha256(each).hexdigest() == digest)
        )
    return package


class Watch:
    """An open watch that remembers every change, and with what a test can wait for one."""

    def __init__(self, backend: Backend, known: Sequence[Job] = ()) -> None:
        self.changes: list[Change] = []
        self._stream = backend.watch(known)
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        async for change in self._stream:
            self.changes.append(change)
            self._news.set()

    def of(self, job: Job) -> list[Change]:
        """Return the changes of a job so far."""
        return [change for change in self.changes if change.job == job.id]

    def tasks(self, job: Job, attempt: int | None = None) -> dict[str, TaskStatus]:
        """Return what was last said of each task, of the last attempt unless one is named."""
        changes = self.of(job)
        wanted = changes[-1].attempt if attempt is None else attempt
        return {task.key: task for change in changes for task in change.tasks if task.attempt == wanted}

    async def until(self, job: Job, test: Callable[[Change], bool], seconds: float | None = None) -> Change:
        """Return the first change of a job that passes the test."""
        seconds = DEADLINE if seconds is None else seconds
        end = time.monotonic() + seconds
        while True:
            self._news.clear()
            for change in self.of(job):
                if test(change):
                    return change
            left = end - time.monotonic()
            if self._task.done():
                self._task.result()
                raise AssertionError(f"the watch ended with {self.of(job)}")
            try:
                await asyncio.wait_for(self._news.wait(), max(left, 0.001))
            except asyncio.TimeoutError:
                raise AssertionError(f"waited {seconds} s, and saw only {self.of(job)}") from None

    async def final(self, job: Job, seconds: float | None = None) -> Change:
        """Return the final change of a job."""
        return await self.until(job, lambda change: change.state in FINAL, seconds)

    async def running(self, job: Job) -> Change:
        """Return the change with which the job runs."""
        return await self.until(job, lambda change: change.state == "running")

    async def close(self) -> None:
        """End the watch."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


@contextlib.asynccontextmanager
async def watching(backend: Backend, known: Sequence[Job] = ()) -> AsyncIterator[Watch]:
    """Open a watch for a block."""
    watch = Watch(backend, known)
    await asyncio.sleep(0)  # lets the stream begin before the block does anything
    try:
        yield watch
    finally:
        await watch.close()


async def log_of(backend: Backend, job: Job, key: str, attempt: int = 0, offset: int = 0) -> bytes:
    """Return a task's whole log from an offset on, once it has ended."""
    name, _, index = key.rpartition("-")

    async def gather() -> bytes:
        return b"".join([piece async for piece in backend.logs(job, name, int(index), attempt, offset)])

    return await asyncio.wait_for(gather(), DEADLINE)
