"""The backend of this machine: processes of its user, no container, no scheduler beyond a queue."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from paijupyter._version import __version__
from paijupyter.backends import logs
from paijupyter.backends.base import BackendPlan, Capabilities, Change, Job, Place, Profile, Usage
from paijupyter.backends.changes import Changes, Subscription
from paijupyter.backends.kept import journal_file
from paijupyter.backends.local import gpus, journal
from paijupyter.backends.local.disk import Disk
from paijupyter.backends.local.files import secrets_file, task_files
from paijupyter.backends.local.gpus import Gpus
from paijupyter.backends.local.journal import Journal
from paijupyter.backends.local.plan import plan
from paijupyter.backends.local.queue import Queue, capacity_of
from paijupyter.backends.local.run import JobRun
from paijupyter.backends.local.share import Hall, refuse_too_big
from paijupyter.data.storages import Storage, storages_of
from paijupyter.errors import PaiJupyterError

_log = logging.getLogger(__name__)


class LocalBackend:
    """Runs jobs as processes on this host; see :class:`paijupyter.backends.base.Backend`.

    Attributes:
        SETTINGS: what its profile may set, each in words; others are named as unknown.
    """

    SETTINGS: ClassVar[Mapping[str, str]] = {
        "cpu": "cores that jobs may use together; default: four times those there are",
        "memoryMB": "memory that jobs may use together; default: the physical memory",
        "gpu": "GPUs that jobs may use; default: those there are. More than there are: pretend ones",
        "memoryLimit": "how a task is held to its memory: auto (default: by a control group, else sampling), "
        "sampling or none",
        "diskFloorMB": "free room on the disk below which no job starts; default: 1024",
        "storages": "folders that tasks get by name: {team: {path, readOnly, mount, default}}",
        "install": "whether requirements are installed: never, if-missing (default) or always",
        "logLimitBytes": "size at which a task's log is cut off",
        "defaultFsUri": "PAI_DEFAULT_FS_URI of the tasks",
    }

    def __init__(self, profile: Profile, place: Place) -> None:
        self._profile = profile
        self._place = place
        self._changes = Changes()
        self._queue = Queue(capacity_of(profile))
        disk = Disk(place.data, profile)
        self._hall = Hall(profile, place, self._queue, self._changes, self._boot_file, (), disk)
        self._gpus = gpus.known()
        self._share_gpus()
        self._boot: Path | None = None
        self._runs: dict[str, JobRun] = {}
        self._beginnings: dict[str, asyncio.Task[None]] = {}
        self._adoptions: dict[str, asyncio.Task[None]] = {}

    async def capabilities(self) -> Capabilities:
        """Return what this machine has and what of it is free."""
        await self._look_for_gpus()
        features = {"queue", "stop-saves-logs"} | ({"gpu"} if self._queue.capacity.gpu else set())
        return Capabilities(
            kind=self._profile.kind,
            version=__version__,
            features=frozenset(features),
            capacity=self._queue.capacity.to_json(),
            free=self._queue.free.to_json(),
            storages=tuple(_names(self)),
        )

    def storages(self) -> Mapping[str, Storage]:
        """Return the storages of the profile."""
        return storages_of(self._profile.settings)

    async def plan(self, job: Job) -> BackendPlan:
        """Return what ``submit`` would do."""
        await self._look_for_gpus()
        return plan(job, self._hall, self._gpus or Gpus())

    async def submit(self, job: Job, secrets: Mapping[str, str]) -> None:
        """Queue or start the job.

        Raises:
            PaiJupyterError: ``never-fits``, ``cannot-start`` or ``no-free-port``; nothing is left of it then.
        """
        if job.id not in self._beginnings and job.id not in self._runs:
            self._beginnings[job.id] = asyncio.create_task(self._begin(job, secrets))
        beginning = self._beginnings.get(job.id)
        if beginning:
            # Goes on if the caller is cancelled: a job is there as a whole or not at all.
            await asyncio.shield(beginning)
        run = self._runs.get(job.id)
        if run:
            await run.provide(secrets)

    async def watch(self, known: Sequence[Job]) -> AsyncIterator[Change]:
        """Stream the changes of all jobs, the current state of every known one first."""
        await self._look_for_gpus()
        subscription = self._changes.subscribe()
        try:
            if self._adoptions:  # of a watch that was cancelled; what they find is to be told of
                await asyncio.wait(self._adoptions.values())
            heard = subscription.jobs()
            for run in self._runs.values():
                if run.job.id not in heard:
                    subscription.put(run.current)
            await self._adopt_all([job for job in known if job.id not in heard], subscription)
            async for change in subscription:
                yield change
        finally:
            self._changes.unsubscribe(subscription)

    async def logs(self, job: Job, role: str, index: int, attempt: int, offset: int) -> AsyncIterator[bytes]:
        """Yield a task's log from a byte offset, and follow until the task has ended."""
        files = task_files(job, self._place, f"{role}-{index}", attempt)

        def has_ended() -> bool:
            if files.exit.exists():
                return True
            run = self._runs.get(job.id)
            if run is None:
                # Over, or an earlier engine's and not adopted yet: its task may well run.
                state = journal.load(job)
                return state is None or state.phase == "final"
            return run.journal.attempt > attempt

        async for piece in logs.follow(files.log, offset, has_ended):
            yield piece

    async def usage(self, job: Job) -> Mapping[str, Usage]:
        """Return what each running task of the job uses now."""
        run = self._runs.get(job.id)
        return await run.usage() if run else {}

    async def stop(self, job: Job) -> None:
        """End all processes of the job; return when they are gone."""
        beginning = self._beginnings.get(job.id)
        if beginning:
            with contextlib.suppress(Exception):
                await asyncio.shield(beginning)
        run = self._runs.get(job.id) or await self._adopt(job)
        if run:
            await run.stop()

    async def delete(self, job: Job) -> None:
        """Remove what is kept of a final job outside its folder."""
        self._changes.forget(job.id)
        secrets_file(self._place, job.id).unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, self._place.runtime / "tasks" / job.id, True)

    async def close(self) -> None:
        """Let go of everything; the processes run on."""
        for beginning in self._beginnings.values():
            beginning.cancel()
        await asyncio.gather(*self._beginnings.values(), *self._adoptions.values(), return_exceptions=True)
        for run in list(self._runs.values()):
            await run.close()
        self._runs.clear()
        self._changes.close()

    async def _begin(self, job: Job, secrets: Mapping[str, str]) -> None:
        try:
            await self._look_for_gpus()
            found = await asyncio.to_thread(journal.load, job)
            if found is not None:
                await self._take_over(job, found)
                return
            refuse_too_big(job, self._hall)
            run = self._make_run(job, Journal())
            try:
                await run.provide(secrets)
                await run.begin()
            except Exception:
                self._runs.pop(job.id, None)
                journal_file(job).unlink(missing_ok=True)
                secrets_file(self._place, job.id).unlink(missing_ok=True)
                raise
        finally:
            del self._beginnings[job.id]

    async def _adopt_all(self, known: Sequence[Job], subscription: Subscription) -> None:
        found = []
        for job in known:
            if job.id not in self._runs:
                state = await asyncio.to_thread(journal.load, job)
                found.append((job, state or Journal()))
        # What runs takes its resources first; the queue keeps its order.
        found.sort(key=lambda each: (each[1].phase == "queued", each[1].queued_at))
        for job, state in found:
            if state.last:
                subscription.put(state.last)
            elif not job.folder.is_dir():
                subscription.put(_lost(job))
            else:
                await self._take_over(job, state)

    async def _adopt(self, job: Job) -> JobRun | None:
        await self._look_for_gpus()
        state = await asyncio.to_thread(journal.load, job)
        return await self._take_over(job, state) if state else None

    async def _take_over(self, job: Job, state: Journal) -> JobRun | None:
        if state.phase == "final":
            return None
        if job.id not in self._runs:
            run = self._make_run(job, state)
            if state.phase == "queued":
                run.resume()
                return run
            self._adoptions[job.id] = asyncio.create_task(self._adopt_run(run))
        if job.id in self._adoptions:
            # Goes on if the caller is cancelled: others already count on it.
            await asyncio.shield(self._adoptions[job.id])
        return self._runs.get(job.id)

    async def _adopt_run(self, run: JobRun) -> None:
        try:
            await run.adopt()
        except OSError:
            # Others can still be adopted; the next watch tries this one again.
            _log.exception("job %s cannot be taken over now", run.job.id)
            await run.abandon()
        finally:
            del self._adoptions[run.job.id]

    async def _look_for_gpus(self) -> None:
        """Learn what GPUs there are, once; where there may be one, the driver is asked."""
        if self._gpus is None:
            found = await asyncio.to_thread(gpus.ask)
            if self._gpus is None:
                self._gpus = found
                self._share_gpus()

    def _share_gpus(self) -> None:
        real = self._gpus.names if self._gpus else ()
        self._queue.capacity = capacity_of(self._profile, len(real))
        self._hall.gpus = gpus.handed_out(int(self._queue.capacity.gpu), real)

    def _make_run(self, job: Job, state: Journal) -> JobRun:
        run = self._runs[job.id] = JobRun(job, self._hall, state, on_done=self._forget)
        return run

    def _forget(self, job_id: str) -> None:
        self._runs.pop(job_id, None)

    def _boot_file(self) -> Path:
        if self._boot is None or not self._boot.exists():
            from paijupyter.backends.boot import boot_zipapp

            self._boot = boot_zipapp(self._place.data)
        return self._boot


def _names(backend: LocalBackend) -> list[str]:
    """Return the names of the storages; settings that cannot be used are the plan's to say."""
    with contextlib.suppress(PaiJupyterError):
        return sorted(backend.storages())
    return []


def _lost(job: Job) -> Change:
    message = f"The folder of job `{job.name}` is gone, so nothing is known of it."
    return Change(job.id, 0, "failed", time.time(), "lost", message)
