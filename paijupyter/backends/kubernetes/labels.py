"""Labels and annotations of all objects of ours."""

from __future__ import annotations

from collections.abc import Mapping

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes.names import base, label_value

MANAGED_BY = "app.kubernetes.io/managed-by"
OURS = "paijupyter"
JOB = "paijupyter.io/job"
"""Id of the job; also what its Service selects."""
NAME = "paijupyter.io/name"
ROLE = "paijupyter.io/role"
ATTEMPT = "paijupyter.io/attempt"
USER = "paijupyter.io/user"
GROUP, EXPERIMENT = "paijupyter.io/group", "paijupyter.io/experiment"
"""Id of the group and key of the experiment that a job is, so that all of a group can be selected."""
KIND = "paijupyter.io/kind"
"""What an object is for: one of :data:`OWNER`, :data:`BOOT`, :data:`PACKAGE`; others have none."""
OWNER, BOOT, PACKAGE = "job", "boot", "package"
WRITTEN = "manifest"
"""Value of :data:`KIND` of a Job, and its pods, whose manifest is the user's own."""

ROLE_NAME = "paijupyter.io/role-name"
"""Annotation: the role's name as the document has it."""
SUBMITTED = "paijupyter.io/submitted"
"""Annotation of the owner: when everything of the job had been created."""
USED_AT = "paijupyter.io/used-at"
"""Annotation of what jobs share: when a job was last made that needs it."""
MEMBERS = "paijupyter.io/members"
"""Annotation of the Job of a bundle: the ids of its jobs, in the order of the indexes."""
NEEDS = "paijupyter.io/needs"
"""Annotation of the owner: names of the shared ConfigMaps that its pods mount."""


def of_job(job: Job) -> dict[str, str]:
    """Return the labels of an object of one job."""
    found = {
        MANAGED_BY: OURS,
        JOB: label_value(job.id),
        NAME: base(job.name),
        USER: label_value(job.user or "unknown"),
    }
    if job.group:
        found |= {GROUP: label_value(job.group), EXPERIMENT: label_value(job.experiment)}
    return found


def of_attempt(job: Job, attempt: int) -> dict[str, str]:
    """Return the labels of an object of one attempt."""
    return {**of_job(job), ATTEMPT: str(attempt)}


def of_role(job: Job, attempt: int, role: str) -> dict[str, str]:
    """Return the labels of a role's Job and its pods."""
    return {**of_attempt(job, attempt), ROLE: label_value(role)}


def shared(kind: str) -> dict[str, str]:
    """Return the labels of what the jobs of a namespace share."""
    return {MANAGED_BY: OURS, KIND: kind}


def selector(wanted: Mapping[str, str]) -> str:
    """Return labels as the query parameter ``labelSelector`` wants them."""
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def ours() -> str:
    """Return the selector of all objects of ours."""
    return selector({MANAGED_BY: OURS})


def of_job_id(job_id: str) -> str:
    """Return the selector of all objects of one job."""
    return selector({MANAGED_BY: OURS, JOB: label_value(job_id)})
