"""Real training over several pods, by the scripts that also train on one machine (P25, O12, O24)."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

_TESTS = Path(__file__).resolve().parents[1]
if str(_TESTS / "backends") not in sys.path:
    sys.path.insert(0, str(_TESTS / "backends"))
pytest.register_assert_rewrite("staging")

import staging  # noqa: E402 - only importable now
from staging import document, log_of, make_job, role, watching  # noqa: E402
from staging import place as place  # noqa: E402

from paijupyter.backends.base import Backend, Job, Place, Profile, load_backend  # noqa: E402
from tests.cluster.reach import Cluster  # noqa: E402

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
SCRIPTS = _TESTS / "frameworks" / "scripts"
LOSS = re.compile(r"rank (\d) of (\d) loss (\S+) weights \[(\S+), (\S+)\]")
SECONDS = 400.0


@pytest_asyncio.fixture
async def backend(cluster: Cluster, namespace: str, place: Place) -> AsyncIterator[Backend]:
    settings = {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace}
    backend = load_backend(Profile("lab", "kubernetes", settings), place)
    yield backend
    await backend.close()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "DEADLINE", SECONDS)


def job_of(place: Place, image: str, roles: dict[str, Any], script: str, launcher: str) -> Job:
    """Return a job that runs a script in every role."""
    ours = {"version": 1, "roles": {name: {"launcher": launcher} for name in roles}}
    found = document(roles, extras={"paijupyter": ours})
    found["prerequisites"][0]["uri"] = image
    return make_job(place, found, {"train.py": (SCRIPTS / script).read_text()})


def small(instances: int, memory: int = 256) -> dict[str, Any]:
    resources = {"cpu": 0.1, "memoryMB": memory, "gpu": 0}
    return role("OMP_NUM_THREADS=1 python3 train.py", instances=instances, resourcePerInstance=resources)


async def train(backend: Backend, job: Job, trainer: str) -> list[str]:
    """Run a job and return the logs of its trainers; both have come to the same line, y = 3x + 1."""
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job, SECONDS)
        logs = [(await log_of(backend, job, f"{trainer}-{index}")).decode() for index in (0, 1)]
        assert final.state == "succeeded", (final, logs)
    found = [match for match in map(LOSS.search, logs) if match]
    assert [match[1] for match in found] == ["0", "1"], logs
    for match in found:
        assert match[2] == "2"
        assert float(match[3]) < 1e-3
        assert (float(match[4]), float(match[5])) == pytest.approx((3, 1), abs=0.05)
    assert found[0][4] == found[1][4], "all ranks hold the same weights"
    return logs


@pytest.mark.asyncio
async def test_pytorch_trains_over_two_pods(
    backend: Backend, place: Place, image: Callable[[str], str]
) -> None:
    """P25: DistributedDataParallel over gloo, by the pods' names; the model comes home."""
    job = job_of(place, image("torch"), {"worker": small(2, 700)}, "torch_ddp.py", "torchrun")
    logs = await train(backend, job, "worker")
    assert "torch " in logs[0]
    assert (job.folder / "output" / "worker-0" / "model.pt").stat().st_size > 0


@pytest.mark.asyncio
async def test_jax_trains_over_two_pods(backend: Backend, place: Place, image: Callable[[str], str]) -> None:
    """P25: one jitted step over the devices of both pods."""
    job = job_of(place, image("jax"), {"worker": small(2, 900)}, "jax_distributed.py", "jax")
    logs = await train(backend, job, "worker")
    assert "jax " in logs[0]


@pytest.mark.asyncio
async def test_trainers_meet_at_a_parameter_server(
    backend: Backend, place: Place, image: Callable[[str], str]
) -> None:
    """P36: two servers that never end, one weight each; the job ends with its trainers."""
    roles = {"ps": small(2), "trainer": small(2)}
    job = job_of(place, image("python"), roles, "parameter_server.py", "paddle")
    await train(backend, job, "trainer")


@pytest.mark.asyncio
async def test_a_gpu_is_asked_for(
    backend: Backend, place: Place, image: Callable[[str], str], cluster: Cluster, namespace: str, lab: Any
) -> None:
    """T11: the pod gets what the node advertises, request and limit equal."""
    resources = {"cpu": 0.1, "memoryMB": 128, "gpu": 2}
    found = document(
        {"worker": role("echo gpus $PAI_CURRENT_TASK_ROLE_GPU_COUNT", resourcePerInstance=resources)}
    )
    found["prerequisites"][0]["uri"] = image("python")
    job = make_job(place, found)
    async with watching(backend) as watch:
        await backend.submit(job, {})
        assert (await watch.final(job, SECONDS)).state == "succeeded"
    assert await log_of(backend, job, "worker-0") == b"gpus 2\n"
    (pod,) = cluster.get("pods", "-n", namespace, "-l", f"paijupyter.io/job={job.id}")["items"]
    amounts = pod["spec"]["containers"][0]["resources"]
    assert amounts["limits"]["nvidia.com/gpu"] == amounts["requests"]["nvidia.com/gpu"] == "2"
    assert pod["spec"]["nodeName"]
    with contextlib.suppress(Exception):
        await backend.delete(job)
