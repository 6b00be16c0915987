"""Job manifests that go to a real cluster as they were written (T1, T5, T7, T10)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from paijupyter.backends.base import Backend, Job, Place, Profile, load_backend
from paijupyter.backends.kubernetes import labels
from paijupyter.errors import Conflict
from paijupyter.experiments.manifest import convert
from paijupyter.protocol import read, write
from tests.cluster.profile import place as place
from tests.cluster.reach import Cluster

from staging import log_of, make_job, watching  # isort: skip # importable after tests.cluster.profile

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
LONG = 180.0
Make = Callable[..., Job]


@pytest_asyncio.fixture
async def backend(cluster: Cluster, namespace: str, place: Place) -> AsyncIterator[Backend]:
    settings = {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace}
    backend = load_backend(Profile("lab", "kubernetes", settings), place)
    yield backend
    await backend.close()


@pytest.fixture
def job_of(place: Place, image: Callable[[str], str]) -> Make:
    """Give a function that makes a job of a manifest, as a sweep does."""

    def make(script: str, **spec: Any) -> Job:
        container = {
            "name": "training",
            "image": image("busybox"),
            "command": ["sh", "-c", script],
            "env": [{"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
            "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "32Mi"}},
        }
        pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
        manifest = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "ann-experiment-1", "labels": {"jobgroup": "group-small"}},
            "spec": {"backoffLimit": 0, **spec, "template": {"spec": pod}},
        }
        return make_job(place, read(convert(write(manifest))[0]).data)

    return make


@pytest.mark.asyncio
async def test_it_runs_as_written(
    backend: Backend, job_of: Make, cluster: Cluster, namespace: str, image: Callable[[str], str]
) -> None:
    """T1, T9, T11: in an image without Python, with what only a manifest can say."""
    job = job_of("echo in $WHERE; echo done")
    plan = await backend.plan(job)
    assert plan.as_written and [each.code for each in plan.problems] == ["as-written"]
    assert {each["kind"] for each in plan.objects} == {"ConfigMap", "Job"}
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job, LONG)
    assert final.state == "succeeded", final
    assert await log_of(backend, job, "main-0") == f"in {namespace}\ndone\n".encode()
    there = cluster.get("job", "ann-experiment-1", "-n", namespace)
    assert there["metadata"]["labels"]["jobgroup"] == "group-small"
    assert there["metadata"]["labels"][labels.JOB] == job.id
    (container,) = there["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "training" and container["image"] == image("busybox")
    assert not there["spec"]["template"]["spec"].get("volumes")


@pytest.mark.asyncio
async def test_it_is_tried_as_often_as_it_says(backend: Backend, job_of: Make) -> None:
    """T10: `backoffLimit: 1` is two tries, and the second one's failure is the job's."""
    job = job_of("echo a try; exit 3", backoffLimit=1)
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job, LONG)
    assert (final.state, final.reason, final.attempt) == ("failed", "user", 0), final
    assert "exit code 3" in final.message
    assert (await log_of(backend, job, "main-0")).count(b"a try\n") == 2


@pytest.mark.asyncio
async def test_two_of_one_name_cannot_be_there_at_once(backend: Backend, job_of: Make) -> None:
    """T5, T7: the former one is stopped and deleted first; then there is room at once."""
    first, second = job_of("sleep 600"), job_of("echo second")
    async with watching(backend) as watch:
        await backend.submit(first, {})
        await watch.running(first)
        with pytest.raises(Conflict, match="ann-experiment-1"):
            await backend.submit(second, {})
        await backend.stop(first)
        await backend.delete(first)
        await backend.delete(first)
        await backend.submit(second, {})
        assert (await watch.final(second, LONG)).state == "succeeded"
    await backend.delete(second)
