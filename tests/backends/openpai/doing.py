"""What tests of the backend share: one on a scripted server, jobs for it, and waiting with a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from staging import Watch, document, make_job, role

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.openpai.backend import OpenPaiBackend
from tests.openpai.jobs import ScriptedJob
from tests.openpai.server import OpenPai

DEADLINE = 60.0


def settings(server: OpenPai, **more: Any) -> dict[str, Any]:
    return {"url": server.url, "pollSeconds": 0.1, "callsPerMinute": 1_000_000, **more}


@contextlib.asynccontextmanager
async def backend_on(
    server: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> AsyncIterator[OpenPaiBackend]:
    """A backend of alice's."""
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", server.token())
    backend = OpenPaiBackend(Profile("pai", "openpai", settings(server, **more)), place)
    try:
        yield backend
    finally:
        await backend.close()


def simple(place: Place, command: str = "echo hello", **more: Any) -> Job:
    """A job of one worker, written for OpenPAI."""
    instances = more.pop("instances", 1)
    return make_job(place, document({"worker": role(command, instances=instances)}, **more))


async def running(server: OpenPai, backend: OpenPaiBackend, watch: Watch, job: Job) -> Job:
    """Submit a job, let it run there, and return it once that is known here."""
    await backend.submit(job, {})
    scripted(server, job).run()
    await watch.running(job)
    return job


async def until(test: Callable[[], Any], seconds: float = DEADLINE) -> Any:
    """Wait until something holds, and return it."""
    end = time.monotonic() + seconds
    while not (found := test()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s in vain")
        await asyncio.sleep(0.02)
    return found


def scripted(server: OpenPai, job: Job) -> ScriptedJob:
    """The server's side of a job."""
    with server.lock:
        return server.job(job.name)
