"""Many experiments as one Indexed Job on a real cluster: each stays a job of its own (T3 to T7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.kubernetes import labels
from paijupyter.backends.kubernetes.backend import KubernetesBackend
from tests.cluster.profile import SMALL, role
from tests.cluster.profile import place as place
from tests.cluster.reach import Cluster

from staging import document, log_of, make_job, watching  # isort: skip # importable after tests.cluster.profile

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
LONG = 180.0
Make = Callable[..., list[Job]]


@pytest.fixture
def settings(cluster: Cluster, namespace: str) -> dict[str, Any]:
    return {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace, "indexedFrom": 2}


@pytest_asyncio.fixture
async def backend(settings: dict[str, Any], place: Place) -> AsyncIterator[KubernetesBackend]:
    backend = KubernetesBackend(Profile("lab", "kubernetes", settings), place)
    yield backend
    await backend.close()


@pytest.fixture
def jobs_of(place: Place, image: Callable[[str], str]) -> Make:
    """Give a function that makes the experiments of a group, one of each command."""

    def make(*commands: str, **more: Any) -> list[Job]:
        found = []
        for key, command in enumerate(commands):
            source = document({"main": role(command, resourcePerInstance=dict(SMALL))}, **more)
            source["prerequisites"][0]["uri"] = image("python")
            job = make_job(place, source, {"data.txt": "came along\n"})
            found.append(replace(job, group="tried", experiment=str(key)))
        return found

    return make


async def submit(backend: KubernetesBackend, jobs: list[Job], secrets: dict[str, str] | None = None) -> None:
    assert await backend.submit_many([(job, secrets or {}) for job in jobs]) == [None] * len(jobs)


def there(cluster: Cluster, namespace: str, kinds: str = "jobs,configmaps,secrets,services") -> set[str]:
    found = cluster.get(kinds, "-n", namespace, "-l", f"{labels.ours()},{labels.JOB}")["items"]
    return {f"{each['kind']} {each['metadata']['name']}" for each in found}


async def until_empty(cluster: Cluster, namespace: str) -> None:
    end = asyncio.get_running_loop().time() + LONG
    while left := await asyncio.to_thread(there, cluster, namespace):
        assert asyncio.get_running_loop().time() < end, left
        await asyncio.sleep(0.5)


@pytest.mark.asyncio
async def test_each_index_is_a_job_of_its_own(
    backend: KubernetesBackend, jobs_of: Make, cluster: Cluster, namespace: str
) -> None:
    """States, logs, packages, secrets and outputs are each job's own, and deleting all leaves nothing."""
    command = "cat data.txt; echo $PAI_TASK_INDEX {} $KEY; echo out > $PAI_OUTPUT_DIR/o; exit {}"
    jobs = jobs_of(*(command.format(key, key % 2) for key in range(4)), secrets={"KEY": ""})
    async with watching(backend) as watch:
        await submit(backend, jobs, {"KEY": "s3cret-value"})
        await submit(backend, jobs, {"KEY": "s3cret-value"})
        (made,) = cluster.get("jobs", "-n", namespace)["items"]
        assert made["spec"]["completions"] == 4 and made["spec"]["backoffLimitPerIndex"] == 0
        for key, job in enumerate(jobs):
            final = await watch.final(job, LONG)
            assert (final.state, final.reason) == (("succeeded", ""), ("failed", "user"))[key % 2], final
            said = (await log_of(backend, job, "main-0")).decode().splitlines()
            assert said[:2] == ["came along", f"0 {key} ***"], said
            assert (job.folder / "output" / "main-0" / "o").read_text() == "out\n"
    assert not [each for each in there(cluster, namespace) if each.startswith("Secret")]
    for job in jobs[:3]:
        await backend.delete(job)
    assert there(cluster, namespace)
    await backend.delete(jobs[3])
    await backend.delete(jobs[3])
    await until_empty(cluster, namespace)


