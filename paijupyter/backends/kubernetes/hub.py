"""What is known of all jobs of a profile: one watch on pods, one on Jobs, handed on to who runs each job."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

from paijupyter.backends.kubernetes import labels
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import KubeJob, Pod, job_of, pod_of
from paijupyter.backends.kubernetes.journal import Member
from paijupyter.backends.kubernetes.paths import batch, core
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.backends.kubernetes.watch import Reflector

_Object = TypeVar("_Object", Pod, KubeJob)
PATIENCE = 10.0  # seconds for which the cluster may not answer until jobs are shown as stale
_OPENS_IN = 20.0  # seconds for the first lists


class Listener(Protocol):
    """Who runs a job."""

    def see_pod(self, pod: Pod, gone: bool) -> None:
        """Hear of a pod of the job."""

    def see_job(self, job: KubeJob, gone: bool) -> None:
        """Hear of a Job of the job."""


class Hub:
    """The watches of a profile. They begin when first needed and go on until :meth:`close`."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport
        self._listeners: dict[str, Listener] = {}
        self._members: dict[str, Member] = {}
        self._labels: dict[tuple[str, int], str] = {}
        self._pods_of: dict[str, dict[str, Pod]] = {}  # by the label of the job, then uid
        self._jobs_of: dict[str, dict[str, KubeJob]] = {}
        self._pods = Reflector(transport, lambda: self._path("pods"), labels.ours(), pod_of, self._tell_pod)
        self._jobs = Reflector(transport, lambda: self._path("jobs"), labels.ours(), job_of, self._tell_job)
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = asyncio.Event()

    async def ready(self) -> None:
        """Begin to watch, and wait until everything that is there is known and the cluster answers.

        Raises:
            KubeError: it cannot be asked.
            MissingExtra: without the package ``kubernetes``.
        """
        await self._transport.open()
        if not self._tasks and not self._closed.is_set():
            self._tasks = [asyncio.create_task(each.run()) for each in (self._pods, self._jobs)]
        end = time.monotonic() + _OPENS_IN
        while not self._closed.is_set():
            if self.is_synced and self.trouble is None:
                return
            if self.trouble is not None and (not self.trouble.is_passing or time.monotonic() > end):
                raise self.trouble
            if time.monotonic() > end:
                raise KubeError(0, "Timeout", "the API server did not answer in time")
            await self._news(end - time.monotonic())

    @property
    def is_synced(self) -> bool:
        """Whether what is there has been read once."""
        return self._pods.synced.is_set() and self._jobs.synced.is_set()

    @property
    def trouble(self) -> KubeError | None:
        """Why nothing can be heard now, or None."""
        return self._pods.error or self._jobs.error

    async def until_stale(self) -> None:
        """Return once the cluster has not answered for some time, or at the end."""
        while not self._closed.is_set():
            since = [each.failing_since for each in (self._pods, self._jobs) if each.failing_since]
            left = min(since) + PATIENCE - time.monotonic() if since else None
            if left is not None and left <= 0:
                return
            await self._news(left)

    def enroll(self, label: str, member: Member) -> None:
        """Take what is of one index of a bundle for a job's own."""
        self._members[label] = member
        self._labels[member.label, member.index] = label

    def member_of(self, job_id: str) -> Member | None:
        """Return where a job is one of a bundle that is there now."""
        for job in list(self._jobs.objects.values()):
            if job_id in job.members:
                return Member(job.base, job.job, job.members.index(job_id), len(job.members))
        return None

    def join(self, label: str, listener: Listener) -> None:
        """Tell a listener of a job's objects: those that are there at once, then what changes."""
        self._listeners[label] = listener
        member = self._members.get(label)
        for job in self.jobs_of(label):
            listener.see_job(job, False)
        for job in self.jobs_of(member.label) if member else ():
            listener.see_job(job.of_member(member.index, label), False)  # type: ignore[union-attr]
        for pod in list(self._pods_of.get(member.label if member else label, {}).values()):
            if self._label_of(pod) == label:
                listener.see_pod(_own(pod, label), False)

    def leave(self, label: str) -> None:
        """Tell nothing of a job any more."""
        self._listeners.pop(label, None)
        member = self._members.pop(label, None)
        if member is not None:
            self._labels.pop((member.label, member.index), None)

    def jobs_of(self, label: str) -> Iterator[KubeJob]:
        """Return the Jobs of a job that are there now."""
        return iter(list(self._jobs_of.get(label, {}).values()))

    def pods_of(self, label: str) -> Iterator[Pod]:
        """Return the pods of a job that are there now."""
        return iter(list(self._pods_of.get(label, {}).values()))

    async def close(self) -> None:
        """End the watches."""
        self._closed.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _path(self, plural: str) -> str:
        of = core if plural == "pods" else batch
        return of(plural, namespace=self._transport.namespace)

    def _tell_pod(self, pod: Pod, gone: bool) -> None:
        _keep(self._pods_of, pod, gone)
        label = self._label_of(pod)
        listener = self._listeners.get(label)
        if listener is not None:
            listener.see_pod(_own(pod, label), gone)

    def _tell_job(self, job: KubeJob, gone: bool) -> None:
        _keep(self._jobs_of, job, gone)
        listener = self._listeners.get(job.job)
        if listener is not None:
            listener.see_job(job, gone)
        for index in range(len(job.members)):
            label = self._labels.get((job.job, index), "")
            listener = self._listeners.get(label)
            if listener is not None:
                listener.see_job(job.of_member(index, label), gone)

    def _label_of(self, pod: Pod) -> str:
        return self._labels.get((pod.job, pod.index), pod.job)

    async def _news(self, seconds: float | None) -> None:
        events = [self._closed, self._pods.news, self._jobs.news]
        waits = [asyncio.ensure_future(each.wait()) for each in events]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*waits, return_exceptions=True)
        self._pods.news.clear()
        self._jobs.news.clear()


def _keep(index: dict[str, dict[str, _Object]], thing: _Object, gone: bool) -> None:
    if not gone:
        index.setdefault(thing.job, {})[thing.uid] = thing
        return
    of_job = index.get(thing.job, {})
    of_job.pop(thing.uid, None)
    if not of_job:
        index.pop(thing.job, None)


def _own(pod: Pod, label: str) -> Pod:
    """Return a pod as its job sees it: of a bundle, as that of its only task."""
    return pod if pod.job == label else replace(pod, job=label, index=0)
