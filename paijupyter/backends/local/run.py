"""The life of one job on this machine, from the queue to its final change."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from paijupyter.backends.base import Change, Job, Place, Profile, State, TaskStatus
from paijupyter.backends.local import ends, host, journal
from paijupyter.backends.local.attempt import Attempt
from paijupyter.backends.local.changes import Changes
from paijupyter.backends.local.course import Course, stopped
from paijupyter.backends.local.files import read_json, secrets_file, write_json
from paijupyter.backends.local.journal import Journal, Outcome
from paijupyter.backends.local.ports import allocate
from paijupyter.backends.local.queue import Entry, Queue, needs_of
from paijupyter.backends.local.spec import wanted_ports
from paijupyter.errors import PaiJupyterError

_log = logging.getLogger(__name__)
_NO_RETRY = frozenset({"lost", "machine-restarted", "deadline", "start"})


@dataclass(eq=False)
class Hall:
    """What all jobs of a profile share.

    Attributes:
        boot: returns the zipapp that tasks run, building it if need be. Blocking.
        ports: those that jobs hold, though perhaps not yet bound.
    """

    profile: Profile
    place: Place
    queue: Queue
    changes: Changes
    boot: Callable[[], Path]
    ports: set[int] = field(default_factory=set)


class JobRun:
    """One job that is not final.

    Attributes:
        current: its state now, with the status of every task.
        done: set when its final change is out.
    """

    def __init__(self, job: Job, hall: Hall, state: Journal, on_done: Callable[[str], None]) -> None:
        self._on_done = on_done
        self.job = job
        self.journal = state
        self.done = asyncio.Event()
        self.current = Change(job.id, state.attempt, "waiting", time.time(), "submitting")
        self._hall = hall
        self._needs = needs_of(job)
        self._entry = Entry(self._needs, self._on_room, self._on_queue_news)
        self._is_queued = False
        self._has_room = False
        self._wake = asyncio.Event()
        self._attempt: Attempt | None = None
        self._ports: set[int] = set()
        self._life: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Queue the job; start it at once if there is room.

        Raises:
            PaiJupyterError: if there was room and it did not start; nothing is left of it then.
        """
        if not self._missing_secrets():
            self._enter_queue()
        if self._has_room:
            try:
                await self._launch()
            except BaseException:
                self._give_back()
                raise
        self._go_on()

    async def adopt(self) -> None:
        """Take over the attempt that an earlier engine started."""
        self._hall.queue.take(self._needs)
        self._is_queued = self._has_room = True
        attempt = self._attempt = await self._make_attempt()
        self._hold(await asyncio.to_thread(attempt.ports))
        if self.journal.boot_id not in ("", host.boot_id()):
            for key, each in attempt.tasks.items():
                ends.write_restarted(key, each.files)
            if self.journal.outcome is None:
                self.journal.outcome = Outcome(
                    "failed", "machine-restarted", "The machine was restarted while the job ran."
                )
                await self._save()
        else:
            attempt.look()
        if attempt.is_past_barrier:
            attempt.mark_running()
        self._say(*self._course(attempt).position(), tasks=attempt.statuses)
        self._go_on()

    async def provide(self, secrets: Mapping[str, str]) -> None:
        """Keep the values of the job's secrets until it is final."""
        if self._missing_secrets() and secrets:
            path = secrets_file(self._hall.place, self.job.id)
            await asyncio.to_thread(write_json, path, {**(read_json(path) or {}), **secrets})
            self._wake.set()

    async def stop(self) -> None:
        """End the job; return when its processes are gone and its final change is out."""
        if not self.journal.stop:
            self.journal.stop = True
            await self._save()
            self._wake.set()
        await self.done.wait()

    async def close(self) -> None:
        """Let go; the processes run on."""
        if self._life:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        if self._attempt:
            self._attempt.close()

    # Room and secrets

    def _enter_queue(self) -> None:
        self._is_queued = True
        self._hall.queue.enter(self._entry)

    def _on_room(self) -> None:
        self._has_room = True
        self._wake.set()

    def _on_queue_news(self, message: str) -> None:
        self._say("waiting", "queued", message)

    def _give_back(self) -> None:
        self._hold(set())
        self._hall.queue.leave(self._entry)
        if self._has_room:
            self._has_room = False
            self._hall.queue.give(self._needs)

    def _hold(self, ports: set[int]) -> None:
        self._hall.ports -= self._ports
        self._hall.ports |= ports
        self._ports = ports

    def _missing_secrets(self) -> list[str]:
        wanted = self.job.document.get("secrets") or {}
        if not wanted:
            return []
        there = read_json(secrets_file(self._hall.place, self.job.id)) or {}
        return [name for name in wanted if name not in there]

    async def _until_it_may_start(self) -> None:
        while not self.journal.stop:
            missing = self._missing_secrets()
            if missing and self.current.reason != "secret":
                names = ", ".join(f"`{name}`" for name in missing)
                self._say("waiting", "secret", f"The value of {names} is gone from this machine.")
            if not missing and not self._is_queued:
                self._enter_queue()
            if not missing and self._has_room:
                return
            await self._wake.wait()
            self._wake.clear()

    # Life

    def _go_on(self) -> None:
        self._life = asyncio.create_task(self._live(), name=f"job {self.job.id}")

    async def _live(self) -> None:
        try:
            outcome = await self._to_the_end()
        except (OSError, PaiJupyterError) as error:
            _log.exception("job %s cannot go on", self.job.id)
            if self._attempt:
                await self._attempt.kill()
            outcome = Outcome("failed", "start", f"The job could not go on: {error}")
        await self._finish(outcome)

    async def _to_the_end(self) -> Outcome:
        while True:
            if self._attempt is None:
                await self._until_it_may_start()
                if self.journal.stop:
                    return stopped()
                await self._launch()
            assert self._attempt is not None  # noqa: S101 - _launch sets it or raises
            outcome = await self._course(self._attempt).run()
            if not self._may_retry(outcome):
                return outcome
            await self._prepare_retry(outcome)

    async def _launch(self) -> None:
        attempt = await self._make_attempt()
        ports = allocate(wanted_ports(self.job), self._hall.ports)
        self._hold({port for labels in ports.values() for found in labels.values() for port in found})
        try:
            await asyncio.to_thread(attempt.prepare, ports, self._hall.profile)
            # From here on an engine that takes over starts what is not started, and nothing twice.
            self.journal.phase, self.journal.boot_id = "started", host.boot_id()
            await self._save()
            await attempt.start()
        except OSError as error:
            await attempt.erase()
            self.journal.phase = "queued"
            raise PaiJupyterError(
                "cannot-start",
                f"The job's processes could not be started: {os.strerror(error.errno or 0)}.",
                "Free memory, disk or processes of this machine, then submit it again.",
                503,
            ) from error
        self._attempt = attempt
        self._say("waiting", "starting", tasks=attempt.statuses)

    async def _make_attempt(self) -> Attempt:
        boot = await asyncio.to_thread(self._hall.boot)
        return Attempt(self.job, self.journal.attempt, self._hall.place, boot, self._wake.set)

    def _course(self, attempt: Attempt) -> Course:
        return Course(attempt, self.journal, self._save, self._say, self._wake)

    def _retries(self) -> int:
        return int(self.job.document.get("jobRetryCount") or 0)

    def _may_retry(self, outcome: Outcome) -> bool:
        return (
            outcome.state == "failed"
            and outcome.reason not in _NO_RETRY
            and not self.journal.stop
            and self.journal.attempt < self._retries()
        )

    async def _prepare_retry(self, outcome: Outcome) -> None:
        self._attempt = None
        self.journal.attempt += 1
        self.journal.phase, self.journal.outcome = "queued", None
        await self._save()
        cause = outcome.message.rstrip(".")
        message = f"{cause}; trying again, {self.journal.attempt} of {self._retries()}."
        self.current = replace(self.current, tasks=())
        self._say("waiting", "retry-delay", message)

    async def _finish(self, outcome: Outcome) -> None:
        change = self._change(outcome.state, outcome.reason, outcome.message, ())
        change = replace(change, failed_task=outcome.failed_task)
        self.journal.phase = "final"
        self.journal.last = self.current = replace(change, tasks=self.current.tasks)
        await self._save()
        secrets_file(self._hall.place, self.job.id).unlink(missing_ok=True)
        self._on_done(self.job.id)
        self._hall.changes.publish(change)
        self.done.set()
        self._give_back()

    # Words

    def _change(self, state: State, reason: str, message: str, tasks: tuple[TaskStatus, ...]) -> Change:
        return Change(self.job.id, self.journal.attempt, state, time.time(), reason, message, tasks)

    def _say(
        self, state: State, reason: str = "", message: str = "", tasks: tuple[TaskStatus, ...] = ()
    ) -> None:
        change = self._change(state, reason, message, tasks)
        known = {status.key: status for status in (*self.current.tasks, *tasks)}
        self.current = replace(change, tasks=tuple(known.values()))
        self._hall.changes.publish(change)

    async def _save(self) -> None:
        await asyncio.to_thread(journal.save, self.job, self.journal)
