"""Why a task does not run, in words: the state of its pod and its Job, and the events of both. Pure.

Each rule gives a reason, one sentence with the evidence, and what to do. What cannot end by itself is marked:
after a time that the user sets it is called stuck.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from paijupyter.backends.kubernetes.facts import Condition, Pod
from paijupyter.backends.kubernetes.findings import Asked, Event, Finding, newest, short
from paijupyter.backends.kubernetes.images import of_image
from paijupyter.backends.kubernetes.places import unbound, unschedulable


def of_pod(pod: Pod, events: Sequence[Event], asked: Asked) -> Finding:
    """Say why a pod does not run yet."""
    for rule in _POD_RULES:
        found = rule(pod, events, asked)
        if found is not None:
            return replace(found, message=short(found.message))
    return Finding("starting")


def may_wait_for_volume(pod: Pod) -> bool:
    """Say whether a pod has no node yet, perhaps because a volume claim of it has no volume.

    Where volumes are made for the node that the scheduler has chosen, nothing in the pod tells of the wait.
    """
    condition = _unscheduled(pod)
    said = "" if condition is None else f"{condition.reason} {condition.message}"
    return bool(pod.claims) and not pod.node and (condition is None or "unbound" in said or "volumes" in said)


def partial_gang(placed: int, total: int, gpus: int, waiting: str, finding: Finding) -> Finding:
    """Say that some tasks hold their place while others have none."""
    hold = f", holding {gpus} GPUs" if gpus else ""
    why = f": {finding.message}" if finding.message else ""
    message = f"{placed} of {total} tasks have their place{hold}, while {waiting} has none{why}"
    advice = finding.advice or "Ask for less, or use a queue that starts all tasks together."
    return Finding("partial-gang", short(message), advice, finding.for_ever)


def stuck_deletion(pod: Pod) -> Finding:
    """Say that a pod does not go away."""
    where = f" on node {pod.node}" if pod.node else ""
    message = f"pod `{pod.name}`{where} was told to end long ago and is still there"
    advice = (
        "Most often its node does not answer. Once it is sure that it runs no more: "
        f"kubectl delete pod {pod.name} --force --grace-period=0"
    )
    return Finding("stopping", message, advice, for_ever=True)


def silent_node(pod: Pod) -> Finding | None:
    """Say that nothing is heard of a pod that runs; None as long as something is.

    A kubelet that finds a container not ready names a reason. The cluster, which hears no kubelet, marks the
    pods of its node so without any; it takes them away only if it has other nodes that answer.
    """
    ready = pod.conditions.get("Ready")
    if ready is None or ready.status != "False" or ready.reason:
        return None
    message = f"node {pod.node} does not answer, so nothing is known of pod `{pod.name}`"
    advice = (
        f"Wait for the node; if it never comes back: kubectl delete pod {pod.name} --force --grace-period=0"
    )
    return Finding("", message, f"{advice}.", for_ever=True)


# Rules on a pod, in the order in which a pod goes through them

_Rule = Callable[[Pod, Sequence[Event], Asked], "Finding | None"]


def _gated(pod: Pod, _: Sequence[Event], __: Asked) -> Finding | None:
    condition = _unscheduled(pod)
    if condition is None or condition.reason != "SchedulingGated":
        return None
    return Finding("queued", "it waits for its admission by a queue (scheduling gate)")


def _unbound(pod: Pod, events: Sequence[Event], _: Asked) -> Finding | None:
    """The scheduler does not say which claim has no volume, nor why; the claim's events do."""
    if not may_wait_for_volume(pod):
        return None
    told = newest(events, "ProvisioningFailed", "FailedBinding", "ExternalProvisioning", "Provisioning")
    # What is told of a claim that has its volume by now is of before.
    is_old = _unscheduled(pod) is None and told is not None and told.at < pod.created_at
    return None if told is None or is_old else unbound(told)


def _unschedulable(pod: Pod, events: Sequence[Event], asked: Asked) -> Finding | None:
    condition = _unscheduled(pod)
    if condition is None or condition.reason not in ("Unschedulable", "SchedulerError"):
        return None
    # Of the cluster autoscaler, and of Karpenter.
    scaling = newest(events, "TriggeredScaleUp", "Nominated", "NotTriggerScaleUp")
    if scaling is None:
        return unschedulable(condition.message, asked)
    if scaling.reason != "NotTriggerScaleUp":
        return Finding("unschedulable", f"the cluster is adding a node for it: {scaling.message}")
    found = unschedulable(condition.message, asked)
    why = scaling.message.partition(": ")[2] or scaling.message
    return replace(found, message=f"{found.message}; the cluster adds no node for it: {why}")


