"""Nothing depends on a parent: the engine may be killed at any instant (architecture.md, decision 4)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from staging import document, log_of, make_job, role, watching

from paijupyter.backends import retries
from paijupyter.backends.base import FINAL, Change, Job, Place, Profile
from paijupyter.backends.jsonfiles import write_json
from paijupyter.backends.kept import journal_file
from paijupyter.backends.local import LocalBackend, host, journal
from paijupyter.backends.local.attempt import Attempt
from paijupyter.backends.local.files import secrets_file, task_files
from paijupyter.backends.local.spawn import _lock

HERE = Path(__file__).parent
PROFILE = Profile("local", "local", {"cpu": 2})


class StandIn:
    """An engine in a process of its own."""

    def __init__(self, place: Place, *jobs: Job) -> None:
        told = place.runtime / f"jobs-{time.monotonic_ns()}"
        told.write_bytes(pickle.dumps((list(jobs), place)))
        self.process = subprocess.Popen(
            [sys.executable, HERE / "engine_stand_in.py", told], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self._lines = self.process.stdout

    def read_until(self, line: str) -> None:
        for each in self._lines:
            if each.strip() == line:
                return
        raise AssertionError(f"the stand-in ended without {line!r}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._lines.close()


@pytest_asyncio.fixture
async def again(place: Place) -> AsyncIterator[LocalBackend]:
    """The backend of the next engine."""
    backend = LocalBackend(PROFILE, place)
    yield backend
    await backend.close()


def started(job: Job) -> dict[str, int]:
    return {
        path.parent.parent.name: json.loads(path.read_text())["pid"]
        for path in job.folder.glob("tasks/*/*/started.json")
    }


@pytest.mark.asyncio
async def test_tasks_do_not_notice_that_the_engine_was_killed(place: Place, again: LocalBackend) -> None:
    command = 'echo "begun $PPID"; until [ -e "$PAI_OUTPUT_DIR/../go" ]; do sleep 0.05; done; echo "$PPID"'
    job = make_job(place, document({"worker": role(command, instances=2)}))
    stand_in = StandIn(place, job)
    stand_in.read_until(f"{job.id} running")
    pids = started(job)
    stand_in.kill()
    async with watching(again, [job]) as watch:
        assert (await watch.until(job, lambda change: True)).state == "running"
        assert started(job) == pids
        (job.folder / "output" / "go").touch()
        assert (await watch.final(job)).state == "succeeded"
        assert sum(change.state == "succeeded" for change in watch.of(job)) == 1
    for key, pid in pids.items():
        assert await log_of(again, job, key) == f"begun {pid}\n{pid}\n".encode()


@pytest.mark.asyncio
async def test_an_end_without_an_engine_is_found(place: Place, again: LocalBackend) -> None:
    """Also while it was away: exit records are taken as they are."""
    job = make_job(place, document({"worker": role("echo last words; exit 9")}))
    stand_in = StandIn(place, job)
    stand_in.read_until("begin")
    stand_in.read_until(f"{job.id} failed")
    stand_in.kill()
    # As if the engine had died before it recorded the end.
    state = journal.load(job)
    assert state is not None
    state.phase, state.last, state.outcome = "started", None, None
    journal.save(job, state)
    async with watching(again, [job]) as watch:
        final = await watch.final(job)
        ended = watch.tasks(job)["worker-0"]
    assert (final.reason, final.failed_task) == ("user", "worker-0")
    assert ended.exit is not None
    assert (ended.exit.code, ended.exit.last_lines) == (9, ("last words",))


@pytest.mark.asyncio
@pytest.mark.slow
async def test_nothing_runs_twice_whenever_the_engine_is_killed(place: Place) -> None:
    """kill -9 at many instants of submit, launch, run and end: every task runs, and runs once."""
    for milliseconds in (0, 2, 4, 7, 10, 14, 18, 23, 30, 45, 70, 120):
        job = make_job(
            place,
            document({"worker": role('echo once >> "$PAI_OUTPUT_DIR/runs"; sleep 0.1', instances=2)}),
        )
        stand_in = StandIn(place, job)
        stand_in.read_until("begin")
        time.sleep(milliseconds / 1000)  # the very thing under test: any instant
        stand_in.kill()
        backend = LocalBackend(PROFILE, place)
        async with watching(backend, [job]) as watch:
            final = await watch.final(job)
        await backend.close()
        assert final.state == "succeeded", (milliseconds, final)
        for key in ("worker-0", "worker-1"):
            runs = (job.folder / "output" / key / "runs").read_text()
            assert runs == "once\n", f"killed after {milliseconds} ms"


@pytest.mark.asyncio
async def test_what_was_told_but_never_started_is_started(place: Place, again: LocalBackend) -> None:
    """The engine died between writing the specs and the first fork."""
    job = make_job(place, document({"worker": role("echo ran", instances=2)}))
    await _tell_but_do_not_start(again, job)
    other = LocalBackend(PROFILE, place)
    async with watching(other, [job]) as watch:
        assert (await watch.final(job)).state == "succeeded"
    await other.close()
    assert await log_of(other, job, "worker-1") == b"ran\n"


@pytest.mark.asyncio
async def test_a_claimed_task_is_not_started_again(place: Place, again: LocalBackend) -> None:
    """A forked boot process holds the lock before it can say who it is."""
    job = make_job(place, document({"worker": role("echo ran")}))
    await _tell_but_do_not_start(again, job)
    files = task_files(job, place, "worker-0", 0)
    claim = _lock(files.lock)
    assert claim is not None
    other = LocalBackend(PROFILE, place)
    async with watching(other, [job]) as watch:
        await watch.until(job, lambda change: change.reason == "starting")
        for _ in range(20):
            await asyncio.sleep(0.02)
            assert not files.started.exists()
        os.close(claim)
        assert (await watch.final(job)).state == "succeeded"
    await other.close()


@pytest.mark.asyncio
async def test_a_stop_reaches_a_task_that_has_not_said_who_it_is(
    place: Place, again: LocalBackend, until: Callable[..., object]
) -> None:
    """Found when it was missed: the stop came between the fork by an earlier engine and `started.json`."""
    job = make_job(place, document({"worker": role("echo ran")}))
    await _tell_but_do_not_start(again, job)
    files = task_files(job, place, "worker-0", 0)
    claim = _lock(files.lock)
    assert claim is not None
    other = LocalBackend(PROFILE, place)
    async with watching(other, [job]) as watch:
        await watch.until(job, lambda change: change.reason == "starting")
        stopping = asyncio.create_task(other.stop(job))
        # The stand-in for a boot process: it says who it is, and does what it is told.
        told = files.folder / "told"
        script = f"trap 'touch {told}; exit' TERM; touch {told}.trap; sleep 600 & wait"
        boot = subprocess.Popen(["bash", "-c", script], start_new_session=True)
        until(Path(f"{told}.trap").exists)
        write_json(files.started, {"pid": boot.pid, "startTime": host.start_time(boot.pid), "at": 0})
        os.close(claim)
        await asyncio.wait_for(stopping, 30)
        boot.wait()
        assert told.exists(), "it was not told, but killed"
        assert (await watch.final(job)).state == "stopped"
        assert watch.tasks(job)["worker-0"].state == "stopped"
    await other.close()


@pytest.mark.asyncio
async def test_a_stop_before_the_start_starts_nothing(place: Place, again: LocalBackend) -> None:
    job = make_job(place, document({"worker": role("echo ran", instances=2)}))
    await _tell_but_do_not_start(again, job)
    state = journal.load(job)
    assert state is not None
    state.stop = True
    journal.save(job, state)
    other = LocalBackend(PROFILE, place)
    async with watching(other, [job]) as watch:
        assert (await watch.final(job)).state == "stopped"
        assert {task.message for task in watch.tasks(job).values()} == {
            "worker-0 was stopped before it ran.",
            "worker-1 was stopped before it ran.",
        }
    assert not started(job)
    await other.close()


@pytest.mark.asyncio
async def test_a_watch_that_is_opened_anew_leaves_no_job_half_adopted(
    place: Place, again: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in a group whose engine was killed: a job for ever `waiting`, with its task long at its end."""
    job = make_job(place, document({"worker": role("echo ran")}))
    stand_in = StandIn(place, job)
    stand_in.read_until(f"{job.id} running")
    stand_in.kill()
    asked, go_on, ports = threading.Event(), threading.Event(), Attempt.ports

    def slowly(self: Attempt) -> set[int]:
        asked.set()
        assert go_on.wait(60)
        return ports(self)

    monkeypatch.setattr(Attempt, "ports", slowly)
    first = asyncio.create_task(_final(again, job))
    await asyncio.to_thread(asked.wait, 60)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    opening = asyncio.create_task(_final(again, job))
    go_on.set()
    changes = await asyncio.wait_for(opening, 60)
    assert changes[-1].state == "succeeded"
    assert changes[0].reason != "submitting", "what is told of a job is what was found"


