"""What makes a job's roles one unit for a queue or a scheduler: JobSet, pod groups, their labels. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import labels, names
from paijupyter.backends.kubernetes.gang import (
    POD_GROUP_LABEL,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    VOLCANO_GROUP,
    Gang,
)

Object = dict[str, Any]
_COSCHEDULER = "scheduler-plugins-scheduler"  # the name that the plug-ins' own chart gives


def grouped(job: Object, gang: Gang, group: str) -> Object:
    """Return a Job with what binds its pods to the others of the attempt.

    Args:
        job: a Job of ours.
        gang: how the attempt is placed.
        group: name of its pod group.
    """
    if gang.scheduler:
        metadata, spec = job["spec"]["template"]["metadata"], job["spec"]["template"]["spec"]
        if gang.scheduler == "volcano":
            spec.setdefault("schedulerName", "volcano")
            metadata["annotations"] = {**metadata["annotations"], VOLCANO_GROUP: group}
        else:
            spec.setdefault("schedulerName", _COSCHEDULER)
            metadata["labels"] = {**metadata["labels"], POD_GROUP_LABEL: group}
    if gang.kueue and not gang.jobset:
        job["metadata"]["labels"] = {**job["metadata"]["labels"], **_queue(gang)}
    return job


def pod_group(job: Job, gang: Gang, name: str, attempt: int) -> Object | None:
    """Return the pod group of an attempt, over all its roles; None where no scheduler wants one."""
    minimum = names.tasks(job)
    metadata = {"name": name, "labels": labels.of_attempt(job, attempt)}
    if gang.scheduler == "volcano":
        spec: dict[str, Any] = {"minMember": minimum}
        if gang.queue:
            spec["queue"] = gang.queue
        return {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": spec,
        }
    if gang.scheduler == "coscheduling":
        return {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": metadata,
            "spec": {"minMember": minimum},
        }
    return None


def jobset(job: Job, gang: Gang, name: str, attempt: int, jobs: Mapping[str, Object]) -> Object:
    """Return the roles of an attempt as one JobSet.

    Args:
        job: the job.
        gang: how the attempt is admitted.
        name: of the JobSet.
        attempt: its number.
        jobs: the Job of each role.
    """
    replicated = {
        role: names.jobset_role(names.base(job.name), attempt, role, names.instances_of(job.roles[role]))
        for role in jobs
    }
    spec: dict[str, Any] = {
        # The Service of the job gives the names; a second one would only be in its way.
        "network": {"enableDNSHostnames": False},
        # Its own end comes when all roles have ended: the board ends services, and their logs are not lost.
        # Another attempt is another JobSet, so that nothing of the first is lost.
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": [_replicated(replicated[role], each) for role, each in jobs.items()],
    }
    if gang.kueue:
        spec["suspend"] = True
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "labels": {**labels.of_attempt(job, attempt), **(_queue(gang) if gang.kueue else {})},
        },
        "spec": spec,
    }


def _replicated(name: str, job: Object) -> dict[str, Any]:
    spec = {key: value for key, value in job["spec"].items() if key != "suspend"}
    metadata = {key: value for key, value in job["metadata"].items() if key != "name"}
    return {"name": name, "replicas": 1, "template": {"metadata": metadata, "spec": spec}}


def _queue(gang: Gang) -> dict[str, str]:
    found = {QUEUE_LABEL: gang.queue}
    if gang.priority:
        found[PRIORITY_LABEL] = gang.priority
    return found
