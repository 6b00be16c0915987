"""What a user reads when a job does not run or fails: each cause is produced on a real cluster (O31)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from paijupyter.backends.base import Change, Job
from tests.cluster.failing import PATIENCE, Bench, pod_name
from tests.cluster.failing import bench as bench
from tests.cluster.lab import addons, node, registry
from tests.cluster.lab.places import NODE
from tests.cluster.profile import place as place
from tests.cluster.profile import role

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
Objects = list[dict[str, Any]]


# What never starts


@dataclass(frozen=True)
class Row:
    """A cause, and what is read of it.

    Attributes:
        reason: of the job.
        says: words of the message that carry the evidence.
        advises: words of what to do.
        stuck: whether it is called stuck once the profile's time is up.
        settings: of the profile.
        image: reference; ``{registry}`` and ``{locked}`` are the lab's, ``{tag}`` is that of ``busybox``.
        asks: resources of the task.
        auth: credentials of the image.
        objects: what the namespace has.
    """

    reason: str
    says: str
    advises: str
    stuck: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    image: str = ""
    asks: Mapping[str, Any] = field(default_factory=dict)
    auth: Mapping[str, str] | None = None
    objects: Callable[[str], Objects] = lambda namespace: []


def quota(namespace: str) -> Objects:
    """No pod has room."""
    spec = {"hard": {"pods": "0"}}
    return [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": spec}]


def limits(namespace: str) -> Objects:
    """No container may have what the smallest task asks for."""
    spec = {"limits": [{"type": "Container", "max": {"memory": "16Mi"}}]}
    return [{"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "tiny"}, "spec": spec}]


def pod_security(namespace: str) -> Objects:
    """The namespace takes only pods without rights."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}]


