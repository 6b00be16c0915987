"""Every row of failures: what pods, Jobs and events said on a real cluster, and what a user reads (O31)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.kubernetes import explain, records, refusals
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import Condition, Pod, job_of, pod_of
from paijupyter.backends.kubernetes.findings import Asked, Event, Finding, event_of
from paijupyter.backends.kubernetes.places import unschedulable

SAMPLES = Path(__file__).parent / "samples"
ASKED = Asked({"nvidia.com/gpu": 16}, {"nvidia.com/gpu": 8, "cpu": 2}, "image")


def sample(name: str) -> dict[str, Any]:
    return json.loads((SAMPLES / f"{name}.json").read_text())


def finding_of(data: dict[str, Any], asked: Asked = ASKED) -> Finding:
    if data["pod"]:
        return explain.of_pod(pod_of(data["pod"]), [event_of(each) for each in data["events"]], asked)
    return refusals.of_job(job_of(data["job"]), [event_of(each) for each in data["jobEvents"]])


@pytest.mark.parametrize(
    ("name", "reason", "says", "advises", "for_ever"),
    [
        ("wrong-tag", "image", "does not exist in its registry", "name or tag", True),
        ("no-login", "image", "needs a login that the job does not have", "user and password", True),
        (
            "missing-pull-secret",
            "image",
            "pull secret `nosuch` is not in the namespace",
            "imagePullSecrets",
            True,
        ),
        ("never-pulled", "image", "may not be pulled there", "IfNotPresent", True),
        ("bad-name", "image", "has a name that cannot be read", "Correct its name", True),
        ("registry-down", "image", "cannot be reached", "registry's address", True),
        (
            "gpus",
            "unschedulable",
            "asks 16 nvidia.com/gpu for a task, the largest node has 8",
            "at most 8",
            True,
        ),
        ("selector", "unschedulable", "without the labels it asks for", "nodeSelector", True),
        ("missing-claim", "unschedulable", "claim `nosuch` does not exist", "Create the claim", True),
        ("missing-configmap", "volume", "configmap `nosuch` that it mounts", "Create it", True),
        ("missing-env-secret", "config", "secret `nosuch` that it needs", "Create it", True),
        ("no-account", "refused", "service account `nosuch` does not exist", "serviceAccount", True),
        ("root", "config", "runs as root", "runAsUser", True),
        ("gated", "queued", "admission by a queue", "", False),
        ("priority", "refused", "no priority class `nosuch`", "priorityClass", True),
        ("k3q-refused", "queued", "quota `small` has no room", "starts once others", False),
        ("k3l-refused", "refused", "LimitRange refuses it", "within what it names", True),
        ("k3p-refused", "refused", "pod security refuses it", "security: restricted", True),
    ],
)
def test_what_waits_says_why(name: str, reason: str, says: str, advises: str, for_ever: bool) -> None:
    found = finding_of(sample(name))
    assert found.reason == reason
    assert says in found.message
    assert advises in found.advice
    assert found.for_ever is for_ever
    assert not found.message.endswith(".")
    assert "\n" not in found.message


def test_a_program_that_is_missing_is_named() -> None:
    status = records.final_status(pod_of(sample("no-command")["pod"]), "worker", ending=False)
    assert status is not None
    assert (status.state, status.reason) == ("failed", "start")
    assert status.message == "worker-0 could not be started: its image has no `nosuchprogram`"


@pytest.mark.parametrize(
    ("said", "words", "for_ever"),
    [
        (
            "0/4 nodes are available: 1 node(s) had untolerated taint {dedicated: ml}, 3 Insufficient cpu. "
            "preemption: 0/4 nodes are available: 1 Preemption is not helpful for scheduling, 3 No "
            "preemption victims found for incoming pod.",
            "1 node kept for others (taint dedicated=ml); 3 nodes with too little CPU free",
            False,
        ),
        (
            "0/2 nodes are available: 2 node(s) had untolerated taint {node.kubernetes.io/not-ready: }.",
            "2 nodes cannot take pods now (node.kubernetes.io/not-ready)",
            False,
        ),
        (
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            "its volume claim has no volume yet",
            True,
        ),
        ("0/1 nodes are available: 1 node(s) were unschedulable.", "1 node closed for new pods", False),
        ("0/3 nodes are available: 3 Too many pods.", "3 nodes full of pods", False),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate",
            "1 node kept for others or not ready (taints)",
            False,
        ),
        ("no nodes available to schedule pods", "no nodes available to schedule pods", False),
    ],
)
def test_the_scheduler_is_translated(said: str, words: str, for_ever: bool) -> None:
    found = unschedulable(said, Asked())
    assert found.reason == "unschedulable"
    assert words in found.message
    assert found.for_ever is for_ever


def with_claim(condition: dict[str, Condition], **more: Any) -> Pod:
    known = {"created_at": 100.0, "conditions": condition, "claims": ("data",)}
    return Pod("u", "p", "1", "id", 0, "worker", 0, "Pending", **{**known, **more})


UNBOUND = {
    "PodScheduled": Condition(
        "False", "Unschedulable", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    )
}


@pytest.mark.parametrize(
    ("reason", "said", "advises", "for_ever"),
    [
        ("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found', "get storageclass", True),
        (
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
            "with a storage class",
            True,
        ),
        (
            "ProvisioningFailed",
            "failed to provision volume: rpc error: quota of disks exceeded",
            "kubectl describe pvc data",
            True,
        ),
        (
            "ExternalProvisioning",
            "Waiting for a volume to be created either by the external provisioner 'x' or manually",
            "kubectl describe pvc data",
            True,
        ),
        ("Provisioning", 'External provisioner is provisioning volume for claim "team/data"', "", False),
    ],
)
def test_a_claim_without_a_volume_is_explained_by_its_own_events(
    reason: str, said: str, advises: str, for_ever: bool
) -> None:
    """The scheduler says neither which claim it is nor why."""
    events = [
        Event("ProvisioningFailed", "of before", 110.0, about="data"),
        Event(reason, said, 120.0, about="data"),
    ]
    for condition in ({}, UNBOUND):
        found = explain.of_pod(with_claim(condition), events, Asked())
        assert found.reason == "unschedulable" and found.for_ever is for_ever
        assert found.message == f"its volume claim `data` has no volume yet: {said}"
        assert advises in found.advice


def test_what_was_told_of_a_claim_before_is_not_the_reason_now() -> None:
    """A claim that has its volume keeps its old events; one that has none is told of by the scheduler."""
    old = [Event("ProvisioningFailed", "no disk", 50.0, about="data")]
    assert explain.of_pod(with_claim({}), old, Asked()) == Finding("starting")
    assert "no disk" in explain.of_pod(with_claim(UNBOUND), old, Asked()).message
    short = Condition("False", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
    assert "no disk" not in explain.of_pod(with_claim({"PodScheduled": short}), old, Asked()).message
    assert not explain.may_wait_for_volume(with_claim(UNBOUND, node="n1"))
    assert not explain.may_wait_for_volume(with_claim(UNBOUND, claims=()))


def test_no_gpu_anywhere_is_said() -> None:
    said = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    found = unschedulable(said, Asked({"nvidia.com/gpu": 1}, {"cpu": 2}))
    assert "no node has any" in found.message
    assert found.for_ever


def test_pulling_shows_until_it_is_pulled() -> None:
    """A large image takes minutes, and nothing is wrong."""
    data = sample("missing-configmap")
    pod = pod_of(data["pod"])
    pulling = Event("Pulling", 'Pulling image "registry/large:1"', 10.0, False)
    pulled = Event("Pulled", "Successfully pulled image", 20.0, False)
    assert "pulls image `registry/large:1`" in explain.of_pod(pod, [pulling], Asked()).message
    assert explain.of_pod(pod, [pulling, pulled], Asked()).reason == "starting"


def test_a_growing_cluster_is_waited_for() -> None:
    data = sample("gpus")
    scaling = Event("TriggeredScaleUp", "pod triggered scale-up: [{pool 1->2 (max: 5)}]", 10.0, False)
    found = explain.of_pod(pod_of(data["pod"]), [scaling], ASKED)
    assert "adding a node" in found.message
    assert not found.for_ever


def test_a_cluster_that_does_not_grow_says_why() -> None:
    """The cluster autoscaler looks at each pod without a place, and tells it why it adds none."""
    pod = pod_of(sample("selector")["pod"])
    said = "pod didn't trigger scale-up: 1 max node group size reached"
    events = [
        Event("TriggeredScaleUp", "pod triggered scale-up: [{pool 1->2 (max: 2)}]", 10.0, False),
        Event("NotTriggerScaleUp", said, 20.0, False),
    ]
    found = explain.of_pod(pod, events, ASKED)
    assert "without the labels it asks for" in found.message
    assert found.message.endswith("; the cluster adds no node for it: 1 max node group size reached")
    nominated = Event("Nominated", "Pod should schedule on: nodeclaim/default-x", 30.0, False)
    assert "adding a node" in explain.of_pod(pod, [*events, nominated], ASKED).message


def waiting(reason: str, message: str) -> Finding:
    """Return what is found of a pod whose container waits for this."""
    data = sample("wrong-tag")
    data["pod"]["status"]["containerStatuses"][0]["state"] = {
        "waiting": {"reason": reason, "message": message}
    }
    return finding_of({**data, "events": []})


def test_a_registry_that_the_runtime_calls_unavailable() -> None:
    """CRI-O has a reason of its own for it."""
    found = waiting("RegistryUnavailable", "rpc error: code = Unknown desc = pinging container registry")
    assert "is in a registry that cannot be reached" in found.message


def test_the_image_of_a_volume_is_not_that_of_the_task() -> None:
    """As a node said it of a pod whose own image is there (Kubernetes 1.36, containerd 2)."""
    there = '"10.77.0.1:5000/nosuch:1"'
    found = waiting(
        "ErrImagePull",
        f"rpc error: code = NotFound desc = failed to pull and unpack image {there}: failed to resolve "
        f"reference {there}: 10.77.0.1:5000/nosuch:1: not found",
    )
    assert found.message.startswith("image `10.77.0.1:5000/nosuch:1` does not exist in its registry")
    own = sample("wrong-tag")["pod"]["status"]["containerStatuses"][0]["image"]
    found = waiting("ErrImagePull", f'Back-off pulling image "docker.io/library/{own}": not found')
    assert found.message.startswith(f"image `{own}` does not exist")
    found = waiting(
        "CreateContainerError",
        'failed to mount image volume: ImageVolumeMountFailed: failed to ensure image subpath "nosuch" in '
        '"/run/image-volumes/0ec94b": openat nosuch: no such file or directory',
    )
    assert (found.reason, found.for_ever) == ("image", True)
    assert found.message == "an image that it mounts as a volume has no folder `nosuch`"
    assert "`subPath`" in found.advice


def test_a_webhook_that_is_down_is_named() -> None:
    said = (
        'Error creating: Internal error occurred: failed calling webhook "mpod.kb.io": failed to call '
        'webhook: Post "https://webhook.svc:443/mutate": dial tcp: connect: connection refused'
    )
    found = refusals.of_job(job_of(sample("gpus")["job"]), [Event("FailedCreate", said, 1.0)])
    assert "webhook `mpod.kb.io` does not answer" in found.message
    assert found.for_ever


@pytest.mark.parametrize(
    ("broken", "advises"),
    [
        ("runAsNonRoot != true (pod or container must set it)", "Set `runAsUser` in the profile to a number"),
        ("unrestricted capabilities (drop ALL), runAsNonRoot != true", "Set `security: restricted` and"),
        ("host namespaces (hostIPC=true)", "Set what it names in the profile's `podTemplate`"),
    ],
)
def test_what_pod_security_refuses_is_a_setting_of_the_profile(broken: str, advises: str) -> None:
    said = f'pods "a" is forbidden: violates PodSecurity "restricted:latest": {broken}'
    found = refusals.of_job(job_of(sample("gpus")["job"]), [Event("FailedCreate", said, 1.0)])
    assert found.advice.startswith(advises)
    told = KubeError(403, "Forbidden", said).for_people("start its tasks")
    assert told.code == "pod-security"
    assert told.hint.startswith(advises.replace("what it names", "what the namespace asks for"))


def test_a_volume_that_is_elsewhere_is_said() -> None:
    pod = pod_of(sample("missing-configmap")["pod"])
    said = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other'
    found = explain.of_pod(pod, [Event("FailedAttachVolume", said, 1.0)], Asked())
    assert found.reason == "volume"
    assert "ReadWriteOnce" in found.message
