"""What a plan says of a job before it asks the cluster: options, storages, volumes, commands (T13). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import gang, layout, names, patch, pod, pod_options, volumes
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.gang import Gang
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.data.kinds import storage_of
from paijupyter.data.storages import used_by
from paijupyter.errors import Problem
from paijupyter.protocol.roles import LAUNCHERS

_OPTIONS = "/extras/paijupyter/kubernetes"
_STORAGES = "/extras/storages"
_NEEDS_ROOT = re.compile(r"(?m)(?:^|[;&|]\s*|sudo\s+)(apt-get|apt|yum|dnf|apk|dpkg|useradd|chown)\s")
# Folders that every image has; what an absolute path names elsewhere has to be mounted.
_OF_THE_IMAGE = frozenset(
    {
        *("bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "media", "mnt", "opt"),
        *("paijupyter", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"),
    }
)
_IS_PLACE = re.compile(r"(?i)(^|_)(dir|path|root|folder|data|dataset|datasets|home|cache|file)$")


def problems(job: Job, settings: KubeSettings, cluster: Cluster, chosen: Gang) -> Iterator[Problem]:
    """Yield everything that can be seen without asking the cluster again."""
    yield from pod_options.problems(job)
    yield from _patches(job, settings)
    yield from _repetition(job)
    yield from _storages(job, settings, cluster)
    yield from _checkpoints(job, settings)
    yield from _volumes(job, settings)
    yield from _environment(job, settings)
    yield from _roles(job, settings)
    yield from _queue(job, settings, cluster, chosen)


def _patches(job: Job, settings: KubeSettings) -> Iterator[Problem]:
    profile = settings.pods.templates
    for index, each in enumerate(profile):
        for place, why in patch.wrong(each, host_path=settings.allow_host_path):
            yield Problem(
                "error",
                "bad-template",
                f"Pod template {index + 1} of profile `{settings.name}` {why} (`{place}`).",
                hint="Correct `podTemplate` of the profile.",
            )
    seen = set(map(id, profile))
    for role in job.roles:
        for each in pod_options.of_role(settings.pods, job, role).templates:
            if id(each) in seen:
                continue
            seen.add(id(each))
            for place, why in patch.wrong(each, host_path=settings.allow_host_path):
                pointer = f"{_OPTIONS}/podTemplate/{place.replace('.', '/')}"
                yield Problem("error", "bad-template", f"Pod template {why} (`{place}`).", pointer)


def _repetition(job: Job) -> Iterator[Problem]:
    options = pod_options.of_document(job)
    several = not names.is_alone(job)
    restart = options.get("restartPolicy")
    if restart not in (None, "Never", "OnFailure"):
        yield Problem(
            "error",
            "bad-option",
            f"Kubernetes option `restartPolicy` is `{restart}`, which no job can have.",
            f"{_OPTIONS}/restartPolicy",
            hint="It can be Never or OnFailure.",
        )
    for key in ("backoffLimit", "activeDeadlineSeconds"):
        value = options.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            yield Problem(
                "error",
                "bad-option",
                f"Kubernetes option `{key}` must be a whole number.",
                f"{_OPTIONS}/{key}",
            )
    if several and (restart == "OnFailure" or options.get("backoffLimit")):
        key = "restartPolicy" if restart == "OnFailure" else "backoffLimit"
        yield Problem(
            "error",
            "restarts-alone",
            f"Kubernetes option `{key}` would start one task anew while the others go on without it.",
            f"{_OPTIONS}/{key}",
            hint="Use jobRetryCount, which tries the whole job again; for a job of one task it works.",
        )
    if any(role.get("taskRetryCount") for role in job.roles.values()):
        yield Problem(
            "hint",
            "no-task-retry",
            "Retries of single tasks (taskRetryCount) are left out: a job is tried again as a whole.",
            "/taskRoles",
            hint="Use jobRetryCount.",
        )


def _storages(job: Job, settings: KubeSettings, cluster: Cluster) -> Iterator[Problem]:
    there = {name: each.storage for name, each in settings.storages.items()}
    known = f"It has: {', '.join(sorted(there)) or 'none'}."
    mounts: dict[str, str] = {}
    for name, path in used_by(job.document, there):
        if name not in there:
            message = f"Storage `{name}` is not one of profile `{settings.name}`."
            yield Problem("error", "no-storage", message, _STORAGES, hint=known)
            continue
        if path in mounts:
            yield Problem(
                "error",
                "mounted-twice",
                f"Storages `{mounts[path]}` and `{name}` are both mounted at `{path}`.",
                _STORAGES,
                hint="Give one of them another mountPath.",
            )
        mounts[path] = name
        claim = settings.storages[name].claim
        if claim and cluster.claims is not None and claim not in cluster.claims:
            yield _no_claim(claim, f"storage `{name}`", cluster)
    for index, data in enumerate(job.data):
        if data.source.kind == "storage":
            name, _ = storage_of(data.source)
            if name not in mounts.values():
                yield Problem(
                    "error",
                    "no-storage",
                    f"Data `{data.source.name}` lies in storage `{name}`, which the job does not get.",
                    f"/extras/paijupyter/data/{index}/uri",
                    hint=f"Add --storage {name}. {known}" if name in there else known,
                )
    others = {
        settings.cache_claim: "`cacheClaim`",
        settings.keep_claim: "`keepClaim`",
        settings.claim_store.claim if settings.claim_store else "": "`packageClaim`",
    }
    for claim, words in others.items():
        if claim and cluster.claims is not None and claim not in cluster.claims:
            yield _no_claim(claim, f"{words} of the profile", cluster)


def _no_claim(claim: str, what: str, cluster: Cluster) -> Problem:
    return Problem(
        "error",
        "no-claim",
        f"Claim `{claim}` of {what} does not exist in namespace `{cluster.namespace}`: "
        "tasks would wait for ever.",
        _STORAGES,
        hint=f"There are: {', '.join(sorted(cluster.claims or ())) or 'none'}.",
    )


def _checkpoints(job: Job, settings: KubeSettings) -> Iterator[Problem]:
    """Yield what becomes of checkpoints where no volume keeps them."""
    if settings.keep_claim:
        return
    advice = f"Name a claim of the namespace: paijob profile edit {settings.name} --set keepClaim=CLAIM"
    if job.resumes:
        said = f"Profile `{settings.name}` has no volume with the checkpoints of `{job.resumes}`."
        yield Problem("error", "checkpoints-not-kept", said, hint=advice)
    elif job.document.get("jobRetryCount") or "PAI_CHECKPOINT_DIR" in " ".join(job.commands.values()):
        said = (
            "Checkpoints are gone with their pods: neither another attempt nor another job begins with them."
        )
        yield Problem("hint", "checkpoints-not-kept", said, hint=advice)


def _volumes(job: Job, settings: KubeSettings) -> Iterator[Problem]:
    """Look at the volumes that patches bring: dead kinds, and those that nobody mounts (T13)."""
    said = set()
    for role in job.roles:
        for spec in (_part(each, "spec") for each in pod_options.of_role(settings.pods, job, role).templates):
            containers = [*_items(spec, "containers"), *_items(spec, "initContainers")]
            mounted = {
                str(mount.get("name")) for each in containers for mount in _items(each, "volumeMounts")
            }
            for volume in _items(spec, "volumes"):
                name = str(volume.get("name") or "")
                if name in said:
                    continue
                said.add(name)
                dead = next((kind for kind in _DEAD_VOLUMES if kind in volume), None)
                if dead:
                    yield Problem(
                        "error",
                        "dead-volume",
                        f"Volume `{name}` is of the kind `{dead}`, which Kubernetes no longer mounts since "
                        f"{_DEAD_VOLUMES[dead]}: the tasks would find an empty folder.",
                        f"{_OPTIONS}/podTemplate",
                        hint="Use a claim, or a CSI driver (cephfs.csi.ceph.com, rbd.csi.ceph.com).",
                    )
                elif name not in mounted:
                    yield Problem(
                        "warning",
                        "unmounted-volume",
                        f"Volume `{name}` is declared and mounted nowhere.",
                        f"{_OPTIONS}/podTemplate",
                        hint="Add it to volumeMounts of the container `main`, or remove it.",
                    )


_DEAD_VOLUMES = {"cephfs": "1.31", "rbd": "1.31", "glusterfs": "1.26", "flocker": "1.25", "quobyte": "1.25"}
"""Kinds that were removed and still pass validation, with the version since which they do nothing."""


def _environment(job: Job, settings: KubeSettings) -> Iterator[Problem]:
    """Find variables that name a folder which is neither the image's nor mounted (T13)."""
    roles = job.extras.get("roles") or {}
    variables = [("/extras/paijupyter/env", job.extras.get("env") or {}, list(job.roles))]
    variables += [
        (f"/extras/paijupyter/roles/{role}/env", (roles.get(role) or {}).get("env") or {}, [role])
        for role in job.roles
    ]
    for pointer, env, named in variables:
        for name, value in env.items():
            path = str(value)
            if not _IS_PLACE.search(name) or not re.fullmatch(r"/[\w.-]+(/[\w./-]*)?", path):
                continue
            if path.split("/")[1] in _OF_THE_IMAGE or any(
                _is_mounted(job, role, settings, path) for role in named
            ):
                continue
            yield Problem(
                "warning",
                "path-not-mounted",
                f"Variable `{name}` names `{path}`, where nothing is mounted.",
                f"{pointer}/{name}",
                hint="Name a storage's mount path or $PAI_DATA_<NAME>, unless the image has the folder.",
            )


