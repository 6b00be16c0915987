"""What the jobs of a bundle share on the cluster, and how one of them leaves it; see ``bundle.py``."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes.ending import FINAL, delete, delete_jobs, objects_left, tidy
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import KubeJob, Pod
from paijupyter.backends.kubernetes.journal import Journal, Member
from paijupyter.backends.kubernetes.paths import core
from paijupyter.backends.kubernetes.transport import KubeTransport

_log = logging.getLogger(__name__)
_GONE = "paijupyter.io/gone"


class Bundles:
    """The bundles of a profile, as far as jobs of this engine are in them."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport
        self._ending: dict[str, set[int]] = {}

    async def end(self, member: Member | None, jobs: Sequence[KubeJob], pods: Sequence[Pod]) -> None:
        """End what runs of a job: its own Jobs, and of a Job that it shares its pod.

        A Job that all of its jobs want to end is deleted as a whole: also what has no pod yet ends then.

        Raises:
            KubeError: the cluster did not.
        """
        own = [each for each in jobs if not each.shared]
        shared = [each for each in jobs if each.shared]
        if shared and member is not None:
            ending = self._ending.setdefault(member.label, set())
            ending.add(member.index)
            if ending | shared[0].settled >= set(range(member.count)):
                own = list(jobs)
                shared = []
        if own:
            await delete_jobs(self._transport, own)
        for pod in pods if shared else ():
            if pod.deleted_at is None:
                await delete(self._transport, core("pods", pod.name, namespace=self._transport.namespace))

    async def objects_left(self, journal: Journal, label: str) -> int:
        """Count what is in the cluster of a job's attempt; of one in a bundle, what is of all of them.

        Raises:
            KubeError: it cannot be asked.
        """
        member = journal.bundled
        return await objects_left(self._transport, member.label if member else label, journal.attempt)

    async def tidy(self, job: Job, journal: Journal) -> None:
        """Remove the secrets of a job that is over, and note for other hosts how it ended.

        What cannot be done now is no failure of the job's: deleting the job deletes it all. The secrets of a
        bundle go with the last of its jobs.
        """
        member, last = journal.member, journal.last
        if member is None or journal.attempt:
            await tidy(self._transport, job, journal)
        if member is None:
            return
        told = {} if last is None else {**asdict(last), "tasks": []}
        try:
            if await self._mark(member, FINAL, json.dumps(told)):
                path = core("secrets", member.name, namespace=self._transport.namespace)
                await delete(self._transport, path)
        except KubeError as error:
            if error.status != 404:
                _log.warning("objects of job %s are not tidied up: %s", job.id, error)

    async def leave(self, member: Member) -> None:
        """Forget a job; with the last one the bundle's objects go.

        Raises:
            KubeError: the cluster did not.
        """
        try:
            if await self._mark(member, _GONE, "true"):
                path = core("configmaps", member.name, namespace=self._transport.namespace)
                await delete(self._transport, path)
        except KubeError as error:
            if error.status != 404:
                raise

    async def _mark(self, member: Member, mark: str, value: str) -> bool:
        """Annotate the owner for one index; say whether all of them have that annotation now."""
        await self._transport.open()
        owner = await self._transport.request(
            "PATCH",
            core("configmaps", member.name, namespace=self._transport.namespace),
            body={"metadata": {"annotations": {f"{mark}-{member.index}": value}}},
            content_type="application/merge-patch+json",
            timeout=10,
        )
        marks = owner["metadata"].get("annotations") or {}
        return all(f"{mark}-{index}" in marks for index in range(member.count))
