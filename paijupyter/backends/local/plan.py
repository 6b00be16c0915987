"""What submitting a job to this machine would do, without doing it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.backends.base import BackendPlan, Job, Profile
from paijupyter.backends.local import data
from paijupyter.backends.local.gpus import Gpus
from paijupyter.backends.local.queue import Queue, Resources, needs_of
from paijupyter.backends.local.share import Hall
from paijupyter.backends.local.spec import instances, tasks_of
from paijupyter.errors import Problem, in_order
from paijupyter.protocol.build import DEFAULT_IMAGE
from paijupyter.protocol.writing import write

LAUNCHERS = frozenset({"plain", "torchrun", "tensorflow", "paddle", "jax", "mpi"})


def plan(job: Job, hall: Hall, gpus: Gpus) -> BackendPlan:
    """Return the submitted document, one process per task, and everything against it.

    Args:
        job: what would be submitted.
        hall: what all jobs of the profile share.
        gpus: those that this machine really has.
    """
    queue, profile = hall.queue, hall.profile
    problems = [
        *_capacity(job, queue.capacity, profile),
        *_pretence(job, profile, len(gpus.names)),
        *_doubt(job, gpus),
        *_disk(hall),
        *_role_problems(job),
        *_left_out(job),
        *_machine(job),
        *data.problems(job, profile),
    ]
    return BackendPlan(
        submitted=write({**job.document, "name": job.name}),
        objects=tuple(_object(job, task.role, task.index) for task in tasks_of(job)),
        problems=tuple(in_order(problems)),
        starts="when the disk has room" if hall.disk.shortage else _starts(job, queue),
    )


def _object(job: Job, role: str, index: int) -> Mapping[str, Any]:
    asked = job.roles[role]["resourcePerInstance"]
    return {
        "kind": "process",
        "name": f"{role}-{index}",
        "role": role,
        "index": index,
        "cpu": asked.get("cpu") or 0,
        "memoryMB": asked.get("memoryMB") or 0,
        "gpu": asked.get("gpu") or 0,
    }


def _starts(job: Job, queue: Queue) -> str:
    if queue.starts_now(needs_of(job)):
        return "now"
    before = len(queue)
    if before:
        return f"after {before} queued {'jobs' if before > 1 else 'job'}"
    return "when running jobs have ended"


def _capacity(job: Job, capacity: Resources, profile: Profile) -> Iterator[Problem]:
    needs = needs_of(job)
    for thing, unit, asked, there, pointer in (
        ("CPUs", "", needs.cpu, capacity.cpu, "cpu"),
        ("Memory", " MB", needs.memory_mb, capacity.memory_mb, "memoryMB"),
        ("GPUs", "", needs.gpu, capacity.gpu, "gpu"),
    ):
        if asked <= there:
            continue
        most = max(job.roles, key=lambda name: _asked(job.roles[name], pointer))
        path = f"/taskRoles/{most}/resourcePerInstance/{pointer}"
        if thing == "GPUs" and not there:
            yield Problem(
                "error",
                "no-gpu",
                f"GPUs are asked for ({asked:g}), but profile `{profile.name}` has none.",
                path,
                hint="Ask for 0 GPUs, or choose a profile that has some.",
            )
        else:
            yield Problem(
                "error",
                "never-fits",
                f"{thing} asked for by the whole job are {asked:g}{unit}; "
                f"profile `{profile.name}` has {there:g}{unit}, so it would never start.",
                path,
                hint=f"Ask for less, or raise `{pointer}` in the profile.",
            )


def _pretence(job: Job, profile: Profile, real: int) -> Iterator[Problem]:
    count = profile.settings.get("gpu")
    if needs_of(job).gpu and isinstance(count, (int, float)) and count > real:
        yield Problem(
            "hint",
            "pretend-gpu",
            f"GPUs of profile `{profile.name}` are pretend ones: this machine has {real or 'none'}.",
            "/taskRoles",
            hint="Tasks get numbers in CUDA_VISIBLE_DEVICES that no device belongs to.",
        )


def _doubt(job: Job, gpus: Gpus) -> Iterator[Problem]:
    if not needs_of(job).gpu or not gpus.doubt:
        return
    if gpus.names:
        words = f"GPUs are counted by the driver's nodes ({len(gpus.names)}): {gpus.doubt}."
        hint = "How busy they are is not shown, and a GPU cut into MIG slices is one."
    else:
        words, hint = f"GPUs cannot be used: {gpus.doubt}.", "See what `nvidia-smi` says on this machine."
    yield Problem("warning", "gpu-driver", words, "/taskRoles", hint=hint)


def _disk(hall: Hall) -> Iterator[Problem]:
    if hall.disk.shortage:
        yield Problem(
            "warning",
            "disk-full",
            hall.disk.shortage,
            hint="Free room, for example by deleting old jobs (paijob delete NAME), or lower the profile's "
            "`diskFloorMB`.",
        )


def _asked(role: Mapping[str, Any], resource: str) -> float:
    return instances(role) * float(role["resourcePerInstance"].get(resource) or 0)


def _role_problems(job: Job) -> Iterator[Problem]:
    for name, role in job.roles.items():
        if (role.get("extraContainerOptions") or {}).get("infiniband"):
            yield Problem(
                "error",
                "no-infiniband",
                f"InfiniBand is asked for by role `{name}`, but a local job cannot have it.",
                f"/taskRoles/{name}/extraContainerOptions/infiniband",
                hint="Remove it, or choose a profile on a cluster.",
            )
        launcher = ((job.extras.get("roles") or {}).get(name) or {}).get("launcher") or "plain"
        if launcher not in LAUNCHERS:
            yield Problem(
                "error",
                "unknown-launcher",
                f"Launcher `{launcher}` of role `{name}` is not known.",
                f"/extras/paijupyter/roles/{name}/launcher",
                hint=f"Known: {', '.join(sorted(LAUNCHERS))}.",
            )


def _left_out(job: Job) -> Iterator[Problem]:
    images = sorted({str(each) for each in _images(job)})
    if images:
        yield Problem(
            "hint",
            "image-not-used",
            f"Image {', '.join(images)} is not used: a local job runs with this machine's Python.",
            "/prerequisites",
            hint="Choose a profile on a cluster to run in the image.",
        )
    if any(role.get("taskRetryCount") for role in job.roles.values()):
        yield Problem(
            "hint",
            "no-task-retry",
            "Retries of single tasks (taskRetryCount) are left out: a local job is tried again as a whole.",
            "/taskRoles",
            hint="Use jobRetryCount.",
        )


def _images(job: Job) -> Iterator[str]:
    used = {role.get("dockerImage") for role in job.roles.values()}
    for item in job.document.get("prerequisites") or ():
        if item.get("type") == "dockerimage" and item.get("name") in used:
            uri = item.get("uri")
            if uri and uri != DEFAULT_IMAGE:
                yield uri


def _machine(job: Job) -> Iterator[Problem]:
    if job.python and not os.access(job.python, os.X_OK):
        yield Problem(
            "error",
            "no-python",
            f"Interpreter `{job.python}` does not exist on this machine.",
            hint="Restart the kernel, or choose another Python.",
        )
    if shutil.which("bash") is None:
        yield Problem(
            "error",
            "no-shell",
            "Bash is not installed on this machine, and commands of jobs run in it.",
            hint="Install bash.",
        )
