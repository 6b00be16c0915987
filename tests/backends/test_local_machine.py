"""What jobs take of this machine: GPUs real and pretend, memory, the disk's last gigabyte (O28)."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from staging import document, log_of, make_job, role, watching

from paijupyter.backends.base import Place, Profile
from paijupyter.backends.local import LocalBackend, disk, gpus, nvml, run
from paijupyter.backends.local.disk import Disk
from paijupyter.backends.local.gpus import Gpus
from paijupyter.backends.local.queue import Entry, Queue, Resources
from paijupyter.errors import PaiJupyterError


def gpu_role(command: str, count: int, **more: object) -> dict[str, object]:
    return role(command, resourcePerInstance={"cpu": 1, "memoryMB": 64, "gpu": count}, **more)


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The nodes that a container with two of the machine's GPUs sees."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in ("nvidia3", "nvidia7", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    monkeypatch.setattr(gpus, "_DEV", tmp_path)
    return tmp_path


def test_the_driver_is_asked_only_where_there_may_be_a_gpu(
    nodes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gpus.known() is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5,GPU-ab")
    assert gpus.known() == Gpus(("3", "5", "GPU-ab"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert gpus.known() == Gpus()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    for node in nodes.iterdir():
        node.unlink()
    assert gpus.known() == Gpus()


def test_without_the_extra_the_nodes_are_counted(nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container has node 3 and 7, and CUDA counts from 0."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml._ready.cache_clear()
    found = gpus.ask()
    assert found.names == ("0", "1") and "pip install 'paijupyter[gpu]'" in found.doubt
    assert nvml.usage(["0"]) == {}


def test_too_few_gpus_are_made_up_for() -> None:
    assert gpus.handed_out(1, ("4", "5")) == ("4",)
    assert gpus.handed_out(2, ("4", "5")) == ("4", "5")
    assert gpus.handed_out(3, ("4", "5")) == ("0", "1", "2")
    assert gpus.handed_out(0, ("4",)) == ()


@pytest.mark.asyncio
async def test_pretend_gpus_queue_and_are_numbered(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile may declare them; the plan says that they are none."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    backend = LocalBackend(Profile("lab", "local", {"cpu": 9, "gpu": 4}), place)
    hold = 'echo "$CUDA_VISIBLE_DEVICES"; until test -e "$PAI_CHECKPOINT_DIR/go"; do sleep 0.02; done'
    first = make_job(place, document({"worker": gpu_role(hold, 1, instances=3)}))
    second = make_job(place, document({"worker": gpu_role('echo "$CUDA_VISIBLE_DEVICES"', 2)}))
    plan = await backend.plan(first)
    assert [problem.code for problem in plan.problems] == ["pretend-gpu"]
    async with watching(backend) as watch:
        await backend.submit(first, {})
        await watch.running(first)
        await backend.submit(second, {})
        queued = await watch.until(second, lambda change: change.reason == "queued")
        assert queued.message == "Number 1 in this machine's queue, waiting for 1 more GPU."
        (first.folder / "checkpoints" / "go").touch()
        assert (await watch.final(second)).state == "succeeded"
        assert (await watch.final(first)).state == "succeeded"
    seen = [(await log_of(backend, first, f"worker-{index}")).split()[0] for index in range(3)]
    assert seen == [b"0", b"1", b"2"]
    assert len((await log_of(backend, second, "worker-0")).split(b",")) == 2
    await backend.close()


@pytest.mark.asyncio
async def test_no_job_starts_on_a_full_disk(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits, says so, and starts by itself once there is room."""
    monkeypatch.setattr(run, "_LOOK_AT_DISK", 0.02)
    free = [2**30 - 1]
    monkeypatch.setattr(Disk, "_free", lambda self: free[0])
    backend = LocalBackend(Profile("local", "local"), place)
    job = make_job(place, document({"worker": role("echo ran")}))
    plan = await backend.plan(job)
    assert ([problem.code for problem in plan.problems], plan.starts) == (
        ["disk-full"],
        "when the disk has room",
    )
    async with watching(backend) as watch:
        await backend.submit(job, {})
        waits = await watch.until(job, lambda change: change.reason == "disk")
        assert waits.state == "waiting"
        assert waits.message == f"Less than 1 GiB is free on the disk of `{place.data}`, so no job starts."
        await asyncio.sleep(0.1)
        assert not (job.folder / "tasks" / "worker-0").exists()
        assert sum(change.reason == "disk" for change in watch.of(job)) == 1
        free[0] += 1
        assert (await watch.final(job)).state == "succeeded"
    await backend.close()


