"""The objects of a job, made of what is known of it. Pure: the same input gives the same objects (P26).

One ConfigMap named after the job is made first and owns all others, so deleting it deletes the job. Each
attempt has a ConfigMap with what its tasks are told, and an Indexed Job per role, or one JobSet.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import labels, layout, names, pod, pod_options, volumes, written
from paijupyter.backends.kubernetes.building import Build
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.delivery.parcels import URLS, Parcel
from paijupyter.backends.kubernetes.gang import Gang
from paijupyter.backends.kubernetes.groups import grouped, jobset, pod_group
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.volumes import Mounted, mounted
from paijupyter.errors import PaiJupyterError

Object = dict[str, Any]
STARTING = ("Job", "JobSet")
"""Kinds of objects that start pods."""
COUNTS_PER_TASK = (1, 29)
"""Version of Kubernetes from which a failure of one index ends no other."""
JOB_FILE = "job.json"
"""Key of the owner with everything that another host needs to take the job over."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What all objects of a job are made from.

    Attributes:
        job: the job.
        settings: of the profile.
        cluster: where it goes.
        gang: how it is admitted and placed.
        boot: name of the ConfigMap with the boot file; "" for a manifest of the user's, which needs none.
        parcels: its packages.
        pull_secret: name of the Secret with credentials of registries that the document brings, or "".
        secret: name of the Secret with the values of its secrets where that is not its own, or "".
        builds: the images that are built for it, by role.
    """

    job: Job
    settings: KubeSettings
    cluster: Cluster
    gang: Gang
    boot: str
    parcels: Sequence[Parcel]
    pull_secret: str = ""
    secret: str = ""
    builds: Mapping[str, Build] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the job's own objects."""
        return names.base(self.job.name)

    @property
    def pull_secrets(self) -> list[str]:
        """Names of Secrets to pull images with, beside those of the profile and the document's options."""
        pushed = self.settings.build.secret if self.builds and self.settings.build else ""
        return [each for each in (self.pull_secret, pushed) if each]

    @property
    def mounted_secret(self) -> str:
        """Name of the Secret that its pods mount, or ""."""
        return (self.secret or self.name) if names.has_secret(self.job) else ""


def owner(frame: Frame, record: Mapping[str, Any]) -> Object:
    """Return the first object of a job, which owns all others.

    Args:
        frame: of the job.
        record: what another host needs to take the job over; no secrets.
    """
    parts = [each["metadata"]["name"] for parcel in frame.parcels for each in parcel.shared]
    needs = [frame.boot, *parts] if frame.boot else parts
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": frame.name,
            "labels": {**labels.of_job(frame.job), labels.KIND: labels.OWNER},
            "annotations": {labels.NEEDS: " ".join(needs)},
        },
        "data": {JOB_FILE: json.dumps(record, ensure_ascii=False, separators=(",", ":"))},
    }


