"""Ending what runs of a job on the cluster, and tidying up after it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import labels, names
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import KubeJob
from paijupyter.backends.kubernetes.journal import Journal
from paijupyter.backends.kubernetes.paths import api, batch, core
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.backends.outcome import Outcome

_log = logging.getLogger(__name__)
_JOBSET = "jobset.x-k8s.io/v1alpha2"
FINAL = "paijupyter.io/final"
"""Annotation of the owner: how the job ended, for hosts that did not see it."""


def stopped() -> Outcome:
    """Return how a job ends that somebody stopped."""
    return Outcome("stopped", "user", "The job was stopped.")


async def delete_jobs(transport: KubeTransport, jobs: Sequence[KubeJob]) -> None:
    """Delete Jobs and their pods; those of a JobSet by it. The pods get their grace time.

    Raises:
        KubeError: the cluster did not.
    """
    namespace = transport.namespace
    found = {
        api(_JOBSET, "jobsets", job.jobset, namespace=namespace)
        if job.jobset
        else batch("jobs", job.name, namespace=namespace)
        for job in jobs
    }
    # Without a propagation policy a Job leaves its pods behind (kubernetes-client/python#234).
    await asyncio.gather(*(delete(transport, path) for path in found))


async def objects_left(transport: KubeTransport, label: str, attempt: int) -> int:
    """Count the Jobs and pods of an attempt that are in the cluster now.

    Raises:
        KubeError: it cannot be asked.
    """
    await transport.open()
    query = {"labelSelector": f"{labels.JOB}={label},{labels.ATTEMPT}={attempt}"}
    namespace = transport.namespace
    jobs, pods = await asyncio.gather(
        transport.request("GET", batch("jobs", namespace=namespace), query=query),
        transport.request("GET", core("pods", namespace=namespace), query=query),
    )
    running = [
        each
        for each in pods.get("items") or ()
        if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
    return len(jobs.get("items") or ()) + len(running)


async def tidy(transport: KubeTransport, job: Job, journal: Journal) -> None:
    """Remove the secrets of a job that is over, and note for other hosts how it ended.

    What cannot be done now is no failure of the job's: deleting the job deletes it all.
    """
    name, last = names.base(job.name), journal.last
    told = {} if last is None else {**asdict(last), "tasks": []}
    body = {"metadata": {"annotations": {FINAL: json.dumps(told)}}}
    try:
        await transport.open()
        if names.has_secret(job):
            await delete(transport, core("secrets", name, namespace=transport.namespace))
        await transport.request(
            "PATCH",
            core("configmaps", name, namespace=transport.namespace),
            body=body,
            content_type="application/merge-patch+json",
            timeout=10,
        )
    except KubeError as error:
        if error.status != 404:
            _log.warning("objects of job %s are not tidied up: %s", job.id, error)


async def delete(transport: KubeTransport, path: str) -> None:
    """Delete an object and what it owns; one that is gone is no failure.

    Raises:
        KubeError: the cluster did not.
    """
    try:
        await transport.request("DELETE", path, body={"propagationPolicy": "Background"}, timeout=30)
    except KubeError as error:
        if error.status != 404:
            raise
