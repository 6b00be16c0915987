"""The facts of a job: written when it is made, and read back as what a backend is told."""

from __future__ import annotations

from typing import Any

from paijupyter.backends.base import Job
from paijupyter.jobs import record as records
from paijupyter.jobs import sources
from paijupyter.jobs.checkpoints import Earlier
from paijupyter.jobs.clock import now
from paijupyter.jobs.host import Host
from paijupyter.jobs.notebooks import notebook_that_runs
from paijupyter.jobs.planning import Planner, Prepared, output_globs, role_facts, secret_names, with_package
from paijupyter.jobs.provenance import versions
from paijupyter.jobs.record import Record
from paijupyter.jobs.request import Request
from paijupyter.jobs.view import json_safe
from paijupyter.protocol import read


def read_job(record: Record, planner: Planner) -> Job:
    """Build what a backend is told of a job from its folder alone.

    Raises:
        PaiJupyterError: if the document can no longer be read.
    """
    facts = record.facts
    data: dict[str, Any] = dict(read(record.source).data)
    sha256 = facts.get("packageSha256")
    resumed = facts.get("resumedFrom") or {}
    if sha256:
        data = with_package(data, sha256)
    return Job(
        id=record.id,
        name=facts["name"],
        user=facts.get("user") or "",
        folder=record.folder,
        document={**data, "name": facts["name"]},
        commands=record.commands,
        package=planner.package(sha256),
        python=facts.get("python"),
        data=sources.again(data, facts, record.folder, planner.package),
        group=(facts.get("group") or {}).get("id", ""),
        experiment=(facts.get("group") or {}).get("key", ""),
        resumes=resumed["name"] if resumed.get("profile") else "",
    )


def facts_of(request: Request, prepared: Prepared, job: Job, host: Host) -> dict[str, Any]:
    """Return the facts of a new job, as its ``job.json`` keeps them."""
    context, profile, earlier = request.context, prepared.profile, prepared.earlier
    names = secret_names(prepared.data)
    return {
        "schema": records.SCHEMA,
        "id": job.id,
        "name": job.name,
        "shortName": prepared.short,
        "profile": profile.name if profile else None,
        "kind": profile.kind if profile else None,
        "user": job.user,
        "host": host.name,
        "bootId": host.boot_id,
        "pidNamespace": host.namespace,
        "submittedAt": now(),
        "requestId": request.request_id,
        "packageSha256": job.package.sha256 if job.package else None,
        "python": context.python,
        "versions": versions(),
        "folder": context.folder,
        "notebook": context.notebook,
        "runsNotebook": notebook_that_runs(prepared.data),
        "cell": dict(context.cell) if context.cell else None,
        "surface": context.surface,
        "kernel": context.kernel,
        "roles": role_facts(prepared.data),
        "parameters": json_safe(prepared.data.get("parameters") or {}),
        "secretNames": names,
        "secretRefs": {name: ref for name, ref in request.secrets.references.items() if name in names},
        "clonedFrom": request.cloned_from,
        "group": dict(request.group) if request.group else None,
        "resumedFrom": _resumed(earlier) if earlier else None,
        "data": [sources.summary(each) for each in prepared.sources],
        "dataPackages": sources.packages_of(prepared.sources),
        "outputs": output_globs(prepared.data),
    }


def _resumed(earlier: Earlier) -> dict[str, str]:
    """Return the job with whose checkpoints one begins, and the profile that keeps them if not this host."""
    found = {"id": earlier.id, "name": earlier.name}
    return {**found, "profile": earlier.profile} if earlier.profile else found
