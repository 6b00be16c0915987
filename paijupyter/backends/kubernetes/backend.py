"""The backend of a namespace of a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from paijupyter.backends import logs
from paijupyter.backends.base import (
    BackendPlan,
    Capabilities,
    Change,
    Connection,
    Job,
    Place,
    Profile,
    Usage,
)
from paijupyter.backends.boot import boot_zipapp
from paijupyter.backends.changes import Changes, Subscription
from paijupyter.backends.kubernetes import (
    building,
    bundle,
    capabilities,
    entering,
    journal,
    remembering,
    usage,
)
from paijupyter.backends.kubernetes.builds import Builds
from paijupyter.backends.kubernetes.bundles import Bundles
from paijupyter.backends.kubernetes.capabilities import Asker
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.events import Events
from paijupyter.backends.kubernetes.facts import Pod
from paijupyter.backends.kubernetes.hub import Hub
from paijupyter.backends.kubernetes.journal import Journal, Member
from paijupyter.backends.kubernetes.life import JobRun
from paijupyter.backends.kubernetes.logs import Lines
from paijupyter.backends.kubernetes.names import label_value
from paijupyter.backends.kubernetes.plan import Planner, submitted
from paijupyter.backends.kubernetes.settings import SETTINGS, settings_of
from paijupyter.backends.kubernetes.shared import Shared
from paijupyter.backends.kubernetes.submit import Submitter
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.backends.remote import Remote
from paijupyter.data.storages import Storage
from paijupyter.errors import Conflict, PaiJupyterError
from paijupyter.protocol.names import task_key

FEATURES = frozenset({"build", "exec", "forward", "stop-saves-logs"})
_AT_ONCE = 16  # jobs that are created at the same time: each waits most of its time for the cluster


class KubernetesBackend(Remote):
    """Runs jobs in a namespace, as its user; see :class:`paijupyter.backends.base.Backend`.

    Attributes:
        SETTINGS: what its profile may set, each in words; others are named as unknown.
    """

    SETTINGS: ClassVar[Mapping[str, str]] = SETTINGS

    def __init__(self, profile: Profile, place: Place) -> None:
        super().__init__()
        self._place = place
        self._settings = settings = settings_of(profile)
        self._transport = transport = KubeTransport(
            kubeconfig=settings.kubeconfig or None,
            context=settings.context or None,
            namespace=settings.namespace or None,
        )
        self._changes = Changes()
        self._asker = Asker(transport)
        self._hub = Hub(transport)
        self._submitter = Submitter(transport, settings, self._asker.cluster, self._boot, place.data)
        self._planner = Planner(transport, settings, self._asker.cluster, self._boot, place.data)
        self._bundles = Bundles(transport)
        lines = Lines()
        self._shared = Shared(
            transport,
            settings,
            self._hub,
            self._asker,
            self._submitter,
            self._changes,
            lines,
            self._bundles,
            Builds(transport, settings, self._hub, self._asker, lines),
            Events(transport),
            place.data,
        )
        self._runs: dict[str, JobRun] = {}
        self._boot_file: Path | None = None

    async def capabilities(self) -> Capabilities:
        """Return what the cluster has and what of it this user may use."""
        return capabilities.capabilities_of(await self._asker.cluster(), self._settings, FEATURES)

    def storages(self) -> Mapping[str, Storage]:
        """Return the storages of the profile."""
        return {name: each.storage for name, each in self._settings.storages.items()}

    async def plan(self, job: Job) -> BackendPlan:
        """Return what ``submit`` would do."""
        return await self._planner.plan(job)

    async def submit_many(
        self, jobs: Sequence[tuple[Job, Mapping[str, str]]]
    ) -> Sequence[PaiJupyterError | None]:
        """Create jobs side by side; those that differ by values only are one Indexed Job."""
        new = [each for each in jobs if each[0].id not in self._runs and each[0].id not in self._beginnings]
        cluster = await self._asker.cluster()
        bundles, _ = await asyncio.to_thread(bundle.split, new, self._settings, cluster)
        bundled = await asyncio.gather(*map(self._submit_bundle, bundles))
        refused = {key: why for found in bundled for key, why in found.items()}
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(job: Job, secrets: Mapping[str, str]) -> PaiJupyterError | None:
            if job.id in refused:
                return refused[job.id]
            async with turn:
                try:
                    await self.submit(job, secrets)
                except PaiJupyterError as error:
                    return error
            return None

        return await asyncio.gather(*(one(*each) for each in jobs))

    def submitted(self, job: Job) -> str:
        """Return the document of a job as its plan shows it."""
        return submitted(job)

    async def logs(self, job: Job, role: str, index: int, attempt: int, offset: int) -> AsyncIterator[bytes]:
        """Yield a task's log from a byte offset, and follow until the task has ended."""
        key = task_key(role, index)

        def has_ended() -> bool:
            run = self._runs.get(job.id)
            if run is not None:
                return run.log_has_ended(key, attempt)
            # Over, or an earlier engine's and not adopted yet: its task may well run.
            state = journal.load(job)
            return state is not None and state.phase == "final"

        path = job.folder / "tasks" / key / str(attempt) / "log"
        async with contextlib.aclosing(logs.follow(path, offset, has_ended)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def usage(self, job: Job) -> Mapping[str, Usage]:
        """Return what each running task of the job uses now."""
        run = self._runs.get(job.id)
        if run is None:
            return {}
        member = run.journal.bundled
        label = member.label if member else label_value(job.id)
        return await usage.measure(self._transport, label, run.pods, run.used_by)

    async def exec(
        self, job: Job, role: str, index: int, command: Sequence[str], stdin: bytes
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Run a command in the pod of a task."""
        pod = self._pod(job, task_key(role, index))
        async with contextlib.aclosing(entering.run(self._transport, pod, command, stdin)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def connect(self, job: Job, role: str, index: int, port: int) -> Connection:
        """Open a connection to a port of the pod of a task."""
        return await entering.connect(self._transport, self._pod(job, task_key(role, index)).name, port)

    async def remembered(self) -> Sequence[Mapping[str, Any]]:
        """Return the jobs of the namespace that have not ended, whoever submitted them."""
        await self._ready()
        try:
            return await remembering.unfinished(self._transport)
        except KubeError as error:
            raise error.for_people("list its jobs") from error

    async def stop(self, job: Job) -> None:
        """End all pods of the job; return when they are gone.

        Raises:
            PaiJupyterError: the cluster cannot be reached; the job is stopped once it can.
        """
        await self._begun(job)
        run = self._runs.get(job.id)
        if run is None:
            state = await asyncio.to_thread(journal.load, job)
            if state is None or state.phase == "final":
                return
            await self._ready()
            run = self._runs.get(job.id) or self._take_over(job, state)
        await run.stop()

    async def delete(self, job: Job) -> None:
        """Remove what the cluster still has of a final job."""
        self._changes.forget(job.id)
        state = await asyncio.to_thread(journal.load, job)
        if state is None:
            return
        await self._submitter.remove(job)
        if state.member is not None:
            try:
                await self._bundles.leave(state.member)
            except KubeError as error:
                raise error.for_people("delete the job") from error

    async def close(self) -> None:
        """Let go of everything; the jobs run on."""
        for beginning in list(self._beginnings.values()):
            beginning.cancel()
        await asyncio.gather(*self._beginnings.values(), return_exceptions=True)
        self._changes.close()
        await asyncio.gather(*(run.close() for run in list(self._runs.values())))
        self._runs.clear()
        await self._submitter.close()
        await self._hub.close()
        await self._transport.close()

    async def _submit_bundle(
        self, jobs: Sequence[tuple[Job, Mapping[str, str]]]
    ) -> Mapping[str, PaiJupyterError | None]:
        """Create jobs as one; return for each by its id None, or why none of them was created."""
        of = [job for job, _ in jobs]
        begun = asyncio.create_task(self._begin_bundle(of, jobs[0][1]))
        self._beginnings.update({job.id: begun for job in of})
        begun.add_done_callback(lambda _: [self._beginnings.pop(job.id, None) for job in of])
        try:
            await asyncio.shield(begun)
        except PaiJupyterError as error:
            return {job.id: error for job in of}
        return {job.id: None for job in of}

    async def _begin_bundle(self, jobs: Sequence[Job], secrets: Mapping[str, str]) -> None:
        await self._submitter.create_bundle(jobs, secrets)
        states = [Journal("started", member=member) for member in bundle.members(jobs)]
        await asyncio.to_thread(lambda: [*map(journal.jot, jobs, states)])
        for job, state in zip(jobs, states, strict=True):
            self._begin_run(job, state)
        with contextlib.suppress(KubeError):
            await self._hub.ready()

    @property
    def _hears(self) -> Hub:
        return self._hub

    @property
    def _going_on(self) -> Mapping[str, JobRun]:
        return self._runs

    async def _begin(self, job: Job, secrets: Mapping[str, str]) -> None:
        state = await asyncio.to_thread(journal.load, job)
        if state is not None and state.phase == "final":
            return
        state = state or Journal(member=await self._found_in_bundle(job))
        if state.member is None:
            await self._submitter.create(job, secrets)
        if state.phase == "creating":
            state.phase = "building" if building.is_wanted(job) else "started"
        await asyncio.to_thread(journal.save, job, state)
        if job.id not in self._runs:
            self._begin_run(job, state)
        # Its pods are heard of even if nobody has opened a watch yet.
        with contextlib.suppress(KubeError):
            await self._hub.ready()

    async def _adopt_all(self, known: Sequence[Job], subscription: Subscription) -> None:
        for job in known:
            if job.id in self._runs or job.id in self._beginnings:
                continue
            state = await asyncio.to_thread(journal.load, job)
            if state is not None and state.last is not None:
                subscription.put(state.last)
                continue
            if state is None:
                state = Journal("started", self._latest_attempt(job), member=await self._found_in_bundle(job))
                if building.is_wanted(job) and not any(self._hub.jobs_of(label_value(job.id))):
                    state.phase = "building"
            elif state.phase == "creating" and state.attempt == 0:
                state.phase = "started"
            run = self._take_over(job, state)
            subscription.put(run.current)

    async def _found_in_bundle(self, job: Job) -> Member | None:
        """Return where a job is one of a bundle that an earlier engine, or another host, has made."""
        if not job.group:
            return None
        with contextlib.suppress(KubeError):
            await self._hub.ready()
        return self._hub.member_of(job.id)

    def _latest_attempt(self, job: Job) -> int:
        """Return the number of the last attempt of a job that another host submitted."""
        return max((each.attempt for each in self._hub.jobs_of(label_value(job.id))), default=0)

    def _begin_run(self, job: Job, state: Journal) -> None:
        """Take a new job over, and say what the watches may have told of it already."""
        # Said first: by the time the watches tell of its pods they may run.
        self._changes.publish(Change(job.id, state.attempt, "waiting", time.time(), "starting"))
        run = self._take_over(job, state)
        if run.current.reason != "submitting":
            self._changes.publish(run.current)

    def _take_over(self, job: Job, state: Journal) -> JobRun:
        if job.id in self._runs:  # since the journal was asked for
            return self._runs[job.id]
        if state.member is not None:
            self._hub.enroll(label_value(job.id), state.member)
        run = self._runs[job.id] = JobRun(job, self._shared, state, on_done=self._forget)
        run.begin()
        return run

    def _pod(self, job: Job, key: str) -> Pod:
        run = self._runs.get(job.id)
        pod = run.pod_of(key) if run else None
        if pod is None:
            raise Conflict("not-running", f"Task `{key}` does not run now.", "Try again once it does.")
        return pod

    def _forget(self, job_id: str) -> None:
        self._runs.pop(job_id, None)

    def _boot(self) -> Path:
        """Return the zipapp of the tasks; once per engine, whose sources do not change."""
        if self._boot_file is None or not self._boot_file.is_file():
            self._boot_file = boot_zipapp(self._place.data)
        return self._boot_file
