"""Copies of the logs of all tasks: for whoever reads, before an end is said, and as calls are left.

A screen that does not follow reads the copy, so running tasks are read in turn with what the budget leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from paijupyter.backends.base import FINAL
from paijupyter.backends.openpai import features
from paijupyter.backends.openpai.answers import text
from paijupyter.backends.openpai.budget import Turn
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.hub import Hub
from paijupyter.backends.openpai.logs import TaskLog, followed, list_path
from paijupyter.backends.openpai.run import JobRun
from paijupyter.backends.openpai.server import Server
from paijupyter.protocol.names import converted, split_task_key

_log = logging.getLogger(__name__)
_RESERVE = 12  # calls of a minute that are left to other things
_AT_END = 8  # tasks whose logs are brought before an end is said
_IN_NEED = 2  # the same, where few calls are left
_AT_END_SECONDS = 15.0
_COST = 2  # calls of one read, at most
_TRIES = 5  # reads of an ended task's log before it is given up
_KEPT = 2000  # logs of ended jobs that are still to be read

Key = tuple[str, int, str]


class Collector:
    """Copies logs to this host.

    Args:
        server: where they are.
        hub: which knows the jobs.
    """

    def __init__(self, server: Server, hub: Hub) -> None:
        self._server = server
        self._hub = hub
        self._logs: dict[Key, TaskLog] = {}
        self._read_at: dict[Key, float] = {}
        self._owed: dict[Key, tuple[JobRun, int]] = {}
        self._task: asyncio.Task[None] | None = None

    async def follow(self, run: JobRun, key: str, attempt: int, offset: int) -> AsyncIterator[bytes]:
        """Yield the log of a task from an offset, until the task has ended."""
        log = await self._log_of(run, key, attempt)
        stream = followed(log, folder_of(run, key, attempt), offset, lambda: _has_ended(run, key, attempt))
        async with contextlib.aclosing(stream) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def gather(self, run: JobRun) -> None:
        """Bring the logs of a job that has ended, as many as can be had soon; the others follow later."""
        self.begin()
        attempt = run.journal.attempt
        keys = sorted(
            (task.key for task in run.current.tasks),
            key=lambda key: (_is_stopped(run, attempt, key), key),
        )
        budget, turn, count = self._server.client.budget, Turn.NEWS, _AT_END
        if budget.free(Turn.NEWS) < _RESERVE + _COST * len(keys[:_AT_END]):
            # Few calls are left; somebody may wait for this end, and look at the log.
            turn, count = Turn.PERSON, min(budget.free(Turn.PERSON) // _COST, _IN_NEED)
        for key in keys[count:]:
            self._owe(run, attempt, key)
        work = [asyncio.create_task(self._finish(run, attempt, key, turn)) for key in keys[:count]]
        if work:
            await asyncio.wait(work, timeout=_AT_END_SECONDS)
        run.logs_to_come = len(keys[count:])

    def forget(self, job_id: str) -> None:
        """Drop what is known of a job."""
        for known in (self._logs, self._read_at, self._owed):
            for key in [key for key in known if key[0] == job_id]:
                del known[key]

    async def close(self) -> None:
        """End it; what was not read is read when somebody asks for it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def begin(self) -> None:
        """Read running tasks in turn from now on."""
        if self._task is None:
            self._task = asyncio.create_task(self._go_round(), name="openpai logs")

    async def _go_round(self) -> None:
        while True:
            try:
                await self._round()
            except Exception:  # one odd log must not keep the others back
                _log.exception("logs of profile %s", self._server.settings.name)
            await asyncio.sleep(self._server.settings.poll_seconds)

    async def _round(self) -> None:
        """Read the tasks that were not read for longest, as many as the budget allows."""
        left = (self._server.client.budget.free(Turn.IDLE) - _RESERVE) // _COST
        for (job, attempt, key), (run, _) in list(self._owed.items())[: max(left, 0)]:
            left -= 1
            await self._finish(run, attempt, key, Turn.IDLE)
            self._read_at.pop((job, attempt, key), None)
        due = sorted(self._running(), key=lambda each: self._read_at.get(each[1], 0.0))
        for run, place in due[: max(left, 0)]:
            self._read_at[place] = time.monotonic()
            log = await self._log_of(run, place[2], place[1])
            try:
                await log.read(final=False, turn=Turn.IDLE)
            except PaiError as error:
                _log.debug("log of %s: %s", place, error)
            _tell(run, log, place)

    def _running(self) -> list[tuple[JobRun, Key]]:
        return [
            (run, (run.job.id, task.attempt, task.key))
            for run in self._hub.runs
            for task in run.current.tasks
            if task.state == "running"
        ]

    async def _finish(self, run: JobRun, attempt: int, key: str, turn: Turn) -> None:
        place = (run.job.id, attempt, key)
        log = await self._log_of(run, key, attempt)
        try:
            await log.read(final=True, turn=turn)
        except PaiError as error:
            _log.debug("log of %s: %s", place, error)
            tries = self._owed.get(place, (run, 0))[1] + 1
            unplaced = _never_placed(run, attempt, key)
            never = error.status == 404 and unplaced
            if not unplaced:
                _tell(run, log, place)
            if tries < _TRIES and not never:
                self._owe(run, attempt, key, tries)
                return
        else:
            _tell(run, log, place)
        self._owed.pop(place, None)
        self._logs.pop(place, None)

    def _owe(self, run: JobRun, attempt: int, key: str, tries: int = 0) -> None:
        self._owed.pop((run.job.id, attempt, key), None)
        if len(self._owed) < _KEPT:
            self._owed[run.job.id, attempt, key] = (run, tries)

    async def _log_of(self, run: JobRun, key: str, attempt: int) -> TaskLog:
        place = (run.job.id, attempt, key)
        log = self._logs.get(place)
        task = run.task(key) if attempt == run.journal.attempt else None
        role, index = split_task_key(key) or (key, 0)
        if log is None:
            path = partial(list_path, await self._server.path(run.name), attempt, converted(role), index)
            log = TaskLog(self._server.client, path, folder_of(run, key, attempt), await self._instead())
            log = self._logs.setdefault(place, log)
        log.latest = max(log.latest, task.attempt if task else 0)
        return log

    async def _instead(self) -> str:
        """Return what stands in place of all logs; "" where the server gives them."""
        try:
            if await self._server.version() >= features.LOGS_SINCE:
                return ""
            return features.no_logs(text((await self._server.info()).get("version")))
        except PaiError:
            return ""


def _tell(run: JobRun, log: TaskLog, place: Key) -> None:
    """Let a job know whether the log of a task of its latest attempt can be read."""
    if place[1] == run.journal.attempt:
        run.hear_of_log(place[2], log.trouble)


def folder_of(run: JobRun, key: str, attempt: int) -> Path:
    """Return the folder of an attempt of a task on this host."""
    return run.job.folder / "tasks" / key / str(attempt)


def _has_ended(run: JobRun, key: str, attempt: int) -> bool:
    if run.done.is_set() or run.journal.phase == "final" or attempt < run.journal.attempt:
        return True
    status = run.status(attempt, key)
    return status is not None and status.state in FINAL


def _is_stopped(run: JobRun, attempt: int, key: str) -> bool:
    status = run.status(attempt, key)
    return status is None or status.state != "failed"


def _never_placed(run: JobRun, attempt: int, key: str) -> bool:
    status = run.status(attempt, key)
    return status is not None and status.started_at is None
