"""Following many jobs on an OpenPAI server, and reading a long log once, against the scripted server.

The server is a process of its own, so that its work is not counted as ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Change, Job, Place, Profile
from paijupyter.backends.openpai import journal
from paijupyter.backends.openpai.backend import OpenPaiBackend
from paijupyter.backends.openpai.budget import Budget, Turn
from paijupyter.backends.openpai.client import OpenPaiClient
from paijupyter.backends.openpai.logs import TaskLog, list_path
from tests.bench.rows import Row
from tests.openpai.jobs import ScriptedJob
from tests.openpai.server import OpenPai

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "backends"))
from staging import document, make_job, role

JOBS, CHANGES = 2000, 20
PERIOD = 5.0  # seconds between two lists
MINUTE = 60.0
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
        share, lists = await _idle(server)
        late = [await _late(server, job, heard) for job in jobs[:CHANGES]]
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await backend.close()
    calls = _most_in_a_minute(_told(server, "times"))
    most = int(WATCHED / (0.9 * PERIOD)) + 1  # they come up to a tenth of a period early
    right, grown = await _long_log(server, url, home)
    return [
        _row(f"{JOBS} jobs followed, part of a core", share * 100, "%", "< 5 %", share < 0.05),
        _row("lists in a quiet minute", lists, "calls", f"≤ {most}", lists <= most),
        _row("most calls in any minute", calls, "calls", "≤ 60", calls <= 60),
        Row(
            f"OpenPAI: {CHANGES} changes on the server to their events",
            max(late) * 1000,
            statistics.median(late) * 1000,
            "median",
            "ms",
            "one period + 100 ms",
            max(late) <= PERIOD + 0.1,
        ),
        _row(
            "a log of 100 MB read once: right bytes",
            right / 2**20,
            "MB",
            "all, none twice",
            right == LOG_BYTES,
        ),
        _row("memory for that log", grown, "MB", "flat (< 16 MB)", grown < 16),
    ]


def _row(what: str, ours: float, unit: str, reach: str, reached: bool) -> Row:
    return Row(f"OpenPAI: {what}", ours, float("nan"), "–", unit, reach, reached)


async def _watch(backend: OpenPaiBackend, jobs: list[Job], heard: asyncio.Queue[Change]) -> None:
    async with contextlib.aclosing(backend.watch(jobs)) as changes:  # type: ignore[type-var]
        async for change in changes:
            heard.put_nowait(change)


async def _idle(server: Connection) -> tuple[float, int]:
    """Return the part of a core and the lists of a minute in which nothing happens."""
    await asyncio.sleep(2 * PERIOD)
    _told(server, "count")
    before, start = _work(), time.monotonic()
    await asyncio.sleep(WATCHED)
    share = (_work() - before) / (time.monotonic() - start)
    requests = _told(server, "count")
    return share, sum(path.partition("?")[0].endswith("/jobs") for path in requests)


def _most_in_a_minute(times: list[float]) -> int:
    return max(sum(start <= each < start + MINUTE for each in times) for start in times)


async def _late(server: Connection, job: Job, heard: asyncio.Queue[Change]) -> float:
    """Return the seconds from a change on the server to its event."""
    start = time.monotonic()
    _told(server, "succeed", job.name)
    while True:
        change = await asyncio.wait_for(heard.get(), 20 * PERIOD)
        if (change.job, change.state) == (job.id, "succeeded"):
            return time.monotonic() - start


async def _long_log(server: Connection, url: str, home: Path) -> tuple[int, float]:
    """Return how many bytes of a log were copied rightly, and by how many MB memory grew meanwhile."""
    name, digest = _told(server, "log", "job-1999")
    client = OpenPaiClient(url, token=lambda: os.environ["PAIJUPYTER_TOKEN_BENCH"], budget=Budget(1000))
    log = TaskLog(client, partial(list_path, f"/jobs/{name}", 0, "worker", 0), home)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await log.read(final=False, turn=Turn.PERSON)
    await log.read(final=True, turn=Turn.PERSON)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    await client.close()
    with (home / "log").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return (file.tell() if found == digest else 0), grown


def _known(job: Job) -> Job:
    """Let the backend find that it has posted the job before."""
    journal.save(job, journal.Journal("started", job.name))
    return job


def _work() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _told(server: Connection, *what: object) -> Any:
    server.send(what)
    return server.recv()


class _Stamped(list[tuple[str, str]]):
    """Requests, and when each came."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def append(self, request: tuple[str, str], /) -> None:
        """Take one more."""
        self.times.append(time.monotonic())
        super().append(request)


def _serve(asked: Connection) -> None:
    """Be the server, and do what is asked of it."""
    with OpenPai() as server:
        server.requests = _Stamped()
        asked.send((server.url, server.token()))
        for what, *more in iter(asked.recv, ("end",)):
            with server.lock:
                asked.send(_done(server, what, *more))


def _done(server: OpenPai, what: str, *more: object) -> Any:
    requests = server.requests
    assert isinstance(requests, _Stamped)
    if what == "jobs":
        for job in _running(server, more[0]):  # type: ignore[arg-type]
            server.jobs[job.framework] = job
        return ""
    if what == "count":
        found = [path for _, path in requests]
        requests.clear()
        return found
    if what == "times":
        return requests.times
    job = server.job(str(more[0]))
    if what == "succeed":
        job.succeed()
        return ""
    content = b"".join(b"%0127d\n" % number for number in range(LOG_BYTES // 128))
    job.log("worker", 0, content, "all")
    return job.framework, hashlib.sha256(content).hexdigest()


def _running(server: OpenPai, names: list[str]) -> Iterator[ScriptedJob]:
    data = document({"worker": role("true")})
    for name in names:
        data = {**data, "name": name}
        yield ScriptedJob("alice", "", data, data, lambda: int(server.now() * 1000)).run()
