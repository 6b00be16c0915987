"""What the boot process of a task is told: ``spec.json``, schema 1. Pure but for the random key."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.local import data
from paijupyter.backends.local.disk import Disk
from paijupyter.backends.local.files import secrets_file, task_files
from paijupyter.backends.local.ports import Ports
from paijupyter.backends.local.queue import capacity_of
from paijupyter.backends.local.settings import choice
from paijupyter.backends.told import GRACE_SECONDS, Task, common, has_barrier
from paijupyter.backends.told import instances as instances
from paijupyter.backends.told import tasks_of as tasks_of
from paijupyter.protocol.roles import limits_memory

_BARRIER_SECONDS = 600
_ADDRESS = "127.0.0.1"
MEMORY_LIMITS = ("auto", "sampling", "none")
CHECKPOINTS = "checkpoints"  # in the job's folder, so that they survive its attempts


def specs(job: Job, attempt: int, ports: Ports, place: Place, profile: Profile) -> dict[str, dict[str, Any]]:
    """Return the spec of every task of an attempt by its key."""
    shared = _common(job, attempt, ports, place, profile)
    tasks = tasks_of(job)
    barrier = None
    if has_barrier(job):
        folders = {task.key: str(task_files(job, place, task.key, attempt).folder) for task in tasks}
        timeout = job.extras.get("barrierTimeout") or _BARRIER_SECONDS
        barrier = {"kind": "files", "tasks": folders, "timeout": timeout}
    return {
        task.key: {**shared, **_own(job, task, attempt, place, profile), "barrier": barrier} for task in tasks
    }


def _common(job: Job, attempt: int, ports: Ports, place: Place, profile: Profile) -> dict[str, Any]:
    extras = job.extras
    return {
        **common(job, attempt, profile.settings),
        "graceSeconds": GRACE_SECONDS,
        "hosts": {key: _ADDRESS for key in ports},
        "ports": ports,
        "package": _package(job),
        "requirements": {
            "file": extras.get("requirements"),
            "policy": extras.get("install") or profile.settings.get("install") or "if-missing",
            "environments": str(place.data / "environments"),
        },
        "python": job.python or sys.executable,
        "storages": data.storages_told(job, profile),
        "secrets": str(secrets_file(place, job.id)) if job.document.get("secrets") else None,
        "key": secrets.token_hex(32),
        "logFloorBytes": Disk(place.data, profile).log_floor,
        "memoryLimit": choice(profile, "memoryLimit", MEMORY_LIMITS),
        "checkpoints": str(job.folder / CHECKPOINTS),
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
        "memoryLimitMB": _memory_limit(job, task.role, profile),
    }


def _memory_limit(job: Job, role: str, profile: Profile) -> float:
    """Return what a task was asked to do with, or, where nobody said, what all jobs of the profile have."""
    if limits_memory(job.document, role):
        return float(job.roles[role]["resourcePerInstance"].get("memoryMB") or 0)
    return capacity_of(profile).memory_mb


def _package(job: Job) -> dict[str, str] | None:
    if job.package is None:
        return None
    folder = Path(job.package.folder)
    return {
        "manifest": os.fspath(folder / "manifest.json"),
        "pack": os.fspath(folder / "pack"),
        "blobs": os.fspath(job.package.blobs),
    }
