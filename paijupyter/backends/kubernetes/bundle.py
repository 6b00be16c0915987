"""Experiments of a group that differ by nothing but values: one Indexed Job, an index for each of them. Pure.

The cluster then makes one object instead of three or more for each job. Each stays a job of its own: its
index's pod is its task, and what is tried again is an attempt of its own, with objects of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import (
    building,
    gang,
    labels,
    names,
    owner_record,
    registries,
    render,
    volumes,
    written,
)
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.journal import Member
from paijupyter.backends.kubernetes.render import COUNTS_PER_TASK, Frame, Object
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.spec import task_spec
from paijupyter.protocol.names import split_suffix, task_key

_LARGEST = 600_000  # bytes of records and specs; a ConfigMap takes 1 MiB
_NOT_UNIFORM = ("notebook", "cells", "env")  # extras that stand in the spec of a task, not in its pod
Given = tuple[Job, Mapping[str, str]]


def split(
    given: Sequence[Given], settings: KubeSettings, cluster: Cluster
) -> tuple[list[list[Given]], list[Given]]:
    """Return the bundles that jobs can be, and the jobs that stay alone.

    Args:
        given: jobs with the values of their secrets.
        settings: of the profile.
        cluster: where they go.
    """
    if not settings.indexed_from or (0, 0) < cluster.version < COUNTS_PER_TASK:
        return [], list(given)
    alike: dict[str, list[Given]] = {}
    alone: list[Given] = []
    for job, secrets in given:
        if _fits(job, settings, cluster):
            alike.setdefault(_kind(job, secrets), []).append((job, secrets))
        else:
            alone.append((job, secrets))
    bundles = []
    for kind in alike.values():
        for part in _parts(kind):
            if len(part) >= settings.indexed_from:
                bundles.append(part)
            else:
                alone += part
    return bundles, alone


def as_one(jobs: Sequence[Job]) -> Job:
    """Return the job that makes the objects of a bundle: the first one, with a task for each of them."""
    first = jobs[0]
    label = f"bundle-{hashlib.sha256(' '.join(each.id for each in jobs).encode()).hexdigest()[:16]}"
    ((role, fields),) = first.roles.items()
    document = {**first.document, "taskRoles": {role: {**fields, "instances": len(jobs)}}}
    name = f"{names.base(split_suffix(first.name)[0])[:24].rstrip('-')}-{label[-10:]}"
    return replace(first, id=label, name=name, document=document, experiment="")


def members(jobs: Sequence[Job]) -> list[Member]:
    """Return where each job of a bundle is."""
    one = as_one(jobs)
    return [Member(names.base(one.name), one.id, index, len(jobs)) for index in range(len(jobs))]


def record(frame: Frame, jobs: Sequence[Job]) -> dict[str, Any]:
    """Return what the owner of a bundle holds: the record of each job. Reads their folders."""
    of = [owner_record.record(replace(frame, job=job)) for job in jobs]
    return {"schema": owner_record.SCHEMA, "jobs": of}


def attempt(frame: Frame, jobs: Sequence[Job]) -> list[Object]:
    """Return the objects of the attempt that all jobs begin with.

    Args:
        frame: of the bundle as one job.
        jobs: its jobs.
    """
    role = next(iter(frame.job.roles))
    hosts = names.hosts(frame.job, 0)
    specs = [
        task_spec(
            job,
            0,
            frame.settings.told(),
            hosts={task_key(role, 0): hosts[task_key(role, index)]},
            parcels=[each.told for each in frame.parcels],
            storages=volumes.storages_told(job, frame.settings),
        )
        for index, job in enumerate(jobs)
    ]
    objects = render.attempt(frame, 0, {"members": specs})
    for each in objects:
        if each["kind"] == "Job":
            each["metadata"]["annotations"][labels.MEMBERS] = ",".join(job.id for job in jobs)
    return objects


def _fits(job: Job, settings: KubeSettings, cluster: Cluster) -> bool:
    roles = list(job.roles.values())
    return (
        bool(job.group)
        and len(roles) == 1
        and names.instances_of(roles[0]) == 1
        and written.manifest_of(job) is None
        and not registries.has_logins(job)
        and not building.is_wanted(job)
        and not settings.keep_claim  # a folder of each job's own
        and gang.choose(job, settings, cluster) == gang.Gang()
    )


def _kind(job: Job, secrets: Mapping[str, str]) -> str:
    """Return what is equal for jobs whose pods are equal but for what their tasks are told."""
    roles = {
        name: {key: value for key, value in role.items() if key != "commands"}
        for name, role in job.roles.items()
    }
    extras = dict(job.document.get("extras") or {})
    extras["paijupyter"] = {key: value for key, value in job.extras.items() if key not in _NOT_UNIFORM}
    more = [job.document.get("prerequisites"), job.document.get("defaults"), job.user, job.group]
    data = [each.package.sha256 if each.package else each.key for each in job.data]
    package = job.package.sha256 if job.package else ""
    return json.dumps([roles, extras, more, data, package, dict(secrets)], sort_keys=True, default=str)


def _parts(alike: Sequence[Given]) -> list[list[Given]]:
    """Cut a list where its records and specs would be too large for one ConfigMap."""
    found: list[list[Given]] = [[]]
    room = _LARGEST
    for job, secrets in alike:
        size = 2 * len(json.dumps(job.document, default=str)) + 4000
        if found[-1] and size > room:
            found.append([])
            room = _LARGEST
        found[-1].append((job, secrets))
        room -= size
    return found
