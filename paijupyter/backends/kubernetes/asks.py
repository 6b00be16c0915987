"""What a job asks of the cluster, and the events that say why it does not get it."""

from __future__ import annotations

import logging

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import amounts, pod, pod_options, queues
from paijupyter.backends.kubernetes.attempt import Attempt
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.events import Events
from paijupyter.backends.kubernetes.findings import Asked as Asked
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.transport import KubeTransport

_log = logging.getLogger(__name__)
_AT_ONCE = 4  # objects whose events are asked for in one look; the others' turn comes


def asked(job: Job, settings: KubeSettings, cluster: Cluster) -> dict[str, Asked]:
    """Return what a task of each role asks for, and the most that a node of the cluster has of it."""
    largest: dict[str, float] = {}
    for node in cluster.nodes or ():
        for resource, quantity in node.items():
            largest[resource] = max(largest.get(resource, 0.0), amounts.number(quantity))
    found = {}
    for role in job.roles:
        options = pod_options.of_role(settings.pods, job, role)
        wanted = pod.resources(job, role, settings, options)
        numbers = {resource: amounts.number(quantity) for resource, quantity in wanted.items()}
        found[role] = Asked(numbers, largest, pod.image_of(job, role, settings))
    return found


async def learn_why(events: Events, transport: KubeTransport, attempt: Attempt) -> None:
    """Tell an attempt why what it waits for is not there, as far as that may be seen.

    Without the right to list events, reasons are shorter.
    """
    try:
        attempt.events.update(await events.of(attempt.unexplained[:_AT_ONCE]))
        for claim in attempt.unbound[:_AT_ONCE]:
            attempt.claims[claim] = await events.of_claim(claim)
        units = {job.unit for job in attempt.jobs.values() if job.suspended}
        attempt.queue.update(await queues.why_waiting(transport, units))
    except KubeError as error:
        _log.debug("events of job %s: %s", attempt.job.id, error)
