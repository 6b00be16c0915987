"""What submitting a job would create, and everything that we or the cluster have against it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.base import BackendPlan, Job
from paijupyter.backends.kubernetes import (
    building,
    dry_run,
    fits,
    gang,
    image_requirements,
    lint,
    names,
    owner_record,
    registries,
    render,
    volumes,
    written,
)
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.create import Object
from paijupyter.backends.kubernetes.delivery import boot_file, ladder
from paijupyter.backends.kubernetes.render import Frame
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.spec import task_spec
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.errors import PaiJupyterError, Problem, has_errors, in_order
from paijupyter.package.manifest import Manifest
from paijupyter.protocol.writing import write

HIDDEN = "*****"
"""Stands for every value of a Secret in a plan."""


class Planner:
    """Plans the jobs of one profile.

    Args:
        transport: the way to the cluster.
        settings: of the profile.
        cluster: returns what is known of the cluster.
        boot: returns the zipapp that the tasks run. Blocking.
        data: the data folder of this host, with what is known of images; None: nothing is.
    """

    def __init__(
        self,
        transport: KubeTransport,
        settings: KubeSettings,
        cluster: Callable[[], Awaitable[Cluster]],
        boot: Callable[[], Path],
        data: Path | None = None,
    ) -> None:
        self._data = data
        self._settings = settings
        self._cluster = cluster
        self._boot = boot
        self._rehearsal = dry_run.Rehearsal(transport)

    async def plan(self, job: Job) -> BackendPlan:
        """Return what submitting would do; no side effect."""
        settings, cluster = self._settings, await self._cluster()
        chosen = gang.choose(job, settings, cluster)
        problems = [*lint.problems(job, settings, cluster, chosen), *fits.problems(job, settings, cluster)]
        plain = written.manifest_of(job) is not None
        if plain:
            problems += written.problems(job, cluster.namespace)
        else:
            problems += await asyncio.to_thread(_notes, job, settings, self._data)
        if building.is_wanted(job):
            problems += building.problems(
                job, settings, cluster, await asyncio.to_thread(self._requirements, job)
            )
        if cluster.unreachable:
            problems.append(_unreachable(cluster, settings))
        objects: list[Object] = []
        if not has_errors(problems):
            try:
                objects, shared = await self._objects(job, cluster)
            except PaiJupyterError as error:
                problems.append(Problem("error", error.code, error.message, hint=error.hint))
            else:
                problems += await self._rehearsal.problems(job, cluster, objects)
                objects = [*shared, *objects]
        return BackendPlan(
            submitted=submitted(job),
            objects=tuple(_shown(each) for each in objects) or tuple(_outline(job)),
            problems=tuple(in_order(dict.fromkeys(problems))),
            starts=f"when queue `{chosen.queue}` admits it"
            if chosen.kueue
            else fits.starts(job, settings, cluster),
            as_written=plain,
        )

    async def _objects(self, job: Job, cluster: Cluster) -> tuple[list[Object], list[Object]]:
        """Return the job's own objects, and those that it shares with others."""
        settings = self._settings
        plain = written.manifest_of(job) is not None
        legs = [] if plain else await asyncio.to_thread(ladder.choose, job, settings)
        archive = await asyncio.to_thread(lambda: boot_file.packed(self._boot()))
        builds = {}
        if building.is_wanted(job):
            text = await asyncio.to_thread(self._requirements, job)
            builds = building.builds_of(job, settings, text or "")
        frame = Frame(
            job=job,
            settings=settings,
            cluster=cluster,
            gang=gang.choose(job, settings, cluster),
            boot="" if plain else render.boot_name(archive),
            parcels=ladder.preview(legs, settings),
            pull_secret=f"{names.base(job.name)}-registry" if registries.has_logins(job) else "",
            builds=builds,
        )
        spec = task_spec(
            job,
            0,
            settings.told(),
            hosts=names.hosts(job, 0, jobset=frame.gang.jobset),
            parcels=[each.told for each in frame.parcels],
            storages=volumes.storages_told(job, settings),
            kept=bool(settings.keep_claim),
        )
        secrets = {str(name): HIDDEN for name in job.document.get("secrets") or ()}
        own = [
            *(building.object_of(each, settings, cluster) for each in dict.fromkeys(builds.values())),
            render.owner(frame, await asyncio.to_thread(owner_record.record, frame)),
            *render.own(frame, secrets, HIDDEN, registries.logins(job, secrets)),
            *render.attempt(frame, 0, spec),
        ]
        shared = [dict(o) for parcel in frame.parcels for o in parcel.shared]
        if frame.boot:
            shared.insert(0, render.boot_object(frame.boot, b""))
        return own, shared

    def _requirements(self, job: Job) -> str | None:
        return image_requirements.text_of(job, image_requirements.file_of(job), self._data)


def submitted(job: Job) -> str:
    """Return the document of a job, named as it is named on the cluster."""
    return write({**job.document, "name": job.name})


def _notes(job: Job, settings: KubeSettings, data: Path | None) -> list[Problem]:
    """Return what is good to know beforehand. Reads the package's list of files."""
    found: list[Problem] = []
    policy = job.extras.get("install") or settings.install
    name = image_requirements.file_of(job)
    if policy == "never" and not building.is_wanted(job) and job.package is not None:
        manifest = Manifest.from_bytes((job.package.folder / "manifest.json").read_bytes())
        if any(each.path == name for each in manifest.entries):
            found += image_requirements.notes(job, settings, name, data)
    if os.environ.get("JUPYTERHUB_SERVICE_PREFIX"):
        found.append(
            Problem(
                "hint",
                "logs-while-here",
                "Logs are complete as long as this server runs; of a time without it only what the node "
                "keeps is fetched later, usually the last 10 MB of each task.",
                hint="A hub may end an idle server: let long jobs write what matters into PAI_OUTPUT_DIR.",
            )
        )
    return found


def _unreachable(cluster: Cluster, settings: KubeSettings) -> Problem:
    return Problem(
        "error",
        "cluster-unreachable",
        f"Profile `{settings.name}` does not answer: {cluster.unreachable}",
        hint=f"See: paijob profile test {settings.name}",
    )


def _shown(thing: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as a plan shows it: its manifest without secrets and without large content."""
    manifest = {key: value for key, value in thing.items() if key not in ("binaryData", "data")}
    if thing["kind"] == "Secret":
        manifest["data"] = {key: HIDDEN for key in thing["data"]}
    return {"kind": thing["kind"], "name": thing["metadata"]["name"], "manifest": manifest}


def _outline(job: Job) -> Iterable[dict[str, Any]]:
    """Yield the Jobs by name where nothing more is known."""
    name = names.base(job.name)
    for role, fields in job.roles.items():
        yield {"kind": "Job", "name": names.job_name(name, 0, role, names.instances_of(fields))}