def _is_mounted(job: Job, role: str, settings: KubeSettings, path: str) -> bool:
    mounts = [mount for _, mount in volumes.used(job, settings)] + list(layout.data_mounts(job))
    for spec in (_part(each, "spec") for each in pod_options.of_role(settings.pods, job, role).templates):
        for container in _items(spec, "containers"):
            mounts += [str(mount.get("mountPath") or "") for mount in _items(container, "volumeMounts")]
    return any(mount and f"{path}/".startswith(f"{mount.rstrip('/')}/") for mount in mounts)


def _roles(job: Job, settings: KubeSettings) -> Iterator[Problem]:
    for role in job.roles:
        options = pod_options.of_role(settings.pods, job, role)
        launcher = ((job.extras.get("roles") or {}).get(role) or {}).get("launcher") or "plain"
        if launcher not in LAUNCHERS:
            yield Problem(
                "error",
                "unknown-launcher",
                f"Launcher `{launcher}` of role `{role}` is not known.",
                f"/extras/paijupyter/roles/{role}/launcher",
                hint=f"Known: {', '.join(LAUNCHERS)}.",
            )
        if pod.wants_infiniband(job, role) and not settings.infiniband_resource:
            yield Problem(
                "error",
                "no-infiniband",
                f"InfiniBand is asked for by role `{role}`, but profile `{settings.name}` names none.",
                f"/taskRoles/{role}/extraContainerOptions/infiniband",
                hint="Set `infinibandResource` in the profile (for example rdma/hca), or remove it.",
            )
        needs = _NEEDS_ROOT.search(job.commands.get(role, ""))
        if needs and options.security == "restricted":
            yield Problem(
                "hint",
                "needs-root",
                f"Command of role `{role}` runs `{needs[1]}`, which needs rights of root.",
                f"/taskRoles/{role}/commands",
                hint="Put it into the image, or set `security: baseline` where the cluster allows it.",
            )


