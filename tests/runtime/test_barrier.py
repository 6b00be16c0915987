"""Tasks start together, and say who is missing (P28; openpai.md 5.6)."""

from __future__ import annotations

import os
import signal

from paijupyter.runtime import barrier


def pair(make_task, timeout=60):
    """Return two tasks of one job that wait for one another."""
    tasks = [make_task("job", key) for key in ("worker-0", "worker-1")]
    for each in tasks:
        each.spec["roles"][0]["instances"] = 2
        for name in ("hosts", "ports"):
            each.spec[name] = {**tasks[0].spec[name], **tasks[1].spec[name]}
        folders = {f"worker-{index}": str(task.folder) for index, task in enumerate(tasks)}
        each.spec["barrier"] = {"kind": "files", "tasks": folders, "timeout": timeout}
        each.spec["command"] = "echo peer is $PAI_HOST_IP_worker_1; date +%s%N"
    return tasks


def test_nobody_starts_before_all_are_ready(make_task, until):
    first, second = pair(make_task)
    first.start()
    until(lambda: (first.folder / "ready").exists())
    assert first.log == ""
    second.start()
    assert [first.end()["code"], second.end()["code"]] == [0, 0]
    begins = [float(task.log.split()[-1]) / 1e9 for task in (first, second)]
    assert min(begins) >= second.exit["startedAt"], "the first waited for the second"


def test_the_missing_are_named(make_task):
    first, _ = pair(make_task, timeout=0.3)
    record = first.run()
    assert (record["reason"], record["code"]) == ("barrier-timeout", None)
    assert record["message"] == "worker-1 did not get ready within 0.3 s."
    assert first.log == "[paijupyter] worker-1 did not get ready within 0.3 s.\n"


def test_a_peer_that_ended_is_not_waited_for(make_task, monkeypatch):
    class Watch:
        def check(self):
            return

        def sleep(self, seconds):
            return

    monkeypatch.setattr(barrier, "_PATIENCE", 0.01)
    first, second = pair(make_task)
    (first.folder / "ready").write_text("")
    (second.folder / "exit.json").write_text("{}")
    try:
        barrier.wait(first.spec["barrier"], Watch(), None)
    except barrier.Failure as failure:
        assert failure.message == "worker-1 ended before it was ready."
    else:
        raise AssertionError("it must not start")
    (second.folder / "ready").write_text("")
    barrier.wait(first.spec["barrier"], Watch(), None)


def test_stop_ends_the_waiting(make_task, until):
    first, _ = pair(make_task)
    first.start()
    until(lambda: (first.folder / "ready").exists())
    os.kill(first.process.pid, signal.SIGTERM)
    assert first.end()["reason"] == "stopped"
    assert first.log == "[paijupyter] The task was stopped on request.\n"


def test_many_missing_are_counted(make_task):
    (task,) = [make_task("job")]
    folders = {f"worker-{index}": str(task.home / str(index)) for index in range(1, 9)}
    task.spec["barrier"] = {
        "kind": "files",
        "tasks": {"worker-0": str(task.folder), **folders},
        "timeout": 0.2,
    }
    record = task.run()
    assert record["message"] == (
        "worker-1, worker-2, worker-3, worker-4, worker-5 and 3 more tasks did not get ready within 0.2 s."
    )