def dead_webhook(namespace: str) -> Objects:
    """The API server has to ask somebody who does not answer, for pods of this namespace only."""
    webhook = {
        "name": "down.paijupyter.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 2,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        ],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return [{**kind, "metadata": {"name": namespace}, "webhooks": [webhook]}]


LOCKED = "{locked}/busybox:{tag}"
ROWS = {
    "wrong-tag": Row(
        "image", "does not exist in its registry", "Correct its name or tag", image="{registry}/python:nosuch"
    ),
    "no-login": Row(
        "image",
        "needs a login that the job does not have",
        "Give the registry's user and password",
        image=LOCKED,
        settings={"imagePullPolicy": "Always"},
    ),
    "wrong-password": Row(
        "image",
        "is refused to this login",
        "Give the registry's user and password",
        image=LOCKED,
        settings={"imagePullPolicy": "Always"},
        auth={"username": registry.USER, "password": "wrong"},
    ),
    "missing-pull-secret": Row(
        "image",
        "the pull secret `nosuch` is not in the namespace",
        "Create that Secret",
        image=LOCKED,
        settings={"imagePullPolicy": "Always", "imagePullSecrets": ["nosuch"]},
    ),
    "registry-down": Row(
        "image", "cannot be reached", "Check the registry's address", image="{gateway}:5999/python:1"
    ),
    "never-pulled": Row(
        "image",
        "may not be pulled there",
        "IfNotPresent",
        image="{registry}/python:never",
        settings={"imagePullPolicy": "Never"},
    ),
    "too-many-gpus": Row(
        "unschedulable",
        "it asks 16 nvidia.com/gpu for a task, the largest node has 8",
        "Ask for at most 8",
        asks={"gpu": 16},
    ),
    "selector": Row(
        "unschedulable",
        "without the labels it asks for",
        "nodeSelector",
        settings={"nodeSelector": {"disk": "nosuch"}},
    ),
    "missing-claim": Row(
        "unschedulable",
        "its volume claim `nosuch` does not exist",
        "Create the claim",
        settings={"storages": {"team": {"pvc": "nosuch", "mount": "/team", "default": True}}},
    ),
    "quota": Row(
        "queued",
        "the namespace's quota `small` has no room",
        "have the quota raised",
        stuck=False,
        objects=quota,
    ),
    "limit-range": Row("refused", "LimitRange refuses it", "Ask for less or more", objects=limits),
    "pod-security": Row(
        "refused",
        "pod security refuses it",
        "Set what it names",
        objects=pod_security,
        settings={"podTemplate": {"spec": {"hostIPC": True}}},
    ),
    "no-account": Row(
        "refused",
        "its service account `nosuch` does not exist",
        "serviceAccount",
        settings={"serviceAccount": "nosuch"},
    ),
    "no-priority-class": Row(
        "refused", "no priority class `nosuch`", "priorityClass", settings={"priorityClass": "nosuch"}
    ),
    "webhook-down": Row(
        "refused",
        "the webhook `down.paijupyter.test` does not answer",
        "controller must be started again",
        objects=dead_webhook,
    ),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ROWS)
async def test_what_waits_for_ever_says_why_and_is_called_stuck(bench: Bench, name: str) -> None:
    """State, reason, evidence, advice; after a time that the user sets it is called stuck."""
    row = ROWS[name]
    facts = bench.facts
    places = {"registry": facts.registry, "locked": facts.locked_registry, "gateway": facts.gateway}
    image = row.image.format(tag=facts.images["busybox"].rpartition(":")[2], **places)
    for each in row.objects(bench.namespace):
        bench.cluster.kubectl("apply", "-n", bench.namespace, "-f", "-", given=json.dumps(each))
    try:
        job = bench.job({"worker": role("true", asks=dict(row.asks))}, image, row.auth)
        async with bench.submitted(job, **row.settings) as watch:

            def said(change: Change) -> bool:
                is_stuck = change.message.startswith("Stuck since") or not row.stuck
                return change.reason == row.reason and row.says in change.message and is_stuck

            change = await watch.until(job, said, PATIENCE)
            assert change.state == "waiting"
            assert row.advises in change.message
            assert ("stop the job" in change.message) is row.stuck
    finally:
        for each in row.objects(bench.namespace):
            if each["kind"].endswith("WebhookConfiguration"):
                bench.cluster.kubectl("delete", each["kind"], each["metadata"]["name"])


@pytest.mark.asyncio
async def test_a_node_kept_for_others_is_said(bench: Bench) -> None:
    """A taint, on a node that KWOK plays."""
    addons.add_fake_nodes(1)
    try:
        job = bench.job("true")
        async with bench.submitted(job, nodeSelector={"type": "kwok"}) as watch:
            words = "1 node kept for others or not ready (taints)"
            change = await watch.until(job, lambda each: words in each.message, PATIENCE)
            assert (change.state, change.reason) == ("waiting", "unschedulable")
            assert "without the labels it asks for" in change.message
    finally:
        addons.remove_fake_nodes()


@pytest.mark.asyncio
async def test_a_job_that_is_placed_in_part_says_what_it_holds(bench: Bench) -> None:
    """A partial gang: one task holds a GPU, the other finds no place (kubeflow/trainer#165)."""
    roles = {
        "holder": role("true", asks={"gpu": 1}),
        "seeker": role("true", asks={"gpu": 16}),
    }
    job = bench.job(roles)
    async with bench.submitted(job, gang="none") as watch:
        change = await watch.until(job, lambda each: each.reason == "partial-gang", PATIENCE)
        assert change.state == "waiting"
        assert "1 of 2 tasks have their place, holding 1 GPUs, while seeker-0 has none" in change.message
        assert "it asks 16 nvidia.com/gpu for a task, the largest node has 8" in change.message


# What fails


async def fails(bench: Bench, job: Job, **settings: Any) -> Change:
    """Return how a job failed."""
    async with bench.submitted(job, **settings) as watch:
        change = await watch.final(job, PATIENCE)
        tasks = watch.tasks(job)
    assert change.state == "failed", change
    return dataclasses.replace(change, tasks=tuple(tasks.values()))


@pytest.mark.asyncio
async def test_an_image_without_python_is_said(bench: Bench) -> None:
    change = await fails(bench, bench.job("true", bench.facts.images["busybox"]))
    assert change.reason == "start"
    assert "its image has no `python3`" in change.message
    assert "needs a Python from 3.6 on" in change.message


EAT = "b = []\nwhile True: b.append(bytearray(b'x' * (1 << 20)))"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "command",
    [f'exec python3 -c "{EAT}"', f'python3 -c "{EAT}"; exit 1'],
    ids=["main-process", "child"],
)
async def test_memory_that_ran_out_is_the_reason(bench: Bench, command: str) -> None:
    """A child that the kernel chose leaves its parent to fail with any code; the node counted it."""
    change = await fails(bench, bench.job({"worker": role(command, asks={"memoryMB": 128})}))
    assert (change.reason, change.failed_task) == ("out-of-memory", "worker-0")
    assert "memory" in change.message


