"""Names of a job's objects: valid for Kubernetes, the same each time, and short enough for its pods.

A Job's name becomes a label of its pods and the head of their host names, so name, index and all stay within
63 characters (kubernetes/kubernetes, validation of batch/v1 Jobs).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from paijupyter.backends.base import Job
from paijupyter.protocol.names import split_suffix, task_key

LONGEST_LABEL = 63
_LONGEST_BASE = 40
_JOBSET_TAIL = len("-0-xxxxx")  # of a pod of a JobSet: index of its Job, and five random characters


def base(name: str) -> str:
    """Return the name of a job's own objects, ``NAME``: an RFC 1035 label of at most 40 characters.

    The job's random suffix survives a cut; where none is left to tell two names apart, a hash does.
    """
    short, suffix = split_suffix(name)
    tail = f"-{suffix}" if suffix else ""
    head = _plain(short)
    if not suffix and head != short:
        tail = f"-{_digest(name)}"
    head = head if head[:1].isalpha() else f"j-{head}".rstrip("-")
    if len(head) + len(tail) > _LONGEST_BASE and not tail:
        tail = f"-{_digest(name)}"
    return head[: _LONGEST_BASE - len(tail)].rstrip("-") + tail


def attempt_name(name: str, attempt: int) -> str:
    """Return what the objects of one attempt begin with."""
    return f"{name}-a{attempt}"


def spec_name(name: str, attempt: int) -> str:
    """Return the name of the ConfigMap with what the tasks of an attempt are told."""
    return f"{attempt_name(name, attempt)}-spec"


def job_name(name: str, attempt: int, role: str, instances: int) -> str:
    """Return the name of a role's Job in an attempt, so short that the last pod's host name is valid."""
    head = f"{attempt_name(name, attempt)}-"
    return head + role_part(role, LONGEST_LABEL - len(head) - _tail(instances))


def role_part(role: str, room: int) -> str:
    """Return a role's name as part of a name, with a hash where it had to change or to be cut."""
    plain = _plain(role) or "r"
    if plain == role and len(plain) <= room:
        return plain
    digest = _digest(role)
    return f"{plain[: room - len(digest) - 1].rstrip('-')}-{digest}".lstrip("-")


def jobset_role(name: str, attempt: int, role: str, instances: int) -> str:
    """Return the name of a role's replicated job in the JobSet of an attempt."""
    head = f"{attempt_name(name, attempt)}-"
    return role_part(role, LONGEST_LABEL - len(head) - _JOBSET_TAIL - _tail(instances))


def host(name: str, job: str, index: int) -> str:
    """Return the name under which the pods of the namespace reach a task.

    Args:
        name: the job's ``NAME``, which is its Service's too.
        job: name of the Kubernetes Job.
        index: of the task in its role.
    """
    return f"{job}-{index}.{name}"


def hosts(job: Job, attempt: int, *, jobset: bool = False) -> dict[str, str]:
    """Return the host name of every task by its key, in document order."""
    name, found = base(job.name), {}
    for role, fields in job.roles.items():
        instances = instances_of(fields)
        if jobset:
            owner = f"{attempt_name(name, attempt)}-{jobset_role(name, attempt, role, instances)}-0"
        else:
            owner = job_name(name, attempt, role, instances)
        found.update({task_key(role, index): host(name, owner, index) for index in range(instances)})
    if is_alone(job):  # it has no Service: its pod knows itself by its own name
        found = {key: each.partition(".")[0] for key, each in found.items()}
    return found


def is_alone(job: Job) -> bool:
    """Say whether a job is one task: nobody looks it up, and it shares no key with anybody."""
    return tasks(job) == 1


def has_secret(job: Job) -> bool:
    """Say whether a job has a Secret: for the values of its secrets, and for the key its tasks share."""
    return bool(job.document.get("secrets")) or not is_alone(job)


def tasks(job: Job) -> int:
    """Return how many tasks a job has."""
    return sum(map(instances_of, job.roles.values()))


def instances_of(role: Mapping[str, object]) -> int:
    """Return how many tasks a role has."""
    found = role.get("instances")
    return found if isinstance(found, int) and found > 0 else 1


def label_value(text: str) -> str:
    """Return a text as the value of a label, with a hash where it had to change or to be cut."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", text)
    plain = plain.strip("._-")
    if plain == text and len(plain) <= LONGEST_LABEL:
        return plain
    digest = _digest(text)
    return f"{plain[: LONGEST_LABEL - len(digest) - 1].rstrip('._-')}-{digest}".lstrip("-")


def _tail(instances: int) -> int:
    return 1 + len(str(max(instances - 1, 0)))


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
