"""What may be killed on the way, and what is lost by it: nothing (P13, O31, O32)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).resolve().parents[1]
if str(_TESTS / "backends") not in sys.path:
    sys.path.insert(0, str(_TESTS / "backends"))
pytest.register_assert_rewrite("staging")

import staging  # noqa: E402 - only importable now
from staging import document, log_of, make_job, role, watching  # noqa: E402
from staging import place as place  # noqa: E402

from paijupyter.backends.base import Backend, Change, Job, Place, Profile, load_backend  # noqa: E402
from paijupyter.backends.kubernetes import labels  # noqa: E402
from paijupyter.errors import PaiJupyterError  # noqa: E402
from tests.cluster import killed  # noqa: E402
from tests.cluster.faults import Faults  # noqa: E402
from tests.cluster.reach import Cluster  # noqa: E402

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]
SECONDS = 240.0
_MOST_STEPS = 30


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "DEADLINE", SECONDS)


class Here:
    """A profile on the cluster, and its jobs."""

    def __init__(self, cluster: Cluster, namespace: str, image: str, place: Place) -> None:
        self.cluster, self.namespace, self.image, self.place = cluster, namespace, image, place
        self.settings = {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace}

    def backend(self) -> Backend:
        """Return a backend, as each engine makes one."""
        return load_backend(Profile("lab", "kubernetes", self.settings), self.place)

    def job(self, command: str, instances: int = 1, **more: Any) -> Job:
        resources = {"cpu": 0.05, "memoryMB": 96, "gpu": 0}
        roles = {"worker": role(command, instances=instances, resourcePerInstance=resources)}
        found = document(roles, **more)
        found["prerequisites"][0]["uri"] = self.image
        return make_job(self.place, found, {"data.txt": "came along\n"})

    def of(self, kind: str, job: Job) -> list[Any]:
        selector = labels.of_job_id(job.id)
        found: list[Any] = self.cluster.get(kind, "-n", self.namespace, "-l", selector)["items"]
        return found


@pytest.fixture
def here(cluster: Cluster, namespace: str, image: Callable[[str], str], place: Place) -> Here:
    return Here(cluster, namespace, image("python"), place)


def _killed_engine(here: Here, jobs: list[Job], step: int, when: str) -> bool:
    """Let an engine submit and be killed at a step; say whether it was."""
    return killed.run(here.place, here.settings, jobs, step, when, secrets={"KEY": "s3cret value"}).killed


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.asyncio
async def test_an_engine_killed_at_any_step_of_a_submission_loses_nothing(here: Here, when: str) -> None:
    """P13: -9 between each pair of steps; the next engine submits again, and the job runs exactly once."""
    steps = 0
    for step in range(1, _MOST_STEPS):
        job = here.job('cat data.txt; test "$KEY" = "s3cret value"', secrets={"KEY": ""})
        if not await asyncio.to_thread(_killed_engine, here, [job], step, when):
            break
        steps = step
        backend = here.backend()
        try:
            async with watching(backend) as watch:
                await backend.submit(job, {"KEY": "s3cret value"})
                final = await watch.final(job, SECONDS)
                assert final.state == "succeeded", (step, final)
            assert await log_of(backend, job, "worker-0") == b"came along\n", step
            assert len(here.of("pods", job)) == 1, step
            await backend.delete(job)
        finally:
            await backend.close()
    assert steps >= 6, "owner, boot, package, Secret, Service, spec, Job, note"


@pytest.mark.asyncio
async def test_an_engine_killed_at_any_step_of_a_bundle_loses_nothing(here: Here) -> None:
    """P13: many jobs as one Indexed Job; the next engine submits each, and each runs exactly once."""
    here.settings["indexedFrom"] = 2
    steps = 0
    for step in range(1, _MOST_STEPS):
        command = 'cat data.txt; test "$KEY" = "s3cret value"'
        jobs = [
            replace(here.job(command, secrets={"KEY": ""}), group="g", experiment=str(key)) for key in (1, 2)
        ]
        if not await asyncio.to_thread(_killed_engine, here, jobs, step, "after"):
            break
        steps = step
        backend = here.backend()
        try:
            async with watching(backend) as watch:
                for job in jobs:
                    await backend.submit(job, {"KEY": "s3cret value"})
                for job in jobs:
                    assert (await watch.final(job, SECONDS)).state == "succeeded", step
            for job in jobs:
                assert await log_of(backend, job, "worker-0") == b"came along\n", step
            pods = here.cluster.get("pods", "-n", here.namespace)["items"]
            assert len(pods) == 2, step
            for job in jobs:
                await backend.delete(job)
            here.cluster.kubectl("wait", "--for=delete", "pods", "--all", "-n", here.namespace)
        finally:
            await backend.close()
    assert steps >= 6, "owner, boot, package, Secret, Service, spec, Job, note"


@pytest.mark.asyncio
async def test_an_api_server_that_dies_and_comes_back_loses_nothing(here: Here, faults: Faults) -> None:
    """O32: the job runs on meanwhile; no line is lost or doubled."""
    command = "for i in $(seq 1 40); do echo line $i; sleep 0.5; done"
    job = here.job(command, instances=2)
    backend = here.backend()
    try:
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.running(job)
            start = await asyncio.to_thread(faults.stop_api_server)
            await asyncio.sleep(5)  # what happens meanwhile is what the test is about
            await asyncio.to_thread(start)
        final = await _final(backend, job)
        assert final.state == "succeeded", final
        for key in ("worker-0", "worker-1"):
            assert await _said(backend, job, key) == [f"line {number}" for number in range(1, 41)]
    finally:
        await backend.close()


@pytest.mark.asyncio
async def test_a_kubelet_that_dies_and_comes_back_loses_nothing(here: Here, faults: Faults) -> None:
    """O31: the containers run on without it; what they did meanwhile is heard of afterwards."""
    job = here.job("for i in $(seq 1 20); do echo line $i; sleep 0.5; done", instances=2)
    backend = here.backend()
    try:
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.running(job)
            start = await asyncio.to_thread(faults.stop_kubelet)
            await asyncio.sleep(8)
            await asyncio.to_thread(start)
            final = await watch.final(job, SECONDS)
            assert final.state == "succeeded", final
        for key in ("worker-0", "worker-1"):
            assert await _said(backend, job, key) == [f"line {number}" for number in range(1, 21)]
    finally:
        await backend.close()


@pytest.mark.asyncio
async def test_a_pod_that_somebody_deletes_ends_its_attempt(here: Here) -> None:
    """Decision 10: its peers do not train on for ever; the job is tried again, as it has no part in it."""
    job = here.job("echo begun; sleep 600", instances=2)
    backend = here.backend()
    try:
        async with watching(backend) as watch:
            await backend.submit(job, {})
            await watch.running(job)
            for index in (0, 1):
                stream = backend.logs(job, "worker", index, 0, 0)
                await asyncio.wait_for(stream.__anext__(), SECONDS)  # type: ignore[arg-type]
                await stream.aclose()  # type: ignore[attr-defined]
            (pod,) = [each for each in here.of("pods", job) if "-1-" in each["metadata"]["name"]]
            await asyncio.to_thread(
                here.cluster.kubectl,
                "delete",
                "pod",
                "-n",
                here.namespace,
                pod["metadata"]["name"],
                "--wait=false",
            )
            again = await watch.until(job, lambda change: change.attempt == 1, SECONDS)
            assert again.reason == "retry-delay"
            tasks = watch.tasks(job, 0)
            assert (tasks["worker-1"].state, tasks["worker-1"].reason) == ("failed", "lost")
            assert tasks["worker-0"].state == "stopped"
            await backend.stop(job)
        assert (await log_of(backend, job, "worker-0", 0)).startswith(b"begun\n")
    finally:
        await backend.close()


async def _final(backend: Backend, job: Job) -> Change:
    """Watch until the end; a watch that the cluster could not serve is opened again, as engines do."""
    end = asyncio.get_running_loop().time() + SECONDS
    while True:
        try:
            async with watching(backend, [job]) as watch:
                return await watch.final(job, SECONDS)
        except PaiJupyterError:
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.5)


async def _said(backend: Backend, job: Job, key: str) -> list[str]:
    """Return the lines of a task's log that are its command's; how long it waited for others is ours."""
    lines = (await log_of(backend, job, key)).decode().splitlines()
    return [line for line in lines if not line.startswith("[paijupyter] ")]