@pytest.mark.asyncio
async def test_shared_memory_that_is_full_is_a_bus_error(bench: Bench) -> None:
    """A container's /dev/shm is small: data loaders die of it. That is said from the exit status."""
    write = (
        "import mmap; f = open('/dev/shm/x', 'wb+'); f.truncate(1 << 24); "
        "mmap.mmap(f.fileno(), 1 << 24).write(bytes(1 << 24))"
    )
    small = role(f'python3 -c "{write}"', extraContainerOptions={"shmMB": 4})
    change = await fails(bench, bench.job({"worker": small}))
    (task,) = change.tasks
    assert task.exit is not None and (task.exit.signal == "SIGBUS" or task.exit.code == 135), task


@pytest.mark.asyncio
async def test_the_first_task_that_failed_is_named(bench: Bench) -> None:
    """Peers that die later of it are not the cause: the earliest end is."""
    command = (
        "if [ $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX = 1 ]; then echo 'no such layer' >&2; exit 3; fi; "
        "trap 'exit 9' TERM; sleep 600 & wait"
    )
    change = await fails(bench, bench.job({"worker": role(command, instances=2)}))
    assert (change.reason, change.failed_task) == ("user", "worker-1")
    assert "worker-1 ended with exit code 3" in change.message
    ended = {task.key: task for task in change.tasks}["worker-1"].exit
    assert ended is not None and "no such layer" in ended.last_lines[-1]


@pytest.mark.asyncio
async def test_a_deadline_that_passed_is_the_reason(bench: Bench) -> None:
    change = await fails(
        bench, bench.job("sleep 600", paijupyter={"kubernetes": {"activeDeadlineSeconds": 5}})
    )
    assert change.reason == "deadline"


@pytest.mark.asyncio
async def test_names_that_do_not_resolve_end_the_wait_for_peers(bench: Bench) -> None:
    """No DNS: the name that cannot be looked up is named, and the job does not wait for ever."""
    nowhere = {"dnsPolicy": "None", "dnsConfig": {"nameservers": [bench.facts.gateway], "searches": []}}
    job = bench.job({"worker": role("true", instances=2)})
    change = await fails(bench, job, barrierTimeout="15s", podTemplate={"spec": nowhere})
    assert change.reason == "barrier-timeout"
    assert "did not meet within 15 s" in change.message
    assert "cannot be looked up" in change.message


# What others do to it


@pytest.mark.asyncio
async def test_an_eviction_is_not_the_users_fault(bench: Bench) -> None:
    """A drained node: the attempt failed with `evicted`, and the job is tried again by itself."""
    job = bench.job("if [ $PAI_ATTEMPT = 0 ]; then sleep 600; fi")
    async with bench.submitted(job) as watch:
        await watch.until(job, lambda each: each.state == "running", PATIENCE)
        name = pod_name(bench)
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": bench.namespace},
        }
        path = f"/api/v1/namespaces/{bench.namespace}/pods/{name}/eviction"
        bench.cluster.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(eviction))
        change = await watch.final(job, PATIENCE)
        task = watch.tasks(job, attempt=0)["worker-0"]
    assert (task.state, task.reason) == ("failed", "evicted")
    assert "was evicted, as when its node is drained" in task.message
    assert (change.state, change.attempt) == ("succeeded", 1)


@pytest.mark.asyncio
async def test_a_task_that_fills_its_nodes_disk_is_told_so(bench: Bench) -> None:
    """Node pressure: the kubelet evicts what writes more than it may, and says how much that was."""
    limit = {"type": "Container", "default": {"ephemeral-storage": "8Mi"}}
    thing = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "disk"},
        "spec": {"limits": [limit]},
    }
    bench.cluster.kubectl("apply", "-n", bench.namespace, "-f", "-", given=json.dumps(thing))
    job = bench.job("head -c 64000000 /dev/zero > /tmp/much; sleep 600")
    async with bench.submitted(job) as watch:
        change = await watch.until(job, lambda each: each.attempt == 1, PATIENCE)
        task = watch.tasks(job, attempt=0)["worker-0"]
    assert (task.state, task.reason) == ("failed", "evicted")
    assert "ephemeral" in task.message and "8Mi" in task.message
    assert change.state == "waiting"


def take(bench: Bench, slot: str, **more: str) -> None:
    """Make a pod of somebody else's that needs the only place of a kind."""
    container = {
        "name": "main",
        "image": bench.facts.images["busybox"],
        "command": ["true"],
        "resources": {"limits": {slot: "1"}},
    }
    spec = {"restartPolicy": "Never", "containers": [container], **more}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": spec}
    bench.cluster.apply(bench.namespace, pod)


