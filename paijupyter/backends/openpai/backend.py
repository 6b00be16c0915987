"""The backend of an OpenPAI cluster."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar

from paijupyter.backends.base import BackendPlan, Capabilities, Job, Place, Profile
from paijupyter.backends.changes import Changes, Subscription
from paijupyter.backends.delivery.commits import Mirror
from paijupyter.backends.kept import journal_file
from paijupyter.backends.openpai import capabilities, journal, remembering
from paijupyter.backends.openpai.access import client_of
from paijupyter.backends.openpai.capabilities import Asker
from paijupyter.backends.openpai.collecting import Collector
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.hub import FEW, Hub
from paijupyter.backends.openpai.journal import Journal
from paijupyter.backends.openpai.people import WithAccount
from paijupyter.backends.openpai.plan import Planner
from paijupyter.backends.openpai.run import JobRun
from paijupyter.backends.openpai.server import Server
from paijupyter.backends.openpai.settings import SETTINGS, settings_of
from paijupyter.backends.openpai.stop import Stopper
from paijupyter.backends.openpai.submit import Submitter, Unsure
from paijupyter.backends.remote import Remote
from paijupyter.backends.waiting import happens
from paijupyter.data.storages import Storage
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.names import task_key

_log = logging.getLogger(__name__)
_UNSURE_PAUSES = (5.0, 60.0)  # seconds before it is tried again to learn whether a job was taken


class OpenPaiBackend(WithAccount, Remote):
    """Runs jobs on an OpenPAI cluster, as its user; see :class:`paijupyter.backends.base.Backend`.

    Attributes:
        SETTINGS: what its profile may set, each in words; others are named as unknown.
    """

    SETTINGS: ClassVar[Mapping[str, str]] = SETTINGS

    def __init__(self, profile: Profile, place: Place) -> None:
        super().__init__()
        self._profile = profile
        self._settings = settings = settings_of(profile)
        client = client_of(profile, settings)
        self._server = Server(client, settings)
        self._begin_account(profile, settings, client)
        self._changes = Changes()
        self._hub = Hub(self._server)
        self._asker = Asker(self._server)
        mirror = Mirror(settings.git, place.data / "git") if settings.git else None
        self._planner = Planner(settings, self._asker.cluster, mirror)
        self._submitter = Submitter(self._server, place.data, mirror)
        self._collector = Collector(self._server, self._hub)
        self._hub.before_end = self._collector.gather
        self._runs: dict[str, JobRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stoppers: dict[str, Stopper] = {}

    async def capabilities(self) -> Capabilities:
        """Return what the cluster has and what of it this user may use."""
        return capabilities.capabilities_of(await self._asker.cluster(), self._profile.kind)

    def storages(self) -> Mapping[str, Storage]:
        """Return the storages of the cluster that this host has too."""
        return self._settings.storages

    async def plan(self, job: Job) -> BackendPlan:
        """Return what ``submit`` would do."""
        return await self._planner.plan(job)

    async def logs(self, job: Job, role: str, index: int, attempt: int, offset: int) -> AsyncIterator[bytes]:
        """Yield a task's log from a byte offset, and follow until the task has ended."""
        run = self._runs.get(job.id)
        if run is None:
            state = await asyncio.to_thread(journal.load, job) or Journal("started", job.name)
            run = JobRun(job, self._server, self._changes, state)
        stream = self._collector.follow(run, task_key(role, index), attempt, offset)
        async with contextlib.aclosing(stream) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def remembered(self) -> Sequence[Mapping[str, Any]]:
        """Return our jobs on the server that have not ended, wherever they were submitted."""
        try:
            return await remembering.unfinished(self._server)
        except PaiError as error:
            raise error.for_people("list its jobs") from error

    async def stop(self, job: Job) -> None:
        """End the job; return once the server says that it has ended.

        Raises:
            PaiJupyterError: the server cannot be asked; the job is stopped once it can.
        """
        await self._begun(job)
        run = self._runs.get(job.id)
        if run is None:
            state = await asyncio.to_thread(journal.load, job)
            if state is None or state.phase == "final":
                return
            run = self._take_over(job, state)
        if not run.journal.stop:
            run.journal.stop = True
            await run.note()
        stopper = self._begin_stop(run)
        while not run.done.is_set():
            await happens(run.done, 1.0)
            if stopper.trouble is not None and not run.done.is_set():
                raise stopper.trouble.for_people("stop the job")

    async def delete(self, job: Job) -> None:
        """Drop what is kept of a final job; the server's own record stays: it has no call for that."""
        self._changes.forget(job.id)
        self._collector.forget(job.id)

    async def close(self) -> None:
        """Let go of everything; the jobs run on."""
        tasks = [*self._beginnings.values(), *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._changes.close()
        await self._collector.close()
        await self._hub.close()
        await self._server.client.close()
        self._runs.clear()

    @property
    def _hears(self) -> Hub:
        return self._hub

    @property
    def _going_on(self) -> Mapping[str, JobRun]:
        return self._runs

    async def _begin(self, job: Job, secrets: Mapping[str, str]) -> None:
        state = await asyncio.to_thread(journal.load, job) or Journal()
        if state.phase == "final" or job.id in self._runs:
            return
        if state.phase == "started":
            self._take_over(job, state)
            return
        try:
            await self._submitter.create(job, state, secrets)
        except Unsure as error:
            self._stay_unsure(job, state, secrets, error.__cause__)
            return
        except Exception:  # not where we are cancelled: the next engine then asks whether it is there
            await asyncio.to_thread(journal_file(job).unlink, True)
            raise
        await self._started(job, state)

    async def _started(self, job: Job, state: Journal) -> None:
        state.phase = "started"
        await asyncio.to_thread(journal.save, job, state)
        run = self._runs.get(job.id)
        if run is None:
            run = self._make_run(job, state)
        run.born = time.monotonic()
        run.tell("waiting", "queued", "The server has taken the job.")
        self._hub.join(run)
        self._collector.begin()

    def _stay_unsure(
        self, job: Job, state: Journal, secrets: Mapping[str, str], cause: BaseException | None
    ) -> None:
        """Keep a job that the server may have, and go on asking: neither lost nor submitted twice."""
        run = self._make_run(job, state)
        run.tell("waiting", "submitting", f"The server did not answer; it may have the job ({cause}).")
        self._later(self._find_out(run, secrets))

    async def _find_out(self, run: JobRun, secrets: Mapping[str, str]) -> None:
        pause = _UNSURE_PAUSES[0]
        while not run.done.is_set():
            await happens(run.done, pause)
            pause = min(2 * pause, _UNSURE_PAUSES[1])
            try:
                await self._submitter.create(run.job, run.journal, secrets)
            except Unsure as error:
                _log.warning("job %s: still unsure: %s", run.name, error.__cause__)
            except PaiJupyterError as error:
                if error.status < 500:
                    await run.finish("failed", "refused", str(error))
                    self._runs.pop(run.job.id, None)
            else:
                await self._started(run.job, run.journal)
                return

    async def _adopt_all(self, known: Sequence[Job], subscription: Subscription) -> None:
        new = [job for job in known if job.id not in self._runs and job.id not in self._beginnings]
        states = await asyncio.to_thread(lambda: [journal.load(job) for job in new])
        taken = []
        for job, state in zip(new, states, strict=True):
            if state is not None and state.last is not None:
                subscription.put(state.last)
            else:
                run = self._take_over(job, state or Journal("started", job.name))
                run.from_list = len(new) > FEW  # before the next list comes: it would want all of them
                taken.append(run)
        with contextlib.suppress(PaiError):  # the next list tells
            await self._hub.introduce(taken)
        for run in taken:
            if not run.done.is_set() and not run.ending:
                subscription.put(run.current)

    def _take_over(self, job: Job, state: Journal) -> JobRun:
        run = self._make_run(job, state)
        run.born -= 3600.0  # it is no new one
        self._hub.join(run)
        self._collector.begin()
        if state.stop:
            self._begin_stop(run)
        return run

    def _make_run(self, job: Job, state: Journal) -> JobRun:
        run = self._runs[job.id] = JobRun(job, self._server, self._changes, state)
        self._later(self._forget_at_end(run))
        return run

    async def _forget_at_end(self, run: JobRun) -> None:
        await run.done.wait()
        self._hub.leave(run)
        self._runs.pop(run.job.id, None)
        self._stoppers.pop(run.job.id, None)

    def _begin_stop(self, run: JobRun) -> Stopper:
        stopper = self._stoppers.get(run.job.id)
        if stopper is None:
            stopper = self._stoppers[run.job.id] = Stopper(run, self._hub, self._server)
            self._later(self._carry(stopper, run))
        return stopper

    async def _carry(self, stopper: Stopper, run: JobRun) -> None:
        await stopper.carry()
        if not run.done.is_set():  # not allowed: whoever asks again is told again
            await asyncio.sleep(2.0)
            self._stoppers.pop(run.job.id, None)

    def _later(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
