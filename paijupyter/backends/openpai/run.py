"""What has become of one job, of what is heard of it; says every change once, the final one last."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from paijupyter.backends.base import Change, Job, State, TaskStatus
from paijupyter.backends.changes import Changes
from paijupyter.backends.openpai import emit, journal, returning, states
from paijupyter.backends.openpai.answers import Detail, Event, Summary, Task
from paijupyter.backends.openpai.journal import Journal
from paijupyter.backends.openpai.server import Server
from paijupyter.protocol.names import task_key

_log = logging.getLogger(__name__)


class JobRun:
    """One job that the server has, or may have.

    Attributes:
        job: the job.
        journal: what has been decided for it.
        summary: what the list said last.
        detail: what was last heard in detail.
        events: those of its tasks, where they were asked for.
        current: its last change, with all tasks of the attempt.
        done: set once its final change is out.
        misses: how often in a row the server did not know it.
        from_list: whether only the list has told of it, since an earlier engine submitted it.
        looked_at: when it was last looked at in detail.
        unlike: how often the list had its end and the detail had not.
        ending: whether the server says that it has ended, and what it left is being brought here.
        logs_to_come: how many logs are read some time after its end, since few calls are left.
    """

    def __init__(self, job: Job, server: Server, changes: Changes, state: Journal) -> None:
        self.job = job
        self.journal = state
        self.summary: Summary | None = None
        self.detail: Detail | None = None
        self.events: Sequence[Event] = ()
        self.events_at = 0.0
        self.current = Change(job.id, state.attempt, "waiting", time.time(), "submitting")
        self.done = asyncio.Event()
        self.misses = 0
        self.from_list = False
        self.looked_at = 0.0
        self.unlike = 0
        self.ending = False
        self.logs_to_come = 0
        self.born = time.monotonic()
        self.heard = asyncio.Event()
        self._server = server
        self._changes = changes
        self._names = states.role_names(job.document)
        self._booted = emit.carries(job)
        self._statuses: dict[tuple[int, str], TaskStatus] = {}
        self._message = ""  # what the server says of it; of its logs, see below
        self._unread: dict[str, str] = {}

    @property
    def name(self) -> str:
        """What it is called on the server."""
        return self.journal.name or self.job.name

    def is_news(self, summary: Summary) -> bool:
        """Take what the list says; return whether its detail is to be looked at."""
        first, changed = self.summary is None, summary != self.summary
        self.summary = summary
        self.misses = 0
        if self.from_list and first:
            return summary.is_final
        return changed or (self.detail is None and not self.from_list)

    def task(self, key: str) -> Task | None:
        """Return what was last heard of a task of the current attempt."""
        for task in self.detail.tasks if self.detail else ():
            if task_key(self._names.get(task.role, task.role), task.index) == key:
                return task
        return None

    def status(self, attempt: int, key: str) -> TaskStatus | None:
        """Return how a task of an attempt was last heard to be."""
        return self._statuses.get((attempt, key))

    def hear_of_log(self, key: str, trouble: str) -> None:
        """Take why a task's log cannot be read, "" if it can; while the job runs, that is said with it."""
        known = self._unread.get(key, "")
        if trouble:
            self._unread[key] = trouble
        else:
            self._unread.pop(key, None)
        if trouble != known and self.current.state == "running" and not self.ending:
            self._say(self.current.state, self.current.reason, self._with_logs(self._message), [])

    def unread(self) -> str:
        """Return a sentence on the logs that cannot be read, or not yet; "" if there are none."""
        if self.logs_to_come and not self._unread:
            logs = "1 log follows" if self.logs_to_come == 1 else f"{self.logs_to_come} logs follow"
            return f"{logs} within minutes: the server cannot be asked more often now."
        if not self._unread:
            return ""
        key, why = next(iter(sorted(self._unread.items())))
        others = f" and of {len(self._unread) - 1} more" if len(self._unread) > 1 else ""
        return (
            f"The log of {key}{others} cannot be read: {why}. What was read is kept; it is asked for again."
        )

    def tell(self, state: State, reason: str = "", message: str = "") -> None:
        """Say something that the server did not."""
        self._say(state, reason, message, [])

    def hear_attempt(self, number: int, detail: Detail) -> None:
        """Take an attempt that another one has followed."""
        told = self._changed(number, detail)
        if told:
            change = Change(self.job.id, number, self.current.state, time.time(), "", "", tuple(told))
            self._changes.publish(replace(change, reason=self.current.reason, message=self.current.message))

    def hear(self, summary: Summary, detail: Detail | None) -> None:
        """Take the present state of a job that is not final."""
        self.detail = detail or self.detail
        self.from_list = self.from_list and detail is None
        attempt = summary.attempt if detail is None or detail.attempt is None else detail.attempt
        if attempt > self.journal.attempt:
            self.journal.attempt = attempt
            self._unread.clear()
            self.current = replace(self.current, attempt=attempt, tasks=())
        told = self._changed(attempt, detail) if detail else []
        found = states.position(summary, detail, self.events)
        if found is None:
            self._say(self.current.state, self.current.reason, self.current.message, told)
        else:
            reason = "stopping" if self.journal.stop and found.state == "running" else found.reason
            self._message = found.message
            message = self._with_logs(found.message) if found.state == "running" else found.message
            self._say(found.state, reason, message, told)
        self.heard.set()

    async def end(
        self,
        summary: Summary,
        detail: Detail | None,
        before: Callable[[JobRun], Awaitable[None]] | None = None,
    ) -> None:
        """Take the end of the job: bring its logs and outputs home, note it, say it.

        Args:
            summary: of the job.
            detail: of the job, None where it cannot be had.
            before: brings its logs.
        """
        if self.done.is_set():
            return
        self.detail = detail or self.detail
        if detail is not None and detail.attempt is not None:
            self.journal.attempt = max(self.journal.attempt, detail.attempt)
        else:
            self.journal.attempt = max(self.journal.attempt, summary.attempt)
        told = self._changed(self.journal.attempt, detail) if detail else []
        if told:
            self._pass_by(summary, told)
        found = states.outcome(summary, detail, self._names, booted=self._booted)
        task = states.deciding(detail) if detail and found.state == "failed" else None
        failed = task_key(self._names.get(task.role, task.role), task.index) if task else None
        if before is not None:
            await before(self)
        missing = await self._outputs()
        said = (found.message, missing, self.unread())
        await self.finish(found.state, found.reason, " ".join(filter(None, said)), failed)

    async def finish(self, state: State, reason: str, message: str, failed: str | None = None) -> None:
        """Say the final change."""
        if self.done.is_set():
            return
        change = Change(self.job.id, self.journal.attempt, state, time.time(), reason, message, (), failed)
        self.journal.phase = "final"
        self.journal.last = self.current = replace(change, tasks=self.current.tasks)
        await self.note()
        if not self.done.is_set():
            self.done.set()
            self.heard.set()
            self._changes.publish(change)

    async def note(self) -> None:
        """Save what has been decided, if the disk lets us: a full one must not keep a job from its end."""
        try:
            await asyncio.to_thread(journal.save, self.job, self.journal)
        except OSError as error:
            _log.error("what became of job %s is not recorded yet: %s", self.job.id, error)

    def _with_logs(self, message: str) -> str:
        return f"{message} {self.unread()}".strip()

    def _pass_by(self, summary: Summary, told: list[TaskStatus]) -> None:
        """Say what its tasks have become, and that it ran, which was too short to be seen (6.2)."""
        state, reason = self.current.state, self.current.reason
        ran = any(task.state in ("succeeded", "failed") and task.started_at is not None for task in told)
        if state == "waiting" and ran and summary.state != "STOPPED":
            state, reason = "running", ""
        self._say(state, reason, "", told)

    def _changed(self, attempt: int, detail: Detail) -> list[TaskStatus]:
        """Return the tasks that are not as they were."""
        told = []
        for task in detail.tasks:
            status = states.status_of(task, self._names, attempt, booted=self._booted)
            if status is not None and self._statuses.get((attempt, status.key)) != status:
                self._statuses[attempt, status.key] = status
                told.append(status)
        return told

    def _say(self, state: State, reason: str, message: str, tasks: Sequence[TaskStatus]) -> None:
        if self.done.is_set():
            return
        now = (self.current.state, self.current.reason, self.current.message, self.current.attempt)
        if not tasks and now == (state, reason, message, self.journal.attempt):
            return
        change = Change(self.job.id, self.journal.attempt, state, time.time(), reason, message, tuple(tasks))
        known = {task.key: task for task in (*self.current.tasks, *tasks)}
        self.current = replace(change, tasks=tuple(known.values()))
        self._changes.publish(change)

    async def _outputs(self) -> str:
        """Bring home what the tasks have left; return a sentence on what could not be."""
        if not self._booted:
            return ""
        return await asyncio.to_thread(returning.bring, self.job, self.name, self._server.settings)