@pytest.mark.asyncio
async def test_a_preempted_job_says_that_it_made_room(bench: Bench) -> None:
    """A pod of higher priority takes the only place of a kind that no other test uses."""
    slot = f"paijupyter.test/{bench.namespace}"
    node.give(slot, 1)
    kind = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": bench.namespace},
    }
    bench.cluster.apply(bench.namespace, {**kind, "value": 1000})
    try:
        job = bench.job("if [ $PAI_ATTEMPT = 0 ]; then sleep 600; fi")
        async with bench.submitted(job, resources={slot: 1}) as watch:
            await watch.until(job, lambda each: each.state == "running", PATIENCE)
            take(bench, slot, priorityClassName=bench.namespace)
            change = await watch.final(job, PATIENCE)
            task = watch.tasks(job, attempt=0)["worker-0"]
        assert (task.state, task.reason) == ("failed", "preempted")
        assert "had to make room for a pod of higher priority" in task.message
        assert (change.state, change.attempt) == ("succeeded", 1)
    finally:
        bench.cluster.kubectl("delete", "priorityclass", bench.namespace)
        node.give(slot, 0)


@pytest.mark.asyncio
async def test_a_system_pod_that_needs_the_place_is_not_the_users_fault(bench: Bench) -> None:
    """The kubelet itself makes room for a critical pod (TerminationByKubelet)."""
    slot = f"paijupyter.test/{bench.namespace}"
    node.give(slot, 1)
    try:
        job = bench.job("if [ $PAI_ATTEMPT = 0 ]; then sleep 600; fi")
        async with bench.submitted(job, resources={slot: 1}) as watch:
            await watch.until(job, lambda each: each.state == "running", PATIENCE)
            # Past the scheduler, as the pods of a node itself are.
            take(bench, slot, priorityClassName="system-node-critical", nodeName=NODE)
            change = await watch.final(job, PATIENCE)
            task = watch.tasks(job, attempt=0)["worker-0"]
        assert (task.state, task.reason) == ("failed", "evicted")
        assert "was ended by its node" in task.message and "critical pod" in task.message
        assert (change.state, change.attempt) == ("succeeded", 1)
    finally:
        node.give(slot, 0)


@pytest.mark.asyncio
async def test_a_task_on_a_node_that_is_taken_away_is_lost_with_it(bench: Bench) -> None:
    """A machine is given back: the cluster ends the pods of a node that it has no more (DeletionByPodGC)."""
    addons.add_fake_nodes(1)
    try:
        job = bench.job("true")
        tolerations = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
        template = {
            "metadata": {"annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": "1h"}},
            "spec": {"nodeSelector": {"type": "kwok"}, "tolerations": tolerations},
        }
        async with bench.submitted(job, podTemplate=template) as watch:
            await watch.until(job, lambda each: each.state == "running", PATIENCE)
            addons.remove_fake_nodes()
            change = await watch.until(job, lambda each: each.attempt == 1, 2 * PATIENCE)
            task = watch.tasks(job, attempt=0)["worker-0"]
        assert (task.state, task.reason) == ("failed", "node-lost")
        assert "was ended because its node is gone" in task.message
        assert change.state == "waiting"
    finally:
        addons.remove_fake_nodes()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("reference", "path", "says"),
    [
        ("{registry}/nosuch:1", "", "image `{registry}/nosuch:1` does not exist in its registry"),
        ("{busybox}", "nosuch", "an image that it mounts as a volume has no folder `nosuch`"),
    ],
    ids=["image", "folder"],
)
async def test_an_image_that_cannot_be_mounted_is_said(
    bench: Bench, reference: str, path: str, says: str
) -> None:
    """Image volumes of the user's own; the image of the task is another one."""
    facts = bench.facts
    places = {"registry": facts.registry, "busybox": facts.images["busybox"]}
    mount = {"name": "extra", "mountPath": "/extra", **({"subPath": path} if path else {})}
    spec = {
        "volumes": [{"name": "extra", "image": {"reference": reference.format(**places)}}],
        "containers": [{"name": "main", "volumeMounts": [mount]}],
    }
    job = bench.job("true")
    async with bench.submitted(job, podTemplate={"spec": spec}) as watch:
        change = await watch.until(
            job, lambda each: each.message.startswith("Stuck") and each.reason == "image", PATIENCE
        )
        assert says.format(**places) in change.message
