"""What does not come to an end, or is lost on the way: each cause is produced on a real cluster (O31)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from paijupyter.backends.base import Change
from tests.cluster.failing import PATIENCE, Bench, pod_name
from tests.cluster.failing import bench as bench
from tests.cluster.faults import Faults
from tests.cluster.profile import place as place

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
LOST = 240.0  # seconds until a node counts as lost, and its pods are told to go


def said(change: Change) -> str:
    """Return all words of a change."""
    return " ".join([change.message, *(task.message for task in change.tasks)])


@pytest.mark.asyncio
async def test_a_pod_that_is_held_does_not_hold_its_job(bench: Bench) -> None:
    """Somebody's finalizer keeps the pod's record: nothing of it runs any more, so the stop is done."""
    job = bench.job("echo begun; trap 'exit 0' TERM; sleep 600 & wait")
    async with bench.submitted(job) as watch:
        await watch.until(job, lambda each: each.state == "running", PATIENCE)
        name = pod_name(bench)
        patch = ("patch", "pod", name, "-n", bench.namespace, "--type=merge", "-p")
        bench.cluster.kubectl(*patch, '{"metadata": {"finalizers": ["paijupyter.test/hold"]}}')
        try:
            assert bench.backend is not None
            await bench.backend.stop(job)
            assert (await watch.final(job, PATIENCE)).state == "stopped"
            assert bench.cluster.get("pod", name, "-n", bench.namespace)["metadata"]["deletionTimestamp"]
        finally:
            bench.cluster.kubectl(*patch, '{"metadata": {"finalizers": null}}')


def _give_up(bench: Bench) -> None:
    """Mark the silent node as the cluster does where it has others: of its only one it takes no pods away."""
    bench.cluster.kubectl("wait", "--for=condition=Ready=Unknown", "node/kube-lab", f"--timeout={LOST}s")
    # The cluster may have come to it first.
    taint = ("taint", "nodes", "kube-lab", "node.kubernetes.io/unreachable=:NoExecute")
    bench.cluster.kubectl(*taint, "--overwrite")


@pytest.mark.asyncio
async def test_a_lost_node_is_not_the_users_failure(bench: Bench, faults: Faults) -> None:
    """The kubelet is killed: nobody ends the pod, and it says so; with the kubelet back the job goes on."""
    job = bench.job("if [ $PAI_ATTEMPT = 0 ]; then sleep 600; fi")
    async with bench.submitted(job) as watch:
        await watch.until(job, lambda each: each.state == "running", PATIENCE)
        start = faults.stop_kubelet()
        # Said at once, also where nothing more comes of it: of its only node a cluster takes no pods away.
        silent = await watch.until(job, lambda each: "node kube-lab does not answer" in each.message, LOST)
        assert silent.state == "running"
        await watch.until(job, lambda each: f"Or stop the job (stop {job.name})" in each.message, LOST)
        await asyncio.to_thread(_give_up, bench)
        change = await watch.until(
            job, lambda each: "was told to end long ago and is still there" in said(each), LOST
        )
        assert change.state in ("running", "waiting") and "its node does not answer" in said(change)
        start()
        change = await watch.final(job, LOST)
        task = watch.tasks(job, attempt=0)["worker-0"]
    assert (task.state, task.reason) == ("failed", "node-lost")
    assert (change.state, change.attempt) == ("succeeded", 1)


@pytest.mark.asyncio
async def test_a_container_that_ends_again_and_again_is_said(bench: Bench) -> None:
    """`restartPolicy: OnFailure`: the node starts it anew, ever more slowly."""
    kubernetes = {"restartPolicy": "OnFailure", "backoffLimit": 6}
    job = bench.job("echo broken; exit 3", paijupyter={"version": 1, "kubernetes": kubernetes})
    async with bench.submitted(job) as watch:
        change = await watch.until(job, lambda each: each.message.count("again and again") > 0, PATIENCE)
        assert change.state == "running" and "exit code 3" in change.message
        assert "end of its log" in change.message
        assert watch.tasks(job)["worker-0"].reason == "crash-loop"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("storage_class", "says", "advises"),
    [
        (
            {"storageClassName": "paijupyter-test-none"},
            '"paijupyter-test-none" not found',
            "storage class that there is",
        ),
        ({}, "no storage class is set", "with a storage class"),
    ],
    ids=["unknown class", "no class"],
)
async def test_a_claim_that_nobody_fills_is_said(
    bench: Bench, storage_class: dict[str, str], says: str, advises: str
) -> None:
    """The claim is there, and no volume for it: which one, and why, is told by its own events."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **storage_class}
    claim: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec}
    bench.cluster.apply(bench.namespace, {**claim, "metadata": {"name": "empty"}})
    job = bench.job("true")
    async with bench.submitted(job, storages={"data": {"pvc": "empty", "default": True}}) as watch:
        change = await watch.until(
            job, lambda each: each.message.startswith("Stuck since") and says in each.message, PATIENCE
        )
        assert "its volume claim `empty` has no volume yet" in change.message
        assert advises in change.message and "kubectl get storageclass" in change.message


@pytest.mark.asyncio
async def test_a_pod_that_somebody_gates_waits(bench: Bench) -> None:
    """A scheduling gate, as queues use them; the pod has its place once the gate is open."""
    gate = {"spec": {"schedulingGates": [{"name": "paijupyter.test/gate"}]}}
    job = bench.job("true", paijupyter={"version": 1, "kubernetes": {"podTemplate": gate}})
    async with bench.submitted(job) as watch:
        change = await watch.until(job, lambda each: each.reason == "queued", PATIENCE)
        assert "scheduling gate" in change.message
        path = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}])
        bench.cluster.kubectl(
            "patch", "pod", pod_name(bench), "-n", bench.namespace, "--type=json", "-p", path
        )
        assert (await watch.final(job, PATIENCE)).state == "succeeded"
