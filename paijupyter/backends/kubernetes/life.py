"""The life of one job on a cluster: attempt after attempt, until its final change is out.

The cluster runs the job by itself; here it is watched, its logs and outputs are brought home, and what only a
user or the job's retries ask for is done: the next attempt, a stop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from paijupyter.backends import retries
from paijupyter.backends.base import FINAL, Change, Job, State, TaskStatus, Usage
from paijupyter.backends.kubernetes import asks, ending, journal, written
from paijupyter.backends.kubernetes.attempt import Attempt, Position
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import KubeJob, Pod
from paijupyter.backends.kubernetes.journal import Journal
from paijupyter.backends.kubernetes.logs import Follower
from paijupyter.backends.kubernetes.names import label_value
from paijupyter.backends.kubernetes.outputs import Fetcher
from paijupyter.backends.kubernetes.shared import Shared
from paijupyter.backends.kubernetes.task_files import TaskFiles
from paijupyter.backends.outcome import Outcome
from paijupyter.backends.retries import Again
from paijupyter.backends.waiting import happens
from paijupyter.errors import NotFound, PaiJupyterError
from paijupyter.protocol.names import task_key

_log = logging.getLogger(__name__)
_SETTLE = (0.02, 0.25)  # seconds in which news are gathered: of a small job, and of one with many tasks
_MANY = 50
_LOOK_EVERY = 5.0  # seconds between two looks at what waits
_FIRST_LOOK = 1.0
_LAST_LINES = 20.0  # seconds for what the cluster still has of the logs of tasks that have ended
_CATCH_UP = 10.0
_BOARD_PATIENCE = 60.0  # seconds past the grace time after which what has not ended by itself is deleted
_PAUSES = (1.0, 30.0)  # seconds between tries of what the cluster did not do


class JobRun:
    """One job that is not final.

    Attributes:
        current: its state now, with the status of every task.
        done: set when its final change is out.
        trouble: why the cluster did not do what was asked last, or None.
    """

    def __init__(self, job: Job, shared: Shared, state: Journal, on_done: Callable[[str], None]) -> None:
        self.job = job
        self.journal = state
        self.done = asyncio.Event()
        self.current = Change(job.id, state.attempt, "waiting", time.time(), "submitting")
        self.trouble: KubeError | None = None
        self._shared = shared
        self._on_done = on_done
        self._wake = asyncio.Event()
        self._stop_asked = asyncio.Event()
        self._label = label_value(job.id)
        self._attempt = Attempt(job, state.attempt, {}, shared.settings.stuck_after)
        self._asked: Mapping[str, asks.Asked] | None = None
        self._followers: dict[tuple[int, str], Follower] = {}
        self._fetcher = Fetcher(job, shared.transport, shared.settings)
        self._life: asyncio.Task[None] | None = None
        self._has_run = False
        self._decided_at: float | None = None

    def begin(self) -> None:
        """Go on from where its journal says: at once with what is known of it, then as news come."""
        if self.journal.phase == "started":
            self._shared.hub.join(self._label, self)
            if self._attempt.jobs:
                position, changed = self._look()
                at = (position.state, time.time(), position.reason, position.message)
                self.current = Change(self.job.id, self.journal.attempt, *at, tuple(changed))
        self._life = asyncio.create_task(self._live(), name=f"job {self.job.id}")

    async def stop(self) -> None:
        """End the job; return when its pods are gone and its final change is out.

        Raises:
            PaiJupyterError: the cluster cannot be reached; the job is stopped once it can.
        """
        if not self.journal.stop:
            self.journal.stop = True
            self._stop_asked.set()
            await self._note()
            self._wake.set()
        while not self.done.is_set():
            await happens(self.done, 1.0)
            if self.trouble is not None and not self.done.is_set():
                raise self.trouble.for_people("stop the job")

    def log_has_ended(self, key: str, attempt: int) -> bool:
        """Say whether nothing will be added to the log of a task any more."""
        follower = self._followers.get((attempt, key))
        if follower is not None:
            is_over = attempt < self.journal.attempt or self._attempt.has_no_more_tries(key)
            return is_over and follower.done.is_set()
        return attempt < self.journal.attempt or self.done.is_set()

    def pod_of(self, key: str) -> Pod | None:
        """Return the pod in which a task runs now."""
        pod = self._attempt.pods.get(key)
        return pod if pod is not None and pod.container.running_since and not pod.has_ended else None

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The pods of the current attempt by task."""
        return self._attempt.pods

    def used_by(self, key: str) -> Usage | None:
        """Return what a task said lately that it uses."""
        follower = self._followers.get((self._attempt.number, key))
        return follower.usage if follower else None

    async def close(self) -> None:
        """Let go; the pods run on."""
        self._shared.hub.leave(self._label)
        if self._life:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        await self._fetcher.close()
        await asyncio.gather(*(each.close() for each in self._followers.values()))

    # What it hears

    def see_pod(self, pod: Pod, gone: bool) -> None:
        """Hear of a pod of the job."""
        key = self._attempt.see_pod(pod, gone)
        if key is not None:
            self._follow(key, self._attempt.pods[key])
            self._wake.set()

    def see_job(self, job: KubeJob, gone: bool) -> None:
        """Hear of a Job of the job."""
        if self._attempt.see_job(job, gone) is not None:
            self._wake.set()

    def _follow(self, key: str, pod: Pod) -> None:
        number = self._attempt.number
        follower = self._followers.get((number, key))
        if follower is None:
            folder = self.job.folder / "tasks" / key / str(number)
            follower = self._followers[number, key] = Follower(
                self._shared.transport,
                self._shared.lines,
                folder,
                lambda: self._fetcher.begin(key, self._attempt.pods[key].name),
            )
        follower.see(pod)

    # Life

    async def _live(self) -> None:
        try:
            outcome = await self._to_the_end()
        except NotFound as error:  # a further attempt, of a job that somebody deleted meanwhile
            outcome = Outcome("failed", "lost", str(error))
        except PaiJupyterError as error:
            outcome = Outcome("failed", "start", str(error))
        except Exception as error:  # whatever goes wrong, a job must not be left without an end
            _log.exception("job %s cannot go on", self.job.id)
            outcome = Outcome("failed", "internal", f"The job could not go on: {error!r}.")
        await self._finish(outcome)

    async def _to_the_end(self) -> Outcome:
        while True:
            if self.journal.phase == "building":
                outcome = await self._images()
                if outcome is not None:
                    return outcome
            if self.journal.phase in ("building", "creating") and not self.journal.stop:
                await self._create()
            self._shared.hub.join(self._label, self)
            outcome = await self._run_attempt()
            await self._end_logs()
            again = None
            if not self._attempt.is_lost and written.manifest_of(self.job) is None:
                allowed = int(self.job.document.get("jobRetryCount") or 0)
                again = retries.again(outcome, self.journal, allowed)
            if again is None:
                return outcome
            await self._prepare_retry(again)

    async def _images(self) -> Outcome | None:
        """Have the images built that the job wants; return why it ends before it begins, if it does."""
        if self.journal.stop:
            self._stop_asked.set()
        say, of = partial(self._say, "waiting", "building"), partial(self._shared.submitter.builds, self.job)
        outcome = await self._shared.builds.provide(self.job, of, self._stop_asked, say)
        outcome = ending.stopped() if self.journal.stop else outcome
        if outcome is not None:
            self._sweep_statuses()
        return outcome

    async def _create(self) -> None:
        """Create the objects of the attempt, however long the cluster is away."""
        if self.journal.attempt or self.journal.phase == "building":
            await self._patiently(
                "start the next attempt",
                lambda: self._shared.submitter.start_attempt(self.job, self.journal),
            )
        self.journal.phase = "started"
        await self._note()

    async def _run_attempt(self) -> Outcome:
        """Return how the attempt ended, once nothing of it runs."""
        attempt, look_at = self._attempt, time.monotonic() + _FIRST_LOOK
        files = TaskFiles(self.job, attempt.number)
        await self._learn_what_is_asked()
        while True:
            self._wake.clear()
            await files.update(attempt.pods)
            position, changed = self._look()
            if await self._judge():
                position, more = self._look()
                changed += more
            self._announce(position, changed)
            if attempt.is_over or (attempt.ending and await self._is_empty()):
                break
            if attempt.is_lost and await self._is_really_lost():
                return await self._lost()
            if attempt.ending:
                await self._end_rest()
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + _LOOK_EVERY
                await asks.learn_why(self._shared.events, self._shared.transport, attempt)
            await self._pause(max(look_at - time.monotonic(), 0.05))
        self._sweep_statuses()
        await files.remember(self._shared.data, self._shared.settings)
        return self.journal.outcome or Outcome("failed", "lost", "The job's tasks are gone.")

    async def _pause(self, seconds: float) -> None:
        await happens(self._wake, seconds)
        await asyncio.sleep(_SETTLE[len(self._attempt.statuses) > _MANY])

    def _look(self) -> tuple[Position, list[TaskStatus]]:
        """Return where the job stands now, and which tasks have changed."""
        self._attempt.ending = self.journal.stop or self.journal.outcome is not None
        changed = self._attempt.look(time.time())
        position = self._attempt.position(stopping=self.journal.stop, has_run=self._has_run)
        self._has_run = (self._has_run and not self._attempt.is_suspended) or position.state == "running"
        return position, changed

    async def _judge(self) -> bool:
        """Decide the outcome if it can be; say whether that is news."""
        if self.journal.outcome is not None:
            return False
        self.journal.outcome = self._attempt.outcome()
        if self.journal.outcome is None and self.journal.stop:
            self.journal.outcome = ending.stopped()
        if self.journal.outcome is None:
            return False
        self._decided_at = time.monotonic()
        await self._note()
        return True

    def _announce(self, position: Position, changed: list[TaskStatus]) -> None:
        now = (self.current.state, self.current.reason, self.current.message)
        if changed or (position.state, position.reason, position.message) != now:
            self._say(position.state, position.reason, position.message, tuple(changed))

    async def _end_rest(self) -> None:
        """Delete what is left: at once if the job is stopped, else only what the board could not end."""
        if not self.journal.stop:
            patience = self._shared.settings.grace_seconds + _BOARD_PATIENCE
            if self._decided_at is None or time.monotonic() < self._decided_at + patience:
                return
        left = [job for job in self._attempt.jobs.values() if not job.gone and job.deleted_at is None]
        if not left:
            return
        mine = [each for (number, _), each in self._followers.items() if number == self._attempt.number]
        await asyncio.gather(*(each.catch_up(_CATCH_UP) for each in mine))
        try:
            await self._shared.bundles.end(self.journal.member, left, self._attempt.live_pods)
            self.trouble = None
        except KubeError as error:
            self.trouble = error
            _log.warning("job %s is not ended yet: %s", self.job.id, error)
            self._wake.set()
            await asyncio.sleep(_PAUSES[0])

    async def _is_empty(self) -> bool:
        """Say whether nothing of an attempt that is to end is left, and nothing will come any more."""
        attempt = self._attempt
        if attempt.live_pods or any(job.has_more for job in attempt.jobs.values()):
            return False
        if attempt.jobs:
            return True
        return await self._is_really_lost()

    async def _is_really_lost(self) -> bool:
        """Ask the cluster itself: what the watches have not heard of yet is not lost."""
        try:
            found = await self._shared.bundles.objects_left(self.journal, self._label)
        except KubeError as error:
            self.trouble = error
            return False
        self.trouble = None
        return not found

    async def _lost(self) -> Outcome:
        message = f"The Jobs of `{self.job.name}` are no longer in the cluster: somebody deleted them."
        now = time.time()
        tasks = tuple(
            each
            if each.state in FINAL
            else replace(each, state="failed", reason="lost", message=f"{each.key} is gone", ended_at=now)
            for each in self._attempt.statuses.values()
        )
        self._say(self.current.state, self.current.reason, self.current.message, tasks)
        return self.journal.outcome or Outcome("failed", "lost", message)

    def _sweep_statuses(self) -> None:
        """Tasks that never had a pod have been stopped before they ran."""
        left = [each for each in self._attempt.statuses.values() if each.state not in FINAL]
        if left:
            tasks = tuple(replace(each, state="stopped", reason="", message="") for each in left)
            self._attempt.statuses.update({each.key: each for each in tasks})
            self._say(self.current.state, self.current.reason, self.current.message, tasks)

    async def _end_logs(self) -> None:
        mine = [each for (number, _), each in self._followers.items() if number == self._attempt.number]
        await asyncio.gather(*(each.finish(_LAST_LINES) for each in mine))

    async def _learn_what_is_asked(self) -> None:
        if self._asked is None:
            cluster = await self._shared.asker.cluster()
            self._asked = asks.asked(self.job, self._shared.settings, cluster)
        self._attempt.know(self._asked)

    async def _prepare_retry(self, again: Again) -> None:
        self.journal.attempt += 1
        self.journal.phase, self.journal.outcome = "creating", None
        self._decided_at, self._has_run = None, False
        await self._note()
        self._attempt = Attempt(self.job, self.journal.attempt, {}, self._shared.settings.stuck_after)
        self.current = replace(self.current, tasks=())
        self._say("waiting", "retry-delay", again.words)
        if again.delay:
            await happens(self._stop_asked, again.delay)

    async def _patiently(self, doing: str, step: Callable[[], object]) -> None:
        """Take a step, again and again while the cluster is away; not once the job is to stop."""
        pause = _PAUSES[0]
        while not self.journal.stop:
            try:
                await step()  # type: ignore[misc]
                return
            except PaiJupyterError as error:
                if error.status < 500:
                    raise
                _log.warning("job %s: cluster did not %s: %s", self.job.id, doing, error)
                self._say("waiting", "retry-delay", f"{error.message} Trying again.")
            await happens(self._stop_asked, pause)
            pause = min(2 * pause, _PAUSES[1])

    async def _finish(self, outcome: Outcome) -> None:
        await self._fetcher.finish()
        change = Change(
            self.job.id,
            self.journal.attempt,
            outcome.state,
            time.time(),
            outcome.reason,
            outcome.message,
            (),
            outcome.failed_task,
        )
        self.journal.phase = "final"
        self.journal.last = self.current = replace(change, tasks=self.current.tasks)
        await self._note()
        await self._shared.bundles.tidy(self.job, self.journal)
        self._shared.hub.leave(self._label)
        self._on_done(self.job.id)
        self._shared.changes.publish(change)
        self.done.set()

    # Words

    def _say(
        self, state: State, reason: str = "", message: str = "", tasks: tuple[TaskStatus, ...] = ()
    ) -> None:
        change = Change(self.job.id, self.journal.attempt, state, time.time(), reason, message, tasks)
        known = {task_key(each.role, each.index): each for each in (*self.current.tasks, *tasks)}
        self.current = replace(change, tasks=tuple(known.values()))
        self._shared.changes.publish(change)

    async def _note(self) -> None:
        """Save what has been decided, if the disk lets us: a full one must not keep a job from its end."""
        try:
            await asyncio.to_thread(journal.save, self.job, self.journal)
        except OSError as error:
            _log.error("what became of job %s is not recorded yet: %s", self.job.id, error)
