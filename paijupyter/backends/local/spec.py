"""What the boot process of a task is told: ``spec.json``, schema 1. Pure but for the random key."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.local import data
from paijupyter.backends.local.disk import Disk
from paijupyter.backends.local.files import secrets_file, task_files
from paijupyter.backends.local.ports import Ports
from paijupyter.backends.local.settings import choice
from paijupyter.protocol.completion import Policy, policies
from paijupyter.protocol.names import task_key

GRACE_SECONDS = 10
_BARRIER_SECONDS = 600
_LOG_LIMIT_BYTES = 2**33
_ADDRESS = "127.0.0.1"
MEMORY_LIMITS = ("auto", "sampling", "none")
CHECKPOINTS = "checkpoints"  # in the job's folder, so that they survive its attempts
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


def specs(job: Job, attempt: int, ports: Ports, place: Place, profile: Profile) -> dict[str, dict[str, Any]]:
    """Return the spec of every task of an attempt by its key."""
    common = _common(job, attempt, ports, place, profile)
    tasks = tasks_of(job)
    barrier = None
    if has_barrier(job):
        folders = {task.key: str(task_files(job, place, task.key, attempt).folder) for task in tasks}
        timeout = job.extras.get("barrierTimeout") or _BARRIER_SECONDS
        barrier = {"kind": "files", "tasks": folders, "timeout": timeout}
    return {
        task.key: {**common, **_own(job, task, attempt, place, profile), "barrier": barrier} for task in tasks
    }


def _common(job: Job, attempt: int, ports: Ports, place: Place, profile: Profile) -> dict[str, Any]:
    extras = job.extras
    defaults = job.document.get("defaults") or {}
    return {
        "schema": 1,
        "job": {
            "id": job.id,
            "name": job.name,
            "user": job.user,
            "virtualCluster": defaults.get("virtualCluster") or "default",
            "defaultFsUri": str(profile.settings.get("defaultFsUri") or ""),
            "attempt": attempt,
        },
        "roles": [_role(job, name, policy) for name, policy in policies(job.document).items()],
        "hosts": {key: _ADDRESS for key in ports},
        "ports": ports,
        "env": {name: str(value) for name, value in (extras.get("env") or {}).items()},
        "parameters": dict(job.document.get("parameters") or {}),
        "package": _package(job),
        "requirements": {
            "file": extras.get("requirements"),
            "policy": extras.get("install") or profile.settings.get("install") or "if-missing",
            "environments": str(place.data / "environments"),
        },
        "python": job.python or sys.executable,
        "storages": data.storages_told(job, profile),
        "outputs": list(extras.get("outputs") or ()),
        "secrets": str(secrets_file(place, job.id)) if job.document.get("secrets") else None,
        "key": secrets.token_hex(32),
        "graceSeconds": GRACE_SECONDS,
        "logLimitBytes": int(profile.settings.get("logLimitBytes") or _LOG_LIMIT_BYTES),
        "logFloorBytes": Disk(place.data, profile).log_floor,
        "memoryLimit": choice(profile, "memoryLimit", MEMORY_LIMITS),
        "checkpoints": str(job.folder / CHECKPOINTS),
        "timeLimit": extras.get("timeLimit"),
    }


def _own(job: Job, task: Task, attempt: int, place: Place, profile: Profile) -> dict[str, Any]:
    files = task_files(job, place, task.key, attempt)
    return {
        "role": task.role,
        "index": task.index,
        "command": job.commands[task.role],
        "output": str(job.folder / "output" / task.key),
        "folder": str(files.folder),
        "private": str(files.private),
        "data": data.told(job, files, place, profile),
    }


def _role(job: Job, name: str, policy: Policy) -> dict[str, Any]:
    role = job.roles[name]
    asked = role["resourcePerInstance"]
    ours = _our_role(job, name)
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


def _our_role(job: Job, name: str) -> Mapping[str, Any]:
    ours: Mapping[str, Any] = (job.extras.get("roles") or {}).get(name) or {}
    return ours


def _port_counts(role: Mapping[str, Any]) -> dict[str, int]:
    asked = role["resourcePerInstance"].get("ports") or {}
    counts = {str(label): max(int(count), 0) for label, count in asked.items()}
    for label in _ALWAYS:
        counts.setdefault(label, 1)
    return counts


def _package(job: Job) -> dict[str, str] | None:
    if job.package is None:
        return None
    folder = Path(job.package.folder)
    return {
        "manifest": os.fspath(folder / "manifest.json"),
        "pack": os.fspath(folder / "pack"),
        "blobs": os.fspath(job.package.blobs),
    }
