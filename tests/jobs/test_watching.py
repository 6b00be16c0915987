"""Changes become views and events; a backend that fails makes jobs stale and nothing else."""

from __future__ import annotations

import json

import pytest

from paijupyter.backends.base import Problem
from paijupyter.jobs import watchers

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(watchers, "PAUSES", (0.01, 0.02))


async def test_a_job_runs_and_ends(bench, kit):
    view = await bench.submit()
    tasks = (kit.task("worker", 0, "running"), kit.task("worker", 1, "running"), kit.task("ps", 0, "running"))
    bench.backend.emit(view["id"], "running", tasks=tasks)
    running = await bench.state("mnist", "running")
    assert running["roles"]["worker"]["states"] == {"running": 2} and running["startedAt"]
    done = (kit.task("worker", 0, "succeeded", code=0), kit.task("worker", 1, "succeeded", code=0))
    ended = await bench.finish("mnist", tasks=done)
    assert ended["endedAt"] and ended["roles"]["worker"]["states"] == {"succeeded": 2}
    assert ended["roles"]["ps"]["states"] == {"stopped": 1}
    assert ended["outputs"] == [] and ended["position"] is None


async def test_a_failure_names_the_task_the_cause_and_what_to_do(bench, kit):
    view = await bench.submit()
    lines = ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'torch'"]
    tasks = (kit.task("worker", 1, "failed", code=1, lines=lines, reason="user", message="ended with 1"),)
    ended = await bench.finish(view["id"], "failed", reason="user", tasks=tasks, failed_task="worker-1")
    assert ended["failedTask"] == {
        "role": "worker",
        "index": 1,
        "code": 1,
        "signal": None,
        "reason": "user",
        "lastLines": lines,
        "message": "ended with 1",
        "place": None,
    }
    assert ended["message"].startswith("`worker-1` could not import `torch`")
    assert "requirements.txt" in ended["advice"]


async def test_outputs_and_metrics_are_in_the_final_view(bench):
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    bench.write(view, "tasks/worker-0/0/metrics.jsonl", '{"loss": 0.5}\n')
    assert bench.service.get("mnist")["metrics"] == {"last": {"loss": 0.5}, "series": {"loss": [0.5]}}
    bench.write(view, "tasks/worker-0/0/metrics.jsonl", '{"loss": 0.5}\n{"loss": 0.25}\n')
    bench.write(view, "output/worker-0/model.npz", b"1234")
    ended = await bench.finish("mnist")
    assert ended["metrics"]["series"] == {"loss": [0.5, 0.25]}
    assert ended["outputs"] == [{"path": "worker-0/model.npz", "size": 4}]
    await bench.restart()
    assert bench.service.get("mnist") == ended


async def test_the_position_in_the_queue_counts_from_one(bench):
    jobs = [await bench.submit(f"j{number}") for number in range(3)]
    for number in range(3):
        await bench.state(f"j{number}", "waiting", "queued")
    assert [bench.service.get(job["id"])["position"] for job in jobs] == [1, 2, 3]
    bench.backend.emit(jobs[0]["id"], "running")
    await bench.state("j0", "running")
    assert [bench.service.get(job["id"])["position"] for job in jobs] == [None, 1, 2]


async def test_ports_are_those_the_task_was_told(bench):
    view = await bench.submit()
    bench.write(view, "tasks/worker-0/0/spec.json", json.dumps({"ports": {"worker-0": {"tb": [4711]}}}))
    bench.backend.emit(view["id"], "running")
    assert (await bench.state("mnist", "running"))["ports"] == {"worker-0": {"tb": [4711]}}


async def test_a_broken_watch_is_opened_again_and_jobs_are_stale_meanwhile(bench, kit):
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    seq = bench.service.events.seq
    bench.backend.break_watch(RuntimeError("cluster is gone"))
    await kit.eventually(lambda: len(bench.backend.queues) == 1 and len(bench.backend.known) == 2)
    await kit.eventually(lambda: bench.service.get("mnist")["staleSince"] is None)
    assert bench.backend.known == [[view["id"]], [view["id"]]]
    shown = [event["job"] for event in bench.service.events.since(seq)]
    assert [each["staleSince"] is not None for each in shown] == [True, False]
    assert {each["state"] for each in shown} == {"running"}
    await bench.finish("mnist")


async def test_a_backend_that_never_answers_changes_no_state(bench, kit, monkeypatch):
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    calls = []

    async def watch(known):
        calls.append(known)
        raise ConnectionError("no route")
        yield

    bench.backend.watch = watch
    bench.backend.break_watch(ConnectionError("gone"))
    await kit.eventually(lambda: len(calls) > 3)
    found = bench.service.get("mnist")
    assert found["state"] == "running" and found["staleSince"]


