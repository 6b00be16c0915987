"""What the boot process of a task is told alike on every backend: the job, its roles, its tasks. Pure.

The whole of ``spec.json`` is described in :mod:`paijupyter.runtime`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.protocol.completion import policies
from paijupyter.protocol.deciding import Policy
from paijupyter.protocol.names import task_key

GRACE_SECONDS = 10
"""Seconds between TERM and KILL for what a task that is to end has left."""
LOG_LIMIT_BYTES = 2**33
_ALWAYS = ("ssh", "http")  # labels every task has, one port each unless the role asks for more


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a job, in document order."""

    role: str
    index: int

    @property
    def key(self) -> str:
        """``<role>-<index>``."""
        return task_key(self.role, self.index)


def instances(role: Mapping[str, Any]) -> int:
    """Return how many tasks a role has."""
    return int(role.get("instances") or 1)


def tasks_of(job: Job) -> list[Task]:
    """Return all tasks of a job in document order."""
    return [Task(name, index) for name, role in job.roles.items() for index in range(instances(role))]


def wanted_ports(job: Job) -> dict[str, dict[str, int]]:
    """Return how many ports each label of each task needs: the document's labels, then ssh and http."""
    return {task.key: _port_counts(job.roles[task.role]) for task in tasks_of(job)}


def has_barrier(job: Job) -> bool:
    """Say whether the tasks wait for each other, as all do unless ``extras.gangAllocation`` is false."""
    extras = job.document.get("extras") or {}
    return extras.get("gangAllocation") is not False


def common(job: Job, attempt: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the spec that does not depend on where a task runs.

    Args:
        job: the job.
        attempt: number of the attempt.
        settings: those of the profile.
    """
    extras = job.extras
    defaults = job.document.get("defaults") or {}
    return {
        "schema": 1,
        "job": {
            "id": job.id,
            "name": job.name,
            "user": job.user,
            "virtualCluster": defaults.get("virtualCluster") or "default",
            "defaultFsUri": str(settings.get("defaultFsUri") or ""),
            "attempt": attempt,
        },
        "roles": [_role(job, name, policy) for name, policy in policies(job.document).items()],
        "env": {name: str(value) for name, value in (extras.get("env") or {}).items()},
        "parameters": dict(job.document.get("parameters") or {}),
        "runsNotebook": bool((extras.get("notebook") or {}).get("run")),
        "outputs": list(extras.get("outputs") or ()),
        "logLimitBytes": int(settings.get("logLimitBytes") or LOG_LIMIT_BYTES),
        "timeLimit": extras.get("timeLimit"),
    }


def _role(job: Job, name: str, policy: Policy) -> dict[str, Any]:
    role = job.roles[name]
    asked = role["resourcePerInstance"]
    ours: Mapping[str, Any] = (job.extras.get("roles") or {}).get(name) or {}
    return {
        "name": name,
        "instances": policy.instances,
        "resources": {
            "gpu": asked.get("gpu") or 0,
            "cpu": asked.get("cpu") or 0,
            "memoryMB": asked.get("memoryMB") or 0,
            "shmMB": (role.get("extraContainerOptions") or {}).get("shmMB") or 0,
        },
        "minFailed": policy.min_failed,
        "minSucceeded": policy.min_succeeded,
        "launcher": ours.get("launcher") or "plain",
        "service": bool(ours.get("service")),
        "env": {key: str(value) for key, value in (ours.get("env") or {}).items()},
        "ports": _port_counts(role),
    }


def _port_counts(role: Mapping[str, Any]) -> dict[str, int]:
    asked = role["resourcePerInstance"].get("ports") or {}
    counts = {str(label): max(int(count), 0) for label, count in asked.items()}
    for label in _ALWAYS:
        counts.setdefault(label, 1)
    return counts
