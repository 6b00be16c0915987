"""Live metrics and usage (O30): told once a second at most, and only to readers; idle while no job runs."""

from __future__ import annotations

import asyncio
import json

import pytest

from paijupyter.backends.base import GpuUsage, Usage
from paijupyter.jobs import looking
from paijupyter.jobs.events import EventBus
from paijupyter.jobs.usage import total_usage, usage_json

pytestmark = pytest.mark.asyncio
LOG = "tasks/worker-0/0/log"


@pytest.fixture
def measuring(fake, monkeypatch):
    """Let the fake backend measure."""
    asked = []

    async def usage(self, job):
        asked.append(job.id)
        return {"worker-0": Usage(1.5, 200.4, (GpuUsage("0", 0.5, 1024),)), "worker-1": Usage(0.25, 100)}

    monkeypatch.setattr(fake, "usage", usage, raising=False)
    monkeypatch.setattr(looking, "EVERY", 0.01)
    monkeypatch.setattr(looking, "MEASURED_EVERY", (0.01, 0.01))
    return asked


async def running(bench, kit):
    view = await bench.submit()
    tasks = tuple(kit.task(*each, "running") for each in (("worker", 0), ("worker", 1), ("ps", 0)))
    bench.backend.emit(view["id"], "running", tasks=tasks)
    return await bench.state(view["id"], "running")


async def test_a_reader_hears_of_growing_metrics(measuring, bench, kit):
    view = await running(bench, kit)
    heard = []

    async def read():
        async for event in bench.service.events.follow(bench.service.events.seq):
            heard.append(event["job"])

    reader = asyncio.create_task(read())
    await kit.eventually(lambda: bench.service.events.readers)
    bench.write(view, LOG, "loss=0.5 step 1/10\n")
    await kit.eventually(lambda: heard and heard[-1]["metrics"].get("last") == {"loss": 0.5})
    bench.write(view, LOG, "loss=0.5 step 1/10\nloss=0.25 step 2/10\n")
    last = await kit.eventually(lambda: heard[-1]["metrics"]["last"] == {"loss": 0.25} and heard[-1])
    reader.cancel()
    assert last["state"] == "running"
    assert (last["progress"]["done"], last["progress"]["total"], last["progress"]["unit"]) == (2, 10, "step")
    assert last["usage"]["cpu"] == 1.75
    assert json.loads((bench.folder(view) / "events.jsonl").read_text().splitlines()[-1])["type"] == "change"


async def test_a_metric_is_told_once_a_second_at_most(fake, bench, kit):
    assert looking.EVERY >= 1.0
    view = await running(bench, kit)
    start, events = bench.service.events.seq, bench.service.events
    bench.service.events.readers += 1
    path = bench.write(view, LOG, "")
    for number in range(30):
        with path.open("a") as file:
            file.write(f"loss={number}\n")
        await asyncio.sleep(0.01)
    assert events.seq - start <= 2


async def test_nobody_is_told_when_nobody_reads(measuring, bench, kit):
    view = await running(bench, kit)
    before = bench.service.events.seq
    bench.write(view, LOG, "loss=0.5\n")
    await kit.eventually(lambda: bench.service.get(view["id"])["metrics"])
    await kit.eventually(lambda: len(measuring) > 3)
    assert bench.service.events.seq == before


async def test_usage_is_shown_per_task_and_for_the_job_while_it_runs(measuring, bench, kit):
    view = await running(bench, kit)
    found = await kit.eventually(lambda: bench.service.get(view["id"])["usage"])
    assert found == {
        "tasks": 2, "cpu": 1.75, "memoryMB": 300, "gpu": {"count": 1, "busy": 0.5, "memoryMB": 1024},
    }  # fmt: skip
    usages = {task["key"]: task["usage"] for task in bench.service.tasks(view["id"])["tasks"]}
    assert usages["worker-0"] == {
        "cpu": 1.5, "memoryMB": 200, "gpu": [{"name": "0", "busy": 0.5, "memoryMB": 1024}],
    }  # fmt: skip
    assert usages["ps-0"] is None
    ended = await bench.finish(view["id"])
    assert ended["usage"] is None and ended["progress"] is None
    assert {task["usage"] for task in bench.service.tasks(view["id"])["tasks"]} == {None}


async def test_nothing_is_looked_at_when_nothing_runs(measuring, bench, kit, monkeypatch):
    rounds = []
    original = looking.Looker._running
    monkeypatch.setattr(looking.Looker, "_running", lambda self: rounds.append(1) or original(self))
    view = await running(bench, kit)
    await bench.finish(view["id"])
    await asyncio.sleep(0.1)  # rounds under way end
    seen = len(rounds)
    await asyncio.sleep(0.3)
    assert len(rounds) == seen


async def test_a_backend_that_fails_to_measure_is_left_alone(fake, bench, kit, monkeypatch):
    monkeypatch.setattr(looking, "EVERY", 0.01)

    async def usage(self, job):
        raise RuntimeError("no")

    monkeypatch.setattr(fake, "usage", usage, raising=False)
    view = await running(bench, kit)
    bench.write(view, LOG, "loss=1\n")
    await kit.eventually(lambda: bench.service.get(view["id"])["metrics"])
    await bench.finish(view["id"])


async def test_metrics_of_an_earlier_engine_are_not_read_again(fake, bench, kit):
    view = await running(bench, kit)
    path = bench.write(view, LOG, "loss=1\nloss=2\n")
    await kit.eventually(lambda: bench.service.get(view["id"])["metrics"])
    await bench.restart()
    path.write_bytes(path.read_bytes().replace(b"1", b"7") + b"loss=3\n")
    await kit.eventually(
        lambda: bench.service.get(view["id"])["metrics"]["series"]["loss"] == [1.0, 2.0, 3.0]
    )
    ended = await bench.finish(view["id"])
    assert ended["metrics"]["last"] == {"loss": 3}


async def test_events_that_pass_take_no_room_and_keep_their_order():
    bus = EventBus(kept=3)
    start = bus.seq
    for number in range(100):
        bus.publish_passing("a", {"n": number})
    bus.publish({"n": "state"})
    bus.publish_passing("b", {"n": "b"})
    assert [event["n"] for event in bus.since(start)] == [99, "state", "b"]
    seqs = [event["seq"] for event in bus.since(start)]
    assert seqs == sorted(seqs) and bus.since(bus.seq) == []
    heard = []

    async def read():
        async for event in bus.follow(start):
            heard.append(event["n"])

    reader = asyncio.create_task(read())
    await asyncio.sleep(0)
    bus.forget_passing("b")
    bus.publish_passing("a", {"n": 100})
    bus.close()
    await reader
    assert heard == [99, "state", "b", 100]


async def test_usage_without_a_gpu_or_a_task():
    assert total_usage({}) is None and usage_json(None) is None
    assert total_usage({"a-0": Usage(1, 2)})["gpu"] is None
    assert total_usage({"a-0": Usage(1, 2, (GpuUsage("MIG-1"),))})["gpu"] == {
        "count": 1, "busy": None, "memoryMB": None,
    }  # fmt: skip