async def test_what_a_backend_says_of_unknown_jobs_is_passed_over(bench):
    view = await bench.submit()
    bench.backend.emit("nobody", "failed", "lost")
    await bench.finish(view["id"])


async def test_a_job_the_backend_lost_has_failed(bench, kit):
    view = await bench.submit()
    await bench.state("mnist", "waiting", "queued")
    bench.backend.current.clear()
    bench.backend.break_watch(RuntimeError("x"))
    ended = await bench.state("mnist", "failed", "lost")
    assert ended["message"] == "The job is not known." and view["id"] == ended["id"]


async def test_a_watch_ends_with_the_last_job_and_begins_with_the_next(bench, kit):
    view = await bench.submit()
    await bench.finish(view["id"])
    await kit.eventually(lambda: not bench.backend.queues)
    view = await bench.submit()
    await bench.finish(view["id"])


async def test_a_change_that_cannot_be_written_is_asked_for_again(bench, kit, monkeypatch):
    """A full disk loses nothing: the state comes again with the next watch."""
    from paijupyter.jobs.record import Record

    view = await bench.submit()
    await bench.state("mnist", "waiting", "queued")
    full, append = [True], Record.append

    def failing(self, event, *, durable):
        if full[0]:
            raise OSError(28, "No space left on device")
        append(self, event, durable=durable)

    monkeypatch.setattr(Record, "append", failing)
    seq = bench.service.events.seq
    bench.backend.emit(view["id"], "running")
    await kit.eventually(lambda: len(bench.backend.known) > 1)
    assert bench.service.get("mnist")["state"] == "waiting"
    assert all(event["job"]["state"] == "waiting" for event in bench.service.events.since(seq))
    full[0] = False
    await bench.state("mnist", "running")


async def test_only_what_changes_something_is_written(bench, kit):
    view = await bench.submit()
    bench.backend.emit(view["id"], "running")
    await bench.state("mnist", "running")
    before = (bench.folder(view) / "events.jsonl").read_bytes()
    bench.backend.break_watch(RuntimeError("again"))
    await kit.eventually(lambda: len(bench.backend.known) == 2)
    bench.backend.emit(view["id"], "running", tasks=(kit.task("ps", 0, "running"),))
    await kit.eventually(lambda: bench.service.get("mnist")["roles"]["ps"]["states"] == {"running": 1})
    after = (bench.folder(view) / "events.jsonl").read_bytes()
    assert after.startswith(before) and after[len(before) :].count(b"\n") == 1


async def test_a_thousand_tasks_come_by_page(bench, kit):
    text = kit.document().replace("instances: 2", "instances: 1000")
    view = await bench.submit(document=text)
    tasks = tuple(kit.task("worker", index, "running") for index in range(0, 1000, 2))
    bench.backend.emit(view["id"], "running", tasks=tasks)
    found = await bench.state("mnist", "running")
    assert found["roles"]["worker"]["states"] == {"waiting": 500, "running": 500}
    page = bench.service.tasks("mnist", offset=998, limit=5)
    assert page["total"] == 1001
    assert [(each["key"], each["state"]) for each in page["tasks"]] == [
        ("worker-998", "running"),
        ("worker-999", "waiting"),
        ("ps-0", "waiting"),
    ]


async def test_a_warning_of_the_backend_does_not_stop_a_job(bench):
    await bench.submit()
    bench.backend.problems = [Problem("warning", "image-ignored", "Image is not used here.")]
    await bench.submit()


async def test_two_profiles_have_a_watch_each(bench, isolated_home):
    config = isolated_home / "config" / "paijupyter" / "profiles.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("profiles: {other: {kind: local, cpu: 3}}")
    one, two = await bench.submit(), await bench.submit("two", profile="other")
    made = {each.profile.name: each for each in type(bench.backend).made}
    assert made["other"].profile.settings == {"cpu": 3}
    made["other"].emit(two["id"], "running")
    await bench.state("two", "running")
    made["other"].break_watch(RuntimeError("x"))
    await bench.state(one["id"], "waiting")
    assert bench.service.get(one["id"])["staleSince"] is None


async def test_a_profile_that_is_gone_leaves_its_jobs_stale_until_it_is_back(bench, kit, isolated_home):
    config = isolated_home / "config" / "paijupyter" / "profiles.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("profiles: {other: {kind: local}}")
    view = await bench.submit(profile="other")
    config.unlink()
    await bench.service.close()
    bench.service = type(bench.service)(bench.data, bench.runtime)
    await bench.service.start()
    await kit.eventually(lambda: bench.service.get("mnist")["staleSince"])
    assert bench.service.get("mnist")["state"] == "waiting"
    config.write_text("profiles: {other: {kind: local }}")
    await kit.eventually(lambda: len(kit.FakeBackend.made) == 2)
    bench.backend.emit(view["id"], "running")
    assert (await bench.state("mnist", "running"))["staleSince"] is None
