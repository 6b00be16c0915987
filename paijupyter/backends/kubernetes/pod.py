"""The pod template of a role. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.backends.kubernetes import labels, layout, names, pod_options
from paijupyter.backends.kubernetes.patch import patched
from paijupyter.backends.kubernetes.pod_options import PodOptions
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.volumes import Mounted
from paijupyter.protocol.build import DEFAULT_IMAGE
from paijupyter.protocol.roles import limits_memory

MAIN = "main"
"""Name of the one container."""
ORDINARY_USER = 1000
"""Runs the tasks where the namespace refuses root and nobody has chosen a user."""


def template(
    job: Job,
    role: str,
    attempt: int,
    settings: KubeSettings,
    mounted: Sequence[Mounted],
    *,
    pull_secrets: Sequence[str] = (),
    refuses_root: bool = False,
    image: str = "",
) -> dict[str, Any]:
    """Return the pod template of a role.

    Args:
        job: the job.
        role: one of its roles.
        attempt: number of the attempt.
        settings: of the profile.
        mounted: its volumes, see ``volumes.py``.
        pull_secrets: names of Secrets with credentials that the document brings.
        refuses_root: whether the namespace admits no container of root (PodSecurity ``restricted``).
        image: that was built for it, or "".
    """
    options = pod_options.of_role(settings.pods, job, role)
    spec: dict[str, Any] = {
        "restartPolicy": str(pod_options.of_document(job).get("restartPolicy") or "Never"),
        **({} if names.is_alone(job) else {"subdomain": names.base(job.name)}),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": layout.stop_seconds(settings.grace_seconds),
        "securityContext": _pod_security(options, refuses_root),
        "containers": [_container(job, role, settings, options, mounted, image)],
        "volumes": [dict(each.volume) for each in mounted],
        **placement(options),
    }
    secrets = dict.fromkeys([*options.pull_secrets, *pull_secrets])
    if secrets:
        spec["imagePullSecrets"] = [{"name": each} for each in secrets]
    pod: dict[str, Any] = {
        "metadata": {
            "labels": labels.of_role(job, attempt, role),
            "annotations": {labels.ROLE_NAME: role},
        },
        "spec": spec,
    }
    for patch in options.templates:
        pod = patched(pod, patch)
    return pod


def image_of(job: Job, role: str, settings: KubeSettings) -> str:
    """Return the image of a role: the document's, or the profile's where nobody has chosen one."""
    item = prerequisite(job, role)
    uri = str((item or {}).get("uri") or "")
    if not uri or (uri == DEFAULT_IMAGE and settings.image):
        return settings.image or DEFAULT_IMAGE
    return uri


def prerequisite(job: Job, role: str) -> Mapping[str, Any] | None:
    """Return the document's entry for the image of a role."""
    wanted = job.roles[role].get("dockerImage")
    for item in job.document.get("prerequisites") or ():
        if item.get("type") == "dockerimage" and item.get("name") == wanted:
            found: Mapping[str, Any] = item
            return found
    return None


def _container(
    job: Job, role: str, settings: KubeSettings, options: PodOptions, mounted: Sequence[Mounted], built: str
) -> dict[str, Any]:
    amounts = resources(job, role, settings, options)
    limits = dict(amounts)
    if not limits_memory(job.document, role):
        limits.pop("memory", None)  # nobody asked for any: what is counted with must not kill the task
    container: dict[str, Any] = {
        "name": MAIN,
        "image": built or image_of(job, role, settings),
        "command": layout.command(options.python),
        "env": [
            {"name": layout.ROLE, "value": role},
            _field("PAIJUPYTER_NODE", "spec.nodeName"),
            _field("PAIJUPYTER_POD", "metadata.name"),
        ],
        # A GPU's request must equal its limit (T11); with the others equal too, nothing is killed for a
        # neighbour's sake.
        "resources": {"limits": limits, "requests": dict(amounts)},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": _container_security(options),
        "volumeMounts": [dict(mount) for each in mounted for mount in each.mounts],
    }
    if options.pull_policy:
        container["imagePullPolicy"] = options.pull_policy
    return container


def resources(job: Job, role: str, settings: KubeSettings, options: PodOptions) -> dict[str, str]:
    """Return what a task of a role gets, as texts: the Kubernetes client refuses numbers."""
    asked = job.roles[role].get("resourcePerInstance") or {}
    amounts: dict[str, str] = {}
    if asked.get("cpu"):
        amounts["cpu"] = f"{asked['cpu']:g}" if isinstance(asked["cpu"], float) else str(asked["cpu"])
    if asked.get("memoryMB"):
        amounts["memory"] = f"{int(asked['memoryMB'])}Mi"
    if asked.get("gpu"):
        amounts[settings.gpu_resource] = str(int(asked["gpu"]))
    if settings.infiniband_resource and wants_infiniband(job, role):
        amounts[settings.infiniband_resource] = "1"
    amounts.update(options.resources)
    return amounts


def wants_infiniband(job: Job, role: str) -> bool:
    """Say whether a role asks for InfiniBand."""
    return bool((job.roles[role].get("extraContainerOptions") or {}).get("infiniband"))


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _pod_security(options: PodOptions, refuses_root: bool) -> dict[str, Any]:
    user = options.run_as_user
    if user is None and refuses_root:
        user = ORDINARY_USER
    context: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if user is not None:
        context["runAsUser"] = user
        context["runAsNonRoot"] = user != 0
    if options.fs_group is not None:
        # Else the kubelet would walk through every file of a large volume at each start.
        context.update(fsGroup=options.fs_group, fsGroupChangePolicy="OnRootMismatch")
    return context


def _container_security(options: PodOptions) -> dict[str, Any]:
    if options.security == "baseline":
        return {}
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def placement(options: PodOptions) -> dict[str, Any]:
    """Return the fields of a pod that say where it may run."""
    wanted: dict[str, Any] = {
        "nodeSelector": dict(options.node_selector),
        "affinity": dict(options.affinity),
        "tolerations": [dict(each) for each in options.tolerations],
        "priorityClassName": options.priority_class,
        "runtimeClassName": options.runtime_class,
        "schedulerName": options.scheduler,
        "serviceAccountName": options.service_account,
    }
    return {key: value for key, value in wanted.items() if value}