@pytest.mark.asyncio
async def test_a_job_that_waits_for_the_disk_can_be_stopped(place: Place) -> None:
    backend = LocalBackend(Profile("local", "local", {"diskFloorMB": 2**40}), place)
    job = make_job(place, document({"worker": role("echo ran")}))
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.until(job, lambda change: change.reason == "disk")
        await backend.stop(job)
        assert (await watch.final(job)).state == "stopped"
    await backend.close()


def test_the_floor_is_the_profiles(place: Place) -> None:
    assert Disk(place.data, Profile("local", "local", {"diskFloorMB": 0})).shortage == ""
    assert Disk(place.data, Profile("local", "local")).log_floor == 64 * 2**20
    full = Disk(place.data, Profile("local", "local", {"diskFloorMB": 2**40}))
    assert full.shortage.startswith("Less than ")
    assert disk._said(300 * 2**20) == "300 MiB"
    with pytest.raises(PaiJupyterError, match="`diskFloorMB`"):
        Disk(place.data, Profile("local", "local", {"diskFloorMB": "much"}))


@pytest.mark.asyncio
async def test_how_memory_is_limited_is_the_profiles(place: Place) -> None:
    grow = "exec python -c 'held = bytearray(b\"x\" * 2**27); import time; time.sleep(1.5); print(len(held))'"
    for how, reason in (("none", ""), ("sampling", "out-of-memory")):
        backend = LocalBackend(Profile("local", "local", {"memoryLimit": how}), place)
        job = make_job(place, document({"worker": role(grow)}))
        async with watching(backend) as watch:
            await backend.submit(job, {})
            assert (await watch.final(job)).reason == reason
        await backend.close()
    backend = LocalBackend(Profile("local", "local", {"memoryLimit": "soft"}), place)
    job = make_job(place, document({"worker": role("true")}))
    with pytest.raises(PaiJupyterError, match="It can be one of auto, sampling, none") as caught:
        await backend.submit(job, {})
    assert caught.value.code == "bad-setting"
    await backend.close()


@pytest.mark.asyncio
async def test_memory_that_nobody_asked_for_ends_no_task_that_fits_the_profile(place: Place) -> None:
    """O28: the queue counts with it; a task may use what all jobs of the profile have, and no more."""
    grow = "exec python -c 'held = bytearray(b\"x\" * 2**27); import time; time.sleep(1.5); print(len(held))'"
    unasked = {"paijupyter": {"version": 1, "roles": {"worker": {"limitMemory": False}}}}
    for settings, reason in (({}, ""), ({"memoryMB": 100}, "out-of-memory")):
        backend = LocalBackend(Profile("local", "local", settings), place)
        job = make_job(place, document({"worker": role(grow)}, extras=unasked))
        async with watching(backend) as watch:
            await backend.submit(job, {})
            final = await watch.final(job)
        await backend.close()
        assert final.reason == reason, final
    assert final.message == "worker-0 ran out of memory: it may use 100 MB."


def test_a_long_queue_tells_only_those_in_front() -> None:
    """A thousand jobs that wait do not make a million events."""
    said: list[int] = []
    queue = Queue(Resources(1, 0, 0))
    queue.take(Resources(1, 0, 0))
    for number in range(1000):
        queue.enter(
            Entry(Resources(1, 0, 0), lambda: None, lambda message, number=number: said.append(number))
        )
    assert len(said) == 1000
    said.clear()
    for _ in range(100):
        queue.give(Resources(1, 0, 0))
    assert len(said) < 100 * 25
