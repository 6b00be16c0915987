"""The life of one job on this machine, from the queue to its final change."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from paijupyter.backends import retries
from paijupyter.backends.base import Change, Job, State, TaskStatus, Usage
from paijupyter.backends.jsonfiles import read_json, write_json
from paijupyter.backends.local import ends, host, journal
from paijupyter.backends.local.attempt import Attempt
from paijupyter.backends.local.course import Course, stopped
from paijupyter.backends.local.files import secrets_file
from paijupyter.backends.local.journal import Journal
from paijupyter.backends.local.share import Hall, Share
from paijupyter.backends.local.usage import Meter
from paijupyter.backends.outcome import Outcome
from paijupyter.backends.retries import Again
from paijupyter.errors import PaiJupyterError

_log = logging.getLogger(__name__)
_START_AGAIN_AFTER = (1.0, 4.0, 16.0)  # seconds; the machine may be out of memory for a moment only
_LOOK_AT_DISK = 2.0  # seconds between two looks while it is full


class JobRun:
    """One job that is not final.

    Attributes:
        current: its state now, with the status of every task.
        done: set when its final change is out.
    """

    def __init__(self, job: Job, hall: Hall, state: Journal, on_done: Callable[[str], None]) -> None:
        self.job = job
        self.journal = state
        self.done = asyncio.Event()
        self.current = Change(job.id, state.attempt, "waiting", time.time(), "submitting")
        self._hall = hall
        self._on_done = on_done
        self._meter = Meter()
        self._wake = asyncio.Event()
        self._stop_requested = asyncio.Event()
        self._share = Share(job, hall, self._wake.set, self._on_queue_news)
        self._attempt: Attempt | None = None
        self._course: Course | None = None
        self._life: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Queue the job; start it at once if there is room.

        Raises:
            PaiJupyterError: if there was room and it did not start; nothing is left of it then.
            OSError: if it cannot be recorded.
        """
        if not self._missing_secrets():
            self._share.ask()
        starts = self._share.has_room and not self._hall.disk.shortage
        try:
            # One of them makes the job's journal; until then it counts as never taken.
            await (self._launch() if starts else self._save())
        except (PaiJupyterError, OSError):
            self._share.give_back()
            raise
        self._go_on()

    def resume(self) -> None:
        """Queue the job again that an earlier engine had queued."""
        if not self._missing_secrets():
            self._share.ask()
        self._go_on()

    async def adopt(self) -> None:
        """Take over the attempt that an earlier engine started."""
        attempt = self._make_attempt()
        self._share.take(await asyncio.to_thread(attempt.ports), self.journal.devices)
        course = self._follow(attempt)
        if self.journal.boot_id not in ("", host.boot_id()):
            for each in attempt.tasks.values():
                ends.write_restarted(each.files)
            if self.journal.outcome is None:
                self.journal.outcome = Outcome(
                    "failed", ends.RESTARTED, "The machine was restarted while the job ran."
                )
        attempt.note_ready()
        course.say_position()
        self._go_on()

    async def provide(self, secrets: Mapping[str, str]) -> None:
        """Keep the values of the job's secrets until it is final."""
        if self._missing_secrets() and secrets:
            path = secrets_file(self._hall.place, self.job.id)
            await asyncio.to_thread(write_json, path, {**(read_json(path) or {}), **secrets})
        # Also where the service has put them there itself: the job may be waiting for them.
        self._wake.set()

    async def stop(self) -> None:
        """End the job; return when its processes are gone and its final change is out."""
        if not self.journal.stop:
            self.journal.stop = True
            self._stop_requested.set()
            await self._note()
            self._wake.set()
        await self.done.wait()

    async def usage(self) -> dict[str, Usage]:
        """Measure the tasks that run."""
        live = self._attempt.live if self._attempt else []
        boots = {each.task.key: (each.process.pid, each.process.started) for each in live if each.process}
        return await asyncio.to_thread(self._meter.measure, boots, self.journal.devices)

    async def close(self) -> None:
        """Let go; the processes run on."""
        if self._life:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        if self._attempt:
            self._attempt.close()

    async def abandon(self) -> None:
        """Let go of a job that could not be adopted, as if nobody had tried."""
        await self.close()
        self._on_done(self.job.id)
        self._share.give_back()

    # Waiting

    def _on_queue_news(self, message: str) -> None:
        self._say("waiting", "queued", message)

    def _missing_secrets(self) -> list[str]:
        wanted = self.job.document.get("secrets") or {}
        if not wanted:
            return []
        there = read_json(secrets_file(self._hall.place, self.job.id)) or {}
        return [name for name in wanted if name not in there]

    async def _until_it_may_start(self) -> None:
        while not self.journal.stop:
            missing = self._missing_secrets()
            if missing:
                self._say_once("secret", f"The value of {_listed(missing)} is gone from this machine.")
            else:
                if not self._share.is_asked:
                    self._share.ask()
                if self._share.has_room and not await self._disk_is_full():
                    return
                if self._share.too_big:
                    self._say_once("unschedulable", f"This machine lacks {self._share.too_big}.")
            with contextlib.suppress(asyncio.TimeoutError):
                # Nobody tells when others have freed room on the disk.
                await asyncio.wait_for(self._wake.wait(), _LOOK_AT_DISK if self._share.has_room else None)
            self._wake.clear()

    async def _disk_is_full(self) -> bool:
        shortage = await asyncio.to_thread(lambda: self._hall.disk.shortage)
        if shortage:
            self._say_once("disk", shortage)
        return bool(shortage)

    # Life

    def _go_on(self) -> None:
        self._life = asyncio.create_task(self._live(), name=f"job {self.job.id}")

    async def _live(self) -> None:
        try:
            outcome = await self._to_the_end()
        except PaiJupyterError as error:
            outcome = Outcome("failed", "start", str(error))
        except Exception as error:  # whatever goes wrong, a job must not be left without an end
            _log.exception("job %s cannot go on", self.job.id)
            outcome = Outcome("failed", "internal", f"The job could not go on: {error!r}.")
            if self._attempt:
                await self._attempt.give_up()
                self._say(self.current.state, self.current.reason, tasks=self._attempt.statuses)
        await self._finish(outcome)

    async def _to_the_end(self) -> Outcome:
        while True:
            if self._course is None:
                await self._until_it_may_start()
                if self.journal.stop:
                    return stopped()
                await self._launch_patiently()
                if self._course is None:
                    return stopped()
            outcome = await self._course.run()
            again = retries.again(outcome, self.journal, int(self.job.document.get("jobRetryCount") or 0))
            if again is None:
                return outcome
            await self._prepare_retry(again)

    async def _launch_patiently(self) -> None:
        """Launch; what the machine refuses is tried again a few times, unless the job is stopped."""
        for delay in _START_AGAIN_AFTER:
            try:
                return await self._launch()
            except PaiJupyterError as error:
                self._say("waiting", "retry-delay", f"{error.message} Trying again in {delay:g} s.")
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop_requested.wait(), delay)
                return None
        return await self._launch()

    async def _launch(self) -> None:
        ports, self.journal.devices = self._share.choose()
        attempt = self._make_attempt()
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
                f"Processes of job `{self.job.name}` could not be started: {os.strerror(error.errno or 0)}.",
                "Free memory, disk or processes of this machine, then submit it again.",
                503,
            ) from error
        self._follow(attempt).say_position()

    def _make_attempt(self) -> Attempt:
        hall, state = self._hall, self.journal
        devices = state.devices if hall.gpus else None
        return Attempt(self.job, state.attempt, hall.place, hall.boot, devices, self._wake.set)

    def _follow(self, attempt: Attempt) -> Course:
        self._attempt = attempt
        self._course = Course(attempt, self.journal, self._note, self._say, self._wake)
        return self._course

    async def _prepare_retry(self, again: Again) -> None:
        self._attempt = self._course = None
        self.journal.attempt += 1
        self.journal.phase, self.journal.outcome = "queued", None
        await self._save()
        self.current = replace(self.current, tasks=())
        self._say("waiting", "retry-delay", again.words)
        if again.delay:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop_requested.wait(), again.delay)

    async def _finish(self, outcome: Outcome) -> None:
        change = self._change(outcome.state, outcome.reason, outcome.message, ())
        change = replace(change, failed_task=outcome.failed_task)
        self.journal.phase = "final"
        self.journal.last = self.current = replace(change, tasks=self.current.tasks)
        await self._note()
        with contextlib.suppress(OSError):
            secrets_file(self._hall.place, self.job.id).unlink(missing_ok=True)
            (self._hall.place.runtime / "tasks" / self.job.id).rmdir()
        self._on_done(self.job.id)
        self._hall.changes.publish(change)
        self.done.set()
        self._share.give_back()

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

    def _say_once(self, reason: str, message: str) -> None:
        if (self.current.reason, self.current.message) != (reason, message):
            self._say("waiting", reason, message)

    async def _save(self) -> None:
        await asyncio.to_thread(journal.save, self.job, self.journal)

    async def _note(self) -> None:
        """Save what has been decided, if the disk lets us: a full one must not keep a job from its end.

        Exit records and the service's own events lead the next engine to the same end.
        """
        try:
            await self._save()
        except OSError as error:
            _log.error("what became of job %s is not recorded yet: %s", self.job.id, error)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
