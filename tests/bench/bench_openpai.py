"""Following many jobs on an OpenPAI server, and reading a long log once, against the scripted server.

The server is a process of its own, so that its work is not counted as ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from paijupyter.backends.base import Change, Job, Place, Profile
from paijupyter.backends.openpai import journal
from paijupyter.backends.openpai.backend import OpenPaiBackend
from paijupyter.backends.openpai.client import OpenPaiClient
from tests.bench.rows import Row
from tests.openpai.jobs import ScriptedJob
from tests.openpai.server import OpenPai

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "backends"))
from staging import document, make_job, role

JOBS, CHANGES = 2000, 10
PERIOD = 5.0  # seconds between two lists
WATCHED = 60.0  # seconds in which nothing happens and work is counted
LOG_BYTES = 100 * 2**20


def run() -> list[Row]:
    """Measure."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    try:
        url, token = ours.recv()
        os.environ["PAIJUPYTER_TOKEN_BENCH"] = token
        with tempfile.TemporaryDirectory() as home:
            return asyncio.run(_rows(ours, url, Path(home)))
    finally:
        ours.send(("end",))
        server.join()


async def _rows(server: Connection, url: str, home: Path) -> list[Row]:
    place = Place(home / "data", home / "run")
    settings = {"url": url, "pollSeconds": PERIOD}
    backend = OpenPaiBackend(Profile("bench", "openpai", settings), place)
    jobs = [_known(make_job(place, document({"worker": role("true")}, name=f"job-{n}"))) for n in range(JOBS)]
    _told(server, "jobs", [job.name for job in jobs])
    heard: asyncio.Queue[Change] = asyncio.Queue()
    watching = asyncio.create_task(_watch(backend, jobs, heard))
    try:
        for _ in jobs:
            await heard.get()
        share, lists, calls = await _idle(server)
        late = [await _late(server, job, heard) for job in jobs[:CHANGES]]
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await backend.close()
    read, grown = await _long_log(server, url, jobs[0])
    limit = (PERIOD * 1.1 + 0.1) * 1000  # the period has a jitter of a tenth
    return [
        _row(f"{JOBS} jobs followed, part of a core", share * 100, "%", "< 5 %", share < 0.05),
        _row("lists in a minute", lists, "calls", "one per period", lists <= WATCHED / PERIOD + 1),
        _row("calls in a minute", calls, "calls", "≤ 60", calls <= 60),
        Row(
            "OpenPAI: a change on the server to its event",
            max(late) * 1000,
            statistics.median(late) * 1000,
            "median",
            "ms",
            "one period + 100 ms",
            max(late) * 1000 <= limit,
        ),
        Row(
            "OpenPAI: a log of 100 MB read once",
            read / 2**20,
            LOG_BYTES / 2**20,
            "its size",
            "MB",
            "no byte twice",
            read == LOG_BYTES,
        ),
        _row("memory for that log", grown, "MB", "flat (< 16 MB)", grown < 16),
    ]  # fmt: skip


def _row(what: str, ours: float, unit: str, reach: str, reached: bool) -> Row:
    return Row(f"OpenPAI: {what}", ours, float("nan"), "–", unit, reach, reached)


async def _watch(backend: OpenPaiBackend, jobs: list[Job], heard: asyncio.Queue[Change]) -> None:
    async with contextlib.aclosing(backend.watch(jobs)) as changes:  # type: ignore[type-var]
        async for change in changes:
            heard.put_nowait(change)


async def _idle(server: Connection) -> tuple[float, int, int]:
    """Return the part of a core, the lists and all calls of a minute in which nothing happens."""
    await asyncio.sleep(2 * PERIOD)
    _told(server, "count")
    before, start = _work(), time.monotonic()
    await asyncio.sleep(WATCHED)
    share = (_work() - before) / (time.monotonic() - start)
    requests = _told(server, "count")
    lists = sum(path.partition("?")[0].endswith("/jobs") for path in requests)
    return share, lists, len(requests)


async def _late(server: Connection, job: Job, heard: asyncio.Queue[Change]) -> float:
    """Return the seconds from a change on the server to its event."""
    start = time.monotonic()
    _told(server, "succeed", job.name)
    while True:
        change = await asyncio.wait_for(heard.get(), 20 * PERIOD)
        if (change.job, change.state) == (job.id, "succeeded"):
            return time.monotonic() - start


async def _long_log(server: Connection, url: str, job: Job) -> tuple[int, float]:
    """Return the bytes that were read of a log, and the megabytes by which memory grew meanwhile."""
    uri = _told(server, "log", job.name)
    client = OpenPaiClient(url, token=lambda: None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = 0
    async with contextlib.aclosing(client.fetch(uri)) as pieces:
        async for piece in pieces:
            size += len(piece)
    await client.close()
    return size, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def _known(job: Job) -> Job:
    """Let the backend find that it has posted the job before."""
    journal.save(job, journal.Journal("started", job.name))
    return job


def _work() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _told(server: Connection, *what: object) -> list[str] | str:
    server.send(what)
    found: list[str] | str = server.recv()
    return found


def _serve(asked: Connection) -> None:
    """Be the server, and do what is asked of it."""
    with OpenPai() as server:
        asked.send((server.url, server.token()))
        for what, *more in iter(asked.recv, ("end",)):
            with server.lock:
                asked.send(_done(server, what, *more))


def _done(server: OpenPai, what: str, *more: object) -> list[str] | str:
    if what == "jobs":
        for job in _running(server, more[0]):  # type: ignore[arg-type]
            server.jobs[job.framework] = job
        return ""
    if what == "count":
        found = [path for _, path in server.requests]
        server.requests.clear()
        return found
    job = server.job(str(more[0]))
    if what == "succeed":
        job.succeed()
        return ""
    job.log("worker", 0, b"x" * 127 + b"\n" * 1, "all")
    content = job.task("worker", 0).run.logs.files["all"]
    content *= LOG_BYTES // len(content)
    return (
        f"/log-manager/{job.debug_id}/api/v1/logs/user-all?pod-uid={job.task('worker', 0).run.pod}"
        f"&token={server.log_epoch}-{int(server.now())}"
    )


def _running(server: OpenPai, names: list[str]) -> Iterator[ScriptedJob]:
    data = document({"worker": role("true")})
    for name in names:
        data = {**data, "name": name}
        yield ScriptedJob("alice", "", data, data, lambda: int(server.now() * 1000)).run()