@lru_cache(maxsize=2)
def boot_object(name: str, archive: bytes) -> Object:
    """Return the ConfigMap with the boot file, which all jobs of the namespace share; not to be changed."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels.shared(labels.BOOT)},
        "immutable": True,
        "binaryData": {"boot.pyz": _base64(archive)},
    }


@lru_cache(maxsize=2)
def boot_name(archive: bytes) -> str:
    """Return the name of the ConfigMap with a boot file."""
    return f"paijupyter-boot-{hashlib.sha256(archive).hexdigest()[:16]}"


def check_kept(asked: Mapping[str, Any], got: Mapping[str, Any]) -> None:
    """See that a cluster has kept the volumes it was asked for.

    One that does not know image volumes drops them without a word, and the pods would run without their
    files.

    Raises:
        PaiJupyterError: ``image-volume-dropped``.
    """
    for mine, theirs in zip(_pod_specs(asked), _pod_specs(got), strict=True):
        kept = {each["name"] for each in theirs.get("volumes") or () if "image" in each}
        if any("image" in each and each["name"] not in kept for each in mine.get("volumes") or ()):
            raise PaiJupyterError(
                "image-volume-dropped",
                "The cluster drops image volumes, so the tasks would run without the package.",
                "Take `image` out of `packageWays` of the profile, or have the gate ImageVolume switched on.",
                422,
            )


def _pod_specs(thing: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if thing["kind"] == "JobSet":
        jobs = [each["template"] for each in thing["spec"]["replicatedJobs"]]
    else:
        jobs = [thing]
    return [each["spec"]["template"]["spec"] for each in jobs]


def own(frame: Frame, values: Mapping[str, str], key: str, logins: Mapping[str, Any]) -> list[Object]:
    """Return the objects that last as long as the job: its Secrets and its Service, as far as it needs them.

    Args:
        frame: of the job.
        values: of the job's secrets.
        key: of the board.
        logins: credentials of registries, as ``auths`` of a Docker configuration.
    """
    if written.manifest_of(frame.job):
        return []
    objects = []
    if frame.mounted_secret == frame.name:
        objects.append(_secret(frame, values, key))
    if not names.is_alone(frame.job):
        objects.append(_service(frame))
    if frame.pull_secret:
        objects.append(_pull_secret(frame, logins))
    return objects


def attempt(frame: Frame, number: int, spec: Mapping[str, Any]) -> list[Object]:
    """Return the objects of one attempt; those that start pods come last.

    Args:
        frame: of the job.
        number: of the attempt.
        spec: what its tasks are told.
    """
    if written.manifest_of(frame.job):
        return [written.object_of(frame.job, next(iter(frame.job.roles)))]
    text = json.dumps(spec, ensure_ascii=False, separators=(",", ":"))
    name = names.attempt_name(frame.name, number)
    found: list[Object] = [
        _config_map(names.spec_name(frame.name, number), labels.of_attempt(frame.job, number), text)
    ]
    urls = {each.told["urlFile"].rpartition("/")[2]: each.url for each in frame.parcels if each.url}
    if urls:
        found.append(_opaque(f"{name}-urls", labels.of_attempt(frame.job, number), urls))
    group = pod_group(frame.job, frame.gang, name, number)
    if group:
        found.append(group)
    roles = {role: grouped(_job(frame, role, number), frame.gang, name) for role in frame.job.roles}
    if frame.gang.jobset:
        found.append(jobset(frame.job, frame.gang, name, number, roles))
    else:
        found += roles.values()
    return found


def _job(frame: Frame, role: str, number: int) -> Object:
    job, gang = frame.job, frame.gang
    instances = names.instances_of(job.roles[role])
    options = pod_options.of_document(job)
    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": instances,
        "parallelism": instances,
        **_tries(int(options.get("backoffLimit") or 0), frame.cluster),
        "podReplacementPolicy": "Failed",
        "template": pod.template(
            job,
            role,
            number,
            frame.settings,
            volumes.of_role(
                job, role, number, frame.settings, frame.boot, _packages(frame, number), frame.mounted_secret
            ),
            pull_secrets=frame.pull_secrets,
            refuses_root=frame.cluster.refuses_root,
            image=frame.builds[role].image if role in frame.builds else "",
        ),
    }
    if options.get("activeDeadlineSeconds"):
        spec["activeDeadlineSeconds"] = int(options["activeDeadlineSeconds"])
    if gang.kueue:
        spec["suspend"] = True
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": names.job_name(frame.name, number, role, instances),
            "labels": labels.of_role(job, number, role),
            "annotations": {labels.ROLE_NAME: role},
        },
        "spec": spec,
    }


def _tries(again: int, cluster: Cluster) -> dict[str, int]:
    """Return how often a task is started anew: by itself never, its peers would hang.

    Counted per task where that is known (1.29): else the first failure makes the cluster delete all others,
    and how many may fail is the job's own policy.
    """
    old = (0, 0) < cluster.version < COUNTS_PER_TASK
    return {"backoffLimit" if old else "backoffLimitPerIndex": again}


def _packages(frame: Frame, number: int) -> list[Mounted]:
    found = [each.mounted for each in frame.parcels if each.mounted]
    if any(each.way == "object" for each in frame.parcels):
        name = f"{names.attempt_name(frame.name, number)}-urls"
        mode = volumes.secret_mode(frame.settings)
        found.append(mounted("urls", {"secret": {"secretName": name, "defaultMode": mode}}, URLS))
    return found


def _service(frame: Frame) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": frame.name, "labels": labels.of_job(frame.job)},
        "spec": {
            "clusterIP": "None",
            # Tasks look each other up before any of them is ready.
            "publishNotReadyAddresses": True,
            "selector": {labels.JOB: labels.of_job(frame.job)[labels.JOB]},
        },
    }


def _secret(frame: Frame, values: Mapping[str, str], key: str) -> Object:
    texts = {
        layout.SECRETS.rpartition("/")[2]: json.dumps(dict(values)),
        layout.BOARD_KEY.rpartition("/")[2]: key,
    }
    return _opaque(frame.name, labels.of_job(frame.job), texts)


def _pull_secret(frame: Frame, logins: Mapping[str, Any]) -> Object:
    secret = _opaque(
        frame.pull_secret, labels.of_job(frame.job), {".dockerconfigjson": json.dumps({"auths": logins})}
    )
    return {**secret, "type": "kubernetes.io/dockerconfigjson"}


def _opaque(name: str, wanted: Mapping[str, str], texts: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": dict(wanted)},
        "type": "Opaque",
        "immutable": True,
        "data": {key: _base64(text.encode("utf-8", "surrogatepass")) for key, text in texts.items()},
    }


def _config_map(name: str, wanted: Mapping[str, str], text: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": dict(wanted)},
        "immutable": True,
        "data": {layout.SPEC.rpartition("/")[2]: text},
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
