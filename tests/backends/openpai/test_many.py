"""Many jobs at once: an engine that begins anew learns them from one list, and follows them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from staging import document, make_job, role

from paijupyter.backends.base import Change, Place, Profile
from paijupyter.backends.openpai import journal
from paijupyter.backends.openpai.backend import OpenPaiBackend
from paijupyter.backends.openpai.hub import FEW
from tests.openpai.jobs import ScriptedJob
from tests.openpai.server import OpenPai


@pytest.mark.asyncio
async def test_many_jobs_are_learnt_from_one_list_and_followed(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O28, O32: no look at each of them; what changes afterwards is told."""
    monkeypatch.setenv("PAIJUPYTER_TOKEN_MANY", openpai.token())
    jobs = []
    for number in range(FEW + 5):
        job = make_job(place, document({"worker": role("true")}, name=f"many-{number}"))
        journal.save(job, journal.Journal("started", job.name))
        data: dict[str, Any] = {**job.document, "name": job.name}
        known = ScriptedJob("alice", "", data, data, lambda: int(openpai.now() * 1000)).run()
        openpai.jobs[known.framework] = known
        jobs.append(job)
    settings = {"url": openpai.url, "pollSeconds": 0.1, "callsPerMinute": 1_000_000}
    backend = OpenPaiBackend(Profile("many", "openpai", settings), place)
    first: dict[str, str] = {}
    async with contextlib.aclosing(backend.watch(jobs)) as changes:  # type: ignore[type-var]
        async for change in changes:
            first.setdefault(change.job, change.state)
            if len(first) == len(jobs):
                break
        assert set(first.values()) == {"running"}
        with openpai.lock:
            openpai.job(jobs[3].name).succeed()
        ended = await asyncio.wait_for(_end_of(changes, jobs[3].id), 60)
        assert ended.state == "succeeded"
    await backend.close()


async def _end_of(changes: Any, job: str) -> Change:
    async for change in changes:
        if change.job == job and change.state != "running":
            return change  # type: ignore[no-any-return]
    raise AssertionError("the stream has ended")