def _queue(job: Job, settings: KubeSettings, cluster: Cluster, chosen: Gang) -> Iterator[Problem]:
    wanted = gang.queue_of(job, settings)
    if chosen.kueue and cluster.queues and wanted not in cluster.queues:
        yield Problem(
            "error",
            "no-queue",
            f"Queue `{wanted}` does not exist in namespace `{cluster.namespace}`.",
            "/defaults/virtualCluster",
            hint=f"There are: {', '.join(cluster.queues)}.",
        )
    elif wanted and not chosen.kueue and not chosen.scheduler:
        yield Problem(
            "hint",
            "queue-not-used",
            f"Virtual cluster `{wanted}` is not used: the cluster has no Kueue.",
            "/defaults/virtualCluster",
        )
    if chosen.jobset and not cluster.has_jobset and not cluster.unreachable:
        yield Problem(
            "error",
            "no-jobset",
            "JobSet is asked for by the profile, but the cluster does not have it.",
            hint="Set `gang: auto` in the profile.",
        )
    several = not names.is_alone(job)
    uses_gpus = any((role.get("resourcePerInstance") or {}).get("gpu") for role in job.roles.values())
    by_roles = chosen.kueue and not chosen.jobset and len(job.roles) > 1
    if several and (by_roles or not chosen.whole):
        why = "each role is admitted by itself" if by_roles else "nothing places the tasks together"
        yield Problem(
            "warning" if uses_gpus else "hint",
            "partial-gang",
            f"Tasks may start only in part and hold {'GPUs' if uses_gpus else 'resources'} while they wait "
            f"for the rest: {why}.",
            "/taskRoles",
            hint="A Kueue queue"
            + (" with JobSet" if by_roles else "")
            + ", Volcano or the coscheduling plug-in prevents it; without, you are told when it happens.",
        )


def _part(value: Any, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _items(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = value.get(key)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