def _config(pod: Pod, _: Sequence[Event], __: Asked) -> Finding | None:
    waiting, said = pod.container.waiting, pod.container.message
    if waiting not in ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"):
        return None
    if "runAsNonRoot" in said or "non-numeric user" in said:
        return Finding(
            "config",
            f"its image runs as root, which its security settings refuse: {said}",
            "Set `runAsUser` in the profile (any number above 0), or use another image.",
            for_ever=True,
        )
    missing = re.search(r'(secret|configmap) "([^"]+)" not found', said)
    if missing:
        message = f"the {missing[1]} `{missing[2]}` that it needs does not exist"
        return Finding("config", message, "Create it, or remove it from the profile.", for_ever=True)
    return Finding("config", f"its container cannot be made: {said}", "Correct the profile.", for_ever=True)


def _crash_loop(pod: Pod, _: Sequence[Event], __: Asked) -> Finding | None:
    if pod.container.waiting != "CrashLoopBackOff":
        return None
    before = pod.container.ended_before
    how = f", last with exit code {before.code}" if before else ""
    said = f": {before.message.strip().splitlines()[-1]}" if before and before.message.strip() else ""
    message = f"its container ends again and again ({pod.container.restarts} times{how}){said}"
    return Finding("crash-loop", message, "Read the end of its log.", for_ever=True)


def _volume(pod: Pod, events: Sequence[Event], _: Asked) -> Finding | None:
    failed = newest(events, "FailedMount", "FailedAttachVolume", "FailedMapVolume")
    if failed is None or not _is_being_made(pod):
        return None
    if "failed to sync" in failed.message:
        return Finding("starting", "its node does not know its Secrets and ConfigMaps yet")
    if "Multi-Attach" in failed.message:
        return Finding(
            "volume",
            f"its volume is in use on another node (ReadWriteOnce): {failed.message}",
            "Use a volume that several nodes may mount, or one task.",
            for_ever=True,
        )
    missing = re.search(r'(secret|configmap|persistentvolumeclaim) "([^"]+)" not found', failed.message)
    if missing:
        message = f"the {missing[1]} `{missing[2]}` that it mounts does not exist"
        return Finding("volume", message, "Create it, or remove it from the profile.", for_ever=True)
    if "no volume plugin matched" in failed.message:
        return Finding(
            "volume",
            f"its node cannot mount one of its volumes: {failed.message}",
            "Image volumes need Kubernetes 1.36 or the feature gate ImageVolume on every node.",
            for_ever=True,
        )
    message = f"a volume cannot be mounted: {failed.message}"
    return Finding("volume", message, "Check the volume and its server.", for_ever=True)


def _sandbox(pod: Pod, events: Sequence[Event], _: Asked) -> Finding | None:
    failed = newest(events, "FailedCreatePodSandBox")
    if failed is None or not _is_being_made(pod):
        return None
    return Finding(
        "starting", f"its node cannot set the pod up: {failed.message}", "The node needs a look.", True
    )


def _pulling(pod: Pod, events: Sequence[Event], _: Asked) -> Finding | None:
    if not _is_being_made(pod):
        return None
    pulling, pulled = newest(events, "Pulling"), newest(events, "Pulled")
    if pulling is None or (pulled is not None and pulled.at >= pulling.at):
        return None
    named = re.search(r'image "([^"]+)"', pulling.message)
    return Finding("image", f"its node pulls image `{named[1]}`" if named else "its node pulls its image")


def _assigned(pod: Pod, _: Sequence[Event], __: Asked) -> Finding | None:
    return Finding("starting", f"node {pod.node} makes its container") if _is_being_made(pod) else None


_POD_RULES: tuple[_Rule, ...] = (
    _gated,
    _unbound,
    _unschedulable,
    of_image,
    _config,
    _crash_loop,
    _volume,
    _sandbox,
    _pulling,
    _assigned,
)


# Small things


def _unscheduled(pod: Pod) -> Condition | None:
    condition = pod.conditions.get("PodScheduled")
    return condition if condition is not None and condition.status == "False" else None


def _is_being_made(pod: Pod) -> bool:
    return bool(pod.node) and pod.container.waiting in ("", "ContainerCreating", "PodInitializing")