async def _final(backend: LocalBackend, job: Job) -> list[Change]:
    heard = []
    async with contextlib.aclosing(backend.watch([job])) as changes:  # type: ignore[type-var]
        async for change in changes:
            heard.append(change)
            if change.state in FINAL:
                break
    return heard


@pytest.mark.asyncio
async def test_what_was_told_in_part_is_started(place: Place, again: LocalBackend) -> None:
    """The engine died between the specs of two tasks, before there was a journal: nothing had started."""
    job = make_job(place, document({"worker": role("echo ran", instances=2)}))
    await _tell_but_do_not_start(again, job)
    journal_file(job).unlink()
    shutil.rmtree(task_files(job, place, "worker-1", 0).folder)
    state = journal.load(job)
    assert state is not None
    assert (state.phase, state.attempt) == ("queued", 0)
    other = LocalBackend(PROFILE, place)
    async with watching(other, [job]) as watch:
        assert (await watch.final(job)).state == "succeeded"
    await other.close()
    for key in ("worker-0", "worker-1"):
        assert await log_of(other, job, key) == b"ran\n"


async def _tell_but_do_not_start(backend: LocalBackend, job: Job) -> None:
    async def die(self: Attempt) -> None:
        raise asyncio.CancelledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Attempt, "start", die)
        with pytest.raises(asyncio.CancelledError):
            await backend.submit(job, {})
    state = journal.load(job)
    assert state is not None
    assert state.phase == "started"


