"""What the pods of a role mount, and where. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import layout, names
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.data.storages import used_by

RESERVED = re.compile(r"boot|spec|secrets|run|shm|cache|kept|urls|parcel-\d+|storage-\d+")
"""Names of volumes of ours, which no patch may touch."""
SHM = "/dev/shm"  # noqa: S108 - the name of a mount point


@dataclass(frozen=True, slots=True)
class Mounted:
    """A volume of a pod, and the mounts of its container."""

    volume: Mapping[str, Any]
    mounts: tuple[Mapping[str, Any], ...]


def of_role(
    job: Job,
    role: str,
    attempt: int,
    settings: KubeSettings,
    boot: str,
    parcels: Sequence[Mounted],
    secret: str,
) -> list[Mounted]:
    """Return all volumes of the pods of a role.

    Args:
        job: the job.
        role: one of its roles.
        attempt: number of the attempt.
        settings: of the profile.
        boot: name of the ConfigMap with the boot file.
        parcels: the packages, see ``delivery``.
        secret: name of the Secret with the values of its secrets and its key; "": it has none.
    """
    name = names.base(job.name)
    values = {"secretName": secret, "defaultMode": secret_mode(settings)}
    return [
        mounted("boot", {"configMap": {"name": boot}}, layout.BOOT_FOLDER),
        mounted("spec", {"configMap": {"name": names.spec_name(name, attempt)}}, layout.SPEC_FOLDER),
        *([mounted("secrets", {"secret": values}, layout.SECRETS_FOLDER)] if secret else []),
        *parcels,
        _run(job),
        mounted(
            "shm", {"emptyDir": {"medium": "Memory", "sizeLimit": f"{_shm(job, role, settings)}Mi"}}, SHM
        ),
        *_kept(job, settings),
        *_storages(job, settings),
    ]


def mounted(name: str, source: Mapping[str, Any], path: str, **more: Any) -> Mounted:
    """Return a volume with one mount; what is not an emptyDir is read-only unless ``more`` says otherwise."""
    mount: dict[str, Any] = {"name": name, "mountPath": path, **more}
    if "emptyDir" not in source:
        mount.setdefault("readOnly", True)
    return Mounted({"name": name, **source}, (mount,))


def secret_mode(settings: KubeSettings) -> int:
    """Return the mode of files with secrets.

    Such a volume belongs to root, and the image's user must be able to read it; nobody but the one container
    of the pod has it.
    """
    return 0o440 if settings.pods.fs_group is not None else 0o444


def storages_told(job: Job, settings: KubeSettings) -> list[dict[str, Any]]:
    """Return ``storages`` of the spec: name and mount path of each that the job gets."""
    return [
        {"name": name, "path": path, "readOnly": settings.storages[name].storage.read_only}
        for name, path in used(job, settings)
    ]


def used(job: Job, settings: KubeSettings) -> list[tuple[str, str]]:
    """Return name and mount path of the profile's storages that a job gets, each name once."""
    there = {name: each.storage for name, each in settings.storages.items()}
    found = {name: path for name, path in used_by(job.document, there) if name in there}
    return list(found.items())


def _run(job: Job) -> Mounted:
    extra = tuple(
        {"name": "run", "mountPath": path, "subPath": folder}
        for path, folder in layout.data_mounts(job).items()
    )
    return Mounted({"name": "run", "emptyDir": {}}, ({"name": "run", "mountPath": layout.RUN}, *extra))


def _shm(job: Job, role: str, settings: KubeSettings) -> int:
    """Return the size of /dev/shm in MB. It counts as memory of the task, so it is no larger than that."""
    fields = job.roles[role]
    asked = (fields.get("extraContainerOptions") or {}).get("shmMB")
    if asked:
        return int(asked)
    memory = int((fields.get("resourcePerInstance") or {}).get("memoryMB") or 0)
    return min(settings.shm_mb, memory) if memory else settings.shm_mb


def _kept(job: Job, settings: KubeSettings) -> Iterator[Mounted]:
    if settings.cache_claim:
        source = {"persistentVolumeClaim": {"claimName": settings.cache_claim}}
        yield mounted("cache", source, layout.CACHE, readOnly=False)
    if settings.keep_claim:
        source = {"persistentVolumeClaim": {"claimName": settings.keep_claim}}
        kept = mounted("kept", source, layout.KEPT, readOnly=False, subPath=_folder(job.name, settings))
        if job.resumes:
            before = _folder(job.resumes, settings)
            earlier = {"name": "kept", "mountPath": layout.EARLIER, "readOnly": True, "subPath": before}
            kept = Mounted(kept.volume, (*kept.mounts, earlier))
        yield kept


def _folder(name: str, settings: KubeSettings) -> str:
    """Return the folder of a job on the claim where checkpoints and outputs stay."""
    return f"{settings.keep_folder}/{names.base(name)}".lstrip("/")


def _storages(job: Job, settings: KubeSettings) -> Iterator[Mounted]:
    for index, (name, path) in enumerate(used(job, settings)):
        found = settings.storages[name]
        more = {"subPath": found.sub_path} if found.sub_path else {}
        yield mounted(f"storage-{index}", found.volume, path, readOnly=found.storage.read_only, **more)
