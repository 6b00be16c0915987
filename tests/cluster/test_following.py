"""What is done with jobs that run on a real cluster: exec, forward, outputs, adoption, a queue's words."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

_BACKENDS = Path(__file__).resolve().parents[1] / "backends"
if str(_BACKENDS) not in sys.path:
    sys.path.insert(0, str(_BACKENDS))
pytest.register_assert_rewrite("staging")

from staging import document, log_of, make_job, role, watching  # noqa: E402 - only importable now
from staging import place as place  # noqa: E402

from paijupyter.backends.base import Job, Place, Profile  # noqa: E402
from paijupyter.backends.kubernetes.backend import KubernetesBackend  # noqa: E402
from paijupyter.errors import PaiJupyterError  # noqa: E402
from tests.cluster.reach import Cluster  # noqa: E402

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
LONG = 180.0
Make = Callable[..., Job]


@pytest.fixture
def settings(cluster: Cluster, namespace: str) -> dict[str, Any]:
    return {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace}


@pytest_asyncio.fixture
async def backend(place: Place, settings: dict[str, Any]) -> AsyncIterator[KubernetesBackend]:
    backend = KubernetesBackend(Profile("lab", "kubernetes", settings), place)
    yield backend
    await backend.close()


@pytest.fixture
def job_of(place: Place, image: Callable[[str], str]) -> Make:
    def make(command: str, python: str = "python", more: dict[str, Any] | None = None, **fields: Any) -> Job:
        small = {"cpu": 0.1, "memoryMB": 128, "gpu": 0}
        source = document(
            {"worker": role(command, **{"resourcePerInstance": small, **fields})}, **(more or {})
        )
        source["prerequisites"][0]["uri"] = image(python)
        return make_job(place, source)

    return make


@pytest.mark.asyncio
async def test_commands_and_ports_of_a_task(backend: KubernetesBackend, job_of: Make) -> None:
    job = job_of("mkdir -p /tmp/w && cd /tmp/w && echo hello > a && python3 -m http.server 8099")
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.until(job, lambda change: change.state == "running", LONG)
        said: dict[str, bytes] = {}
        command = ["sh", "-c", "cat; echo err >&2; exit 3"]
        async for stream, data in backend.exec(job, "worker", 0, command, b"through\n"):
            said[stream] = said.get(stream, b"") + data
        assert said == {"stdout": b"through\n", "stderr": b"err\n", "exit": b"3"}
        answer = await _asked(backend, job, b"GET /a HTTP/1.0\r\n\r\n")
        assert answer.endswith(b"hello\n")
        await backend.stop(job)
        with pytest.raises(PaiJupyterError):
            async for _ in backend.exec(job, "worker", 0, ["true"], b""):
                pass


async def _asked(backend: KubernetesBackend, job: Job, question: bytes) -> bytes:
    """Ask the task's port until somebody listens there."""
    end = asyncio.get_running_loop().time() + LONG
    while True:
        connection = await backend.connect(job, "worker", 0, 8099)
        try:
            answer = b""
            await connection.write(question)
            while data := await connection.read():
                answer += data
            return answer
        except ConnectionError:  # the server may still be starting
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.2)
        finally:
            await connection.close()


@pytest.mark.asyncio
async def test_outputs_come_home_before_the_task_ends(backend: KubernetesBackend, job_of: Make) -> None:
    """P36: streamed out of the pod; names with spaces, folders and megabytes."""
    command = 'mkdir -p "$PAI_OUTPUT_DIR/a b"; printf x > "$PAI_OUTPUT_DIR/a b/c"; ' + (
        'head -c 3000000 /dev/zero > "$PAI_OUTPUT_DIR/model.bin"'
    )
    job = job_of(command)
    async with watching(backend) as watch:
        await backend.submit(job, {})
        assert (await watch.final(job, LONG)).state == "succeeded"
    folder = job.folder / "output" / "worker-0"
    assert (folder / "a b" / "c").read_bytes() == b"x"
    assert (folder / "model.bin").stat().st_size == 3_000_000


@pytest.mark.asyncio
async def test_another_host_takes_a_job_over(
    backend: KubernetesBackend, job_of: Make, settings: dict[str, Any], tmp_path: Path
) -> None:
    """From its owner ConfigMap; the log is whole there too."""
    job = job_of("echo begun; sleep 8; echo ended")
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.until(job, lambda change: change.state == "running", LONG)
    other = KubernetesBackend(
        Profile("lab", "kubernetes", settings), Place(tmp_path / "data", tmp_path / "run")
    )
    try:
        found = await other.remembered()
        assert [(each["id"], each["user"]) for each in found] == [(job.id, job.user)]
        mine = replace(job, folder=tmp_path / "job", document=found[0]["document"])
        mine.folder.mkdir()
        async with watching(other, [mine]) as watch:
            assert (await watch.final(mine, LONG)).state == "succeeded"
        assert await log_of(other, mine, "worker-0") == b"begun\nended\n"
        assert await other.remembered() == []
    finally:
        await other.close()


@pytest.mark.asyncio
async def test_an_image_without_python_says_so(backend: KubernetesBackend, job_of: Make) -> None:
    job = job_of("true", python="busybox")
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job, LONG)
    assert (final.state, final.reason) == ("failed", "start")
    assert "its image has no `python3`" in final.message


@pytest.mark.asyncio
async def test_what_waits_for_ever_is_stuck_and_can_be_stopped(
    place: Place, settings: dict[str, Any], job_of: Make
) -> None:
    """A wrong image never fails by itself (kubernetes/kubernetes#122300)."""
    backend = KubernetesBackend(Profile("lab", "kubernetes", {**settings, "stuckAfter": 3}), place)
    job = job_of("true")
    job.document["prerequisites"][0]["uri"] += "-absent"  # type: ignore[index]
    try:
        async with watching(backend) as watch:
            await backend.submit(job, {})
            stuck = await watch.until(job, lambda change: change.message.startswith("Stuck since"), LONG)
            assert (stuck.state, stuck.reason) == ("waiting", "image")
            assert "does not exist in its registry" in stuck.message
            await asyncio.wait_for(backend.stop(job), 120)
            assert (await watch.final(job, LONG)).state == "stopped"
    finally:
        await backend.close()


@pytest.mark.asyncio
async def test_memory_that_runs_out_is_said(backend: KubernetesBackend, job_of: Make) -> None:
    job = job_of("python3 -c \"x = bytearray(600 << 20); x[::4096] = b'x' * len(x[::4096])\"")
    async with watching(backend) as watch:
        await backend.submit(job, {})
        final = await watch.final(job, LONG)
    assert final.state == "failed"
    assert final.reason in ("out-of-memory", "user")  # a child that is killed shows only as its exit code
    assert "worker-0" in final.message
