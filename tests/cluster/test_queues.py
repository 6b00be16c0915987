"""Jobs of several roles as one JobSet, and jobs that a Kueue queue admits (O4, O28)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paijupyter.backends.kubernetes import names, queues
from tests.cluster.profile import SMALL, Lab, on, role
from tests.cluster.profile import place as place
from tests.cluster.profile import there as there
from tests.cluster.reach import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
ROLES = {
    "ps": {"command": "sleep 600", "instances": 1},
    "worker": {"command": "getent hosts $PAI_HOST_IP_ps_0", "instances": 2},
}


def of_two_roles(lab: Lab, **more: Any) -> Any:
    """Return a job of a service and two workers that look it up."""
    roles = {
        name: role(str(each["command"]), instances=each["instances"], resourcePerInstance=dict(SMALL))
        for name, each in ROLES.items()
    }
    return lab.job(roles, **more)


def has(cluster: Cluster, group: str) -> None:
    """Skip where the cluster has not the add-on."""
    if group not in cluster.kubectl("api-versions"):
        pytest.skip(f"this cluster has no {group}")


@pytest.fixture
def queue(cluster: Cluster, namespace: str) -> Iterator[str]:
    """Give a LocalQueue of the namespace with one CPU to hand out."""
    has(cluster, "kueue.x-k8s.io")
    kueue = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    flavor = {
        "name": namespace,
        "resources": [{"name": "cpu", "nominalQuota": "1"}, {"name": "memory", "nominalQuota": "1Gi"}],
    }
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": [flavor]}],
    }
    cluster.apply(
        namespace,
        kueue | {"kind": "ResourceFlavor", "metadata": {"name": namespace}},
        kueue | {"kind": "ClusterQueue", "metadata": {"name": namespace}, "spec": spec},
        kueue | {"kind": "LocalQueue", "metadata": {"name": "team"}, "spec": {"clusterQueue": namespace}},
    )
    yield "team"
    for kind in ("clusterqueue", "resourceflavor"):
        cluster.kubectl("delete", kind, namespace, "--wait=false", check=False)


async def until_all_ended(lab: Lab, job: Any) -> dict[str, str]:
    """Return the phase of each pod of a job once all have ended."""
    wanted = sum(int(each["instances"]) for each in job.roles.values())
    end = asyncio.get_running_loop().time() + 150
    while True:
        pods = await asyncio.to_thread(lab.of, "pods", job)
        phases = {each["metadata"]["name"]: each["status"]["phase"] for each in pods}
        if len(phases) == wanted and set(phases.values()) <= {"Succeeded", "Failed"}:
            return phases
        assert asyncio.get_running_loop().time() < end, phases
        await asyncio.sleep(0.3)


@pytest.mark.asyncio
async def test_a_jobset_ends_with_its_workers(there: Lab) -> None:
    """P36, decision 10: the service ends too, and nothing is restarted."""
    has(there.cluster, "jobset.x-k8s.io")
    async with on(there):
        there.use(gang="jobset")
        job = of_two_roles(there)
        await there.submitter.create(job, {})
        assert set((await until_all_ended(there, job)).values()) == {"Succeeded"}
        found = there.cluster.get("jobset", f"{names.base(job.name)}-a0", "-n", there.namespace)
        assert found["status"].get("restarts", 0) == 0


@pytest.mark.asyncio
async def test_a_job_of_a_queue_waits_to_be_admitted(there: Lab, queue: str) -> None:
    async with on(there):
        found = await there.asker.cluster()
        assert found.queues == {queue: there.namespace}
        job = there.job("echo admitted", defaults={"virtualCluster": queue})
        plan = await there.planner.plan(job)
        assert plan.starts == f"when queue `{queue}` admits it"
        assert not plan.problems
        assert await there.run(job) == "admitted\n"
        wrong = there.job("true", defaults={"virtualCluster": "nope"})
        assert (await there.problems(wrong))["no-queue"].hint == f"There are: {queue}."


@pytest.mark.asyncio
async def test_roles_are_admitted_together_or_not_at_all(
    there: Lab,
    queue: str,
    until: Callable[..., Any],
) -> None:
    """One Workload over all roles: a job that does not fit holds nothing."""
    has(there.cluster, "jobset.x-k8s.io")
    async with on(there):
        there.use(queue=queue)
        job = of_two_roles(there)
        assert "partial-gang" not in await there.problems(job)
        await there.submitter.create(job, {})
        assert set((await until_all_ended(there, job)).values()) == {"Succeeded"}

        large = of_two_roles(there)
        for each in large.roles.values():
            each["resourcePerInstance"]["cpu"] = 0.4  # three of them are more than the queue has
        await there.submitter.create(large, {})

        def waits() -> Any:
            loads = there.cluster.get("workloads.kueue.x-k8s.io", "-n", there.namespace)["items"]
            mine = [each for each in loads if names.base(large.name) in each["metadata"]["name"]]
            said = [c for each in mine for c in each.get("status", {}).get("conditions") or ()]
            return [c["message"] for c in said if c["type"] == "QuotaReserved" and c["status"] == "False"]

        assert "cpu" in (await asyncio.to_thread(until, waits, 60, "Kueue's answer"))[0]
        assert not there.of("pods", large)
        made = there.cluster.get("jobset", f"{names.base(large.name)}-a0", "-n", there.namespace)
        unit = made["metadata"]["uid"]
        end = asyncio.get_running_loop().time() + 60
        said = ""
        while "at place 1:" not in said:
            assert asyncio.get_running_loop().time() < end, said
            said = (await queues.why_waiting(there.transport, [unit])).get(unit, "")
            await asyncio.sleep(0.2)
        assert "cpu" in said