@pytest.mark.asyncio
async def test_after_a_reboot_running_jobs_have_failed_and_queued_ones_start(
    place: Place, again: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = make_job(place, document({"worker": role("sleep 600", instances=2)}))
    queued = make_job(place, document({"worker": role("echo later")}))
    stand_in = StandIn(place, running, queued)
    stand_in.read_until(f"{running.id} running")
    stand_in.kill()
    while left := _processes_of(running):  # as the end of the machine ends them
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    monkeypatch.setattr(host, "boot_id", lambda: "another run of the machine")
    async with watching(again, [queued, running]) as watch:
        final = await watch.final(running)
        tasks = watch.tasks(running)
        assert (await watch.final(queued)).state == "succeeded"
    assert (final.state, final.reason) == ("failed", "machine-restarted")
    assert {task.reason for task in tasks.values()} == {"machine-restarted"}


@pytest.mark.asyncio
async def test_a_boot_process_that_died_alone_is_lost(
    place: Place, again: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it left behind is ended before the job is final."""
    monkeypatch.setattr(retries, "DELAYS", ())
    command = "setsid sleep 601 & echo begun; sleep 600"
    job = make_job(place, document({"worker": role(command)}))
    stand_in = StandIn(place, job)
    stand_in.read_until(f"{job.id} running")
    stand_in.kill()
    async for _ in again.logs(job, "worker", 0, 0, 0):
        break
    os.kill(started(job)["worker-0"], signal.SIGKILL)
    async with watching(again, [job]) as watch:
        final = await watch.final(job)
        assert not _processes_of(job)
    assert (final.state, final.reason, final.failed_task) == ("failed", "lost", "worker-0")


@pytest.mark.asyncio
async def test_a_recorded_job_that_never_arrived_is_queued(place: Place, again: LocalBackend) -> None:
    """The service records first; its submit is durable from then on."""
    job = make_job(place, document({"worker": role("echo ran")}))
    async with watching(again, [job]) as watch:
        assert (await watch.final(job)).state == "succeeded"


@pytest.mark.asyncio
async def test_a_job_whose_folder_is_gone_is_lost(place: Place, again: LocalBackend) -> None:
    job = make_job(place, document({"worker": role("echo ran")}))
    job.folder.rmdir()
    async with watching(again, [job]) as watch:
        final = await watch.final(job)
    assert (final.state, final.reason) == ("failed", "lost")
    assert not job.folder.exists()


@pytest.mark.asyncio
async def test_a_job_whose_secret_is_gone_waits_for_it(place: Place, again: LocalBackend) -> None:
    """architecture.md, decision 8."""
    job = make_job(place, document({"worker": role('test "$KEY" = value')}, secrets={"KEY": ""}))
    async with watching(again, [job]) as watch:
        change = await watch.until(job, lambda change: change.reason == "secret")
        assert "`KEY`" in change.message
        await again.submit(job, {"KEY": "value"})
        assert (await watch.final(job)).state == "succeeded"
    assert not secrets_file(place, job.id).exists()


@pytest.mark.asyncio
async def test_a_job_that_waits_for_a_secret_can_be_stopped(place: Place, again: LocalBackend) -> None:
    job = make_job(place, document({"worker": role("true")}, secrets={"KEY": ""}))
    async with watching(again, [job]) as watch:
        await watch.until(job, lambda change: change.reason == "secret")
        await again.stop(job)
        assert (await watch.final(job)).state == "stopped"


@pytest.mark.asyncio
async def test_the_queue_keeps_its_order(place: Place, again: LocalBackend) -> None:
    blocker = make_job(place, document({"worker": role("sleep 600", instances=2)}))
    jobs = [make_job(place, document({"worker": role("true", instances=2)})) for _ in range(3)]
    stand_in = StandIn(place, blocker, *jobs)
    stand_in.read_until(f"{jobs[2].id} waiting")
    stand_in.kill()
    async with watching(again, [jobs[1], jobs[2], blocker, jobs[0]]) as watch:
        await watch.until(jobs[2], lambda change: "Number 3" in change.message)
        await again.stop(blocker)
        for job in jobs:
            await watch.final(job)
        ends = [change.job for change in watch.changes if change.state == "succeeded"]
    assert ends == [job.id for job in jobs]


def _processes_of(job: Job) -> list[int]:
    """Every living process whose environment has the job's id, wherever it hides."""
    mark = f"PAI_JOB_ID={job.id}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
