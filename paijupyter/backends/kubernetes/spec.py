"""What the tasks of an attempt are told, one ``spec.json`` for all; see :mod:`paijupyter.runtime.pod`. Pure.

Nothing in it is secret: it lies in a ConfigMap. Values of secrets and the key of the board are files of the
job's Secret.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.data_told import data_told
from paijupyter.backends.kubernetes import layout
from paijupyter.backends.told import GRACE_SECONDS, common, has_barrier, tasks_of, wanted_ports

BARRIER_SECONDS = 1800  # images of many gigabytes are pulled meanwhile
OUTPUTS_SECONDS = 600
_FIRST_PORT = 20000  # below what systems give to connections by themselves (from 32768 on)
_STARTS = 4000
_LAST_PORT = 32000
_WORK = f"{layout.RUN}/task/work"
_FOREIGN_HOME = f"{layout.RUN}/data"


def task_spec(
    job: Job,
    attempt: int,
    settings: Mapping[str, Any],
    *,
    hosts: Mapping[str, str],
    parcels: Sequence[Mapping[str, Any]],
    storages: Sequence[Mapping[str, Any]],
    kept: bool = False,
) -> dict[str, Any]:
    """Return ``spec.json`` of an attempt.

    Args:
        job: the job.
        attempt: its number.
        settings: those of the profile, by their names there.
        hosts: by task key the name under which other pods reach it.
        parcels: the packages that travel, as the delivery says where the pods find them; the trainer package
            first, if the job has one, then those of its data in their order.
        storages: each ``name`` and ``path`` in the pod.
        kept: whether a folder of the job on a volume is mounted at :data:`layout.KEPT`.
    """
    tasks = tasks_of(job)
    first, ports = ports_of(job)
    timeout = job.extras.get("barrierTimeout") or settings.get("barrierTimeout") or BARRIER_SECONDS
    python = str(settings.get("pythonPath") or "")
    return {
        **common(job, attempt, settings),
        "graceSeconds": float(settings.get("graceSeconds") or GRACE_SECONDS),
        "commands": dict(job.commands),
        "hosts": dict(hosts),
        "ports": ports,
        "board": {"task": tasks[0].key, "port": first} if len(tasks) > 1 else None,
        "barrier": {"timeout": timeout} if has_barrier(job) and len(tasks) > 1 else None,
        "parcels": [dict(parcel) for parcel in parcels],
        "package": 0 if job.package else None,
        "requirements": {
            "file": job.extras.get("requirements"),
            "policy": job.extras.get("install") or settings.get("install") or "never",
            "environments": settings.get("environments") or f"{layout.RUN}/environments",
            "index": settings.get("indexUrl") or None,
        },
        "python": python if python.startswith("/") else None,
        "data": data_told(job, parcels, storages, _WORK, _FOREIGN_HOME),
        "storages": [{"name": each["name"], "path": each["path"]} for each in storages],
        "secrets": layout.SECRETS if job.document.get("secrets") else None,
        "keyFile": layout.BOARD_KEY if len(tasks) > 1 else None,
        "run": layout.RUN,
        "kept": layout.KEPT if kept else None,
        "earlier": f"{layout.EARLIER}/checkpoints" if kept and job.resumes else None,
        "outputsSeconds": float(settings.get("outputsWait") or OUTPUTS_SECONDS),
        "fetchSeconds": layout.FETCH_SECONDS,
        "reports": True,
        "terminationLog": layout.TERMINATION_LOG,
        "memoryLimit": "none",  # the kubelet's affair
    }


def ports_of(job: Job) -> tuple[int, dict[str, dict[str, list[int]]]]:
    """Return the board's port, and the ports of every task by label.

    Each pod has an address of its own, so any number would do. They differ all the same, within the job and
    from job to job, for pods on the network of their node.
    """
    start = _FIRST_PORT + zlib.crc32(job.id.encode()) % _STARTS
    number = start
    found: dict[str, dict[str, list[int]]] = {}
    for task, counts in wanted_ports(job).items():
        found[task] = {}
        for label, count in counts.items():
            found[task][label] = [_port(number + step) for step in range(1, count + 1)]
            number += count
    return start, found


def _port(number: int) -> int:
    return _FIRST_PORT + (number - _FIRST_PORT) % (_LAST_PORT - _FIRST_PORT)