@pytest.mark.asyncio
async def test_one_is_stopped_and_one_is_tried_again(
    backend: KubernetesBackend, jobs_of: Make, cluster: Cluster, namespace: str
) -> None:
    """A stop ends one index's pod; what is tried again is a Job of its own, with the same secrets."""
    jobs = jobs_of(
        "echo begun; sleep 600",
        'if [ $PAI_ATTEMPT = 0 ]; then exit 3; fi; cat data.txt; test "$KEY" = s3cret-value',
        "echo begun; sleep 600",
        secrets={"KEY": ""},
        jobRetryCount=1,
    )
    async with watching(backend) as watch:
        await submit(backend, jobs, {"KEY": "s3cret-value"})
        again = await watch.final(jobs[1], LONG)
        assert (again.state, again.attempt) == ("succeeded", 1), again
        assert await log_of(backend, jobs[1], "main-0", 1) == b"came along\n"
        await watch.running(jobs[0])
        await watch.running(jobs[2])
        await backend.stop(jobs[0])
        assert (await watch.final(jobs[0], LONG)).state == "stopped"
        assert backend._runs.keys() == {jobs[2].id}
        pods = cluster.get("pods", "-n", namespace)["items"]
        assert sum(each["status"]["phase"] == "Running" for each in pods) == 1
        await backend.stop(jobs[2])
        assert (await watch.final(jobs[2], LONG)).state == "stopped"
    for job in jobs:
        await backend.delete(job)
    await until_empty(cluster, namespace)


@pytest.mark.asyncio
async def test_a_group_that_has_no_place_is_stopped_at_once(
    settings: dict[str, Any], place: Place, jobs_of: Make, cluster: Cluster, namespace: str
) -> None:
    """Nothing of it runs yet: the last stop deletes the Job with what waits."""
    nowhere = {**settings, "nodeSelector": {"paijupyter.test/none": "true"}}
    backend = KubernetesBackend(Profile("lab", "kubernetes", nowhere), place)
    jobs = jobs_of("true", "true", "true")
    try:
        async with watching(backend) as watch:
            await submit(backend, jobs)
            for job in jobs:
                await watch.until(job, lambda change: change.reason == "unschedulable", LONG)
            await asyncio.gather(*map(backend.stop, jobs))
            for job in jobs:
                assert (await watch.final(job, LONG)).state == "stopped"
        assert not cluster.get("jobs", "-n", namespace)["items"]
    finally:
        await backend.close()


@pytest.mark.asyncio
async def test_another_engine_finds_its_jobs_in_a_bundle(
    settings: dict[str, Any], place: Place, jobs_of: Make, cluster: Cluster, namespace: str
) -> None:
    """P13, O31: killed before it noted what it had made, or of another host; nothing is made twice."""
    jobs = jobs_of(*("for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done",) * 3)
    first = KubernetesBackend(Profile("lab", "kubernetes", settings), place)
    await submit(first, jobs)
    await first.close()
    for job in jobs:
        (job.folder / "tasks" / "backend.json").unlink()
    second = KubernetesBackend(Profile("lab", "kubernetes", settings), place)
    try:
        assert {each["id"] for each in await second.remembered()} == {job.id for job in jobs}
        await second.submit(jobs[0], {})
        async with watching(second, jobs) as watch:
            for job in jobs:
                assert (await watch.final(job, LONG)).state == "succeeded"
        for job in jobs:
            said = (await log_of(second, job, "main-0")).decode().splitlines()
            assert said == [f"line {number}" for number in range(1, 9)]
        assert len(cluster.get("jobs", "-n", namespace)["items"]) == 1
        assert len(cluster.get("pods", "-n", namespace)["items"]) == 3
    finally:
        await second.close()


@pytest.mark.asyncio
async def test_what_the_cluster_refuses_leaves_nothing(
    backend: KubernetesBackend, jobs_of: Make, cluster: Cluster, namespace: str
) -> None:
    """T7: each is told why, and nothing is half there."""
    spec = {"hard": {"count/jobs.batch": "0"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": spec}
    cluster.apply(namespace, quota)
    cluster.kubectl("wait", "--for=jsonpath={.status.hard}", "resourcequota/none", "-n", namespace)
    told = await backend.submit_many([(job, {}) for job in jobs_of("true", "true", "true")])
    assert ["quota" in str(each) for each in told] == [True] * 3, told
    assert not there(cluster, namespace)
