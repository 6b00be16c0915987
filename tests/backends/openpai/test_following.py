"""One list for all jobs, details only where something changed, attempts, reasons (O28, O29, O32)."""

from __future__ import annotations

import pytest
from doing import backend_on, scripted, simple, until
from staging import watching

from paijupyter.backends.base import Place
from tests.openpai.server import OpenPai


def details(server: OpenPai) -> int:
    with server.lock:
        return sum(
            method == "GET" and "/jobs/" in path and path.count("/") == 5 for method, path in server.requests
        )


@pytest.mark.asyncio
async def test_a_change_costs_one_look_and_silence_none(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        jobs = [simple(place) for _ in range(30)]
        for job in jobs:
            await backend.submit(job, {})
            scripted(openpai, job).run()
        for job in jobs:
            await watch.running(job)
        lists, looks = openpai.count("GET", "/jobs"), details(openpai)
        await until(lambda: openpai.count("GET", "/jobs") >= lists + 4)
        assert details(openpai) == looks
        scripted(openpai, jobs[7]).succeed()
        assert (await watch.final(jobs[7])).state == "succeeded"
        assert details(openpai) == looks + 1


@pytest.mark.asyncio
async def test_attempts_that_nobody_saw_are_looked_up(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O21: with exit status and last lines of each."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place, jobRetryCount=2)
        await backend.submit(job, {})
        with openpai.lock:
            remote = scripted(openpai, job).run()
            remote.retry("user", origin=5, user="first\n")
            remote.run().retry("user", origin=6, user="second\n")
            remote.run()
        await watch.until(job, lambda change: change.attempt == 2 and change.state == "running")
        ended = [watch.tasks(job, number)["worker-0"].exit for number in (0, 1)]
        assert [each and (each.code, each.last_lines) for each in ended] == [
            (5, ("first",)),
            (6, ("second",)),
        ]


@pytest.mark.asyncio
async def test_why_it_waits(openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """O28: the events are the only thing that tells."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place, instances=2)
        with openpai.lock:
            openpai.on_submit = lambda remote: remote.prepare(scheduled=False).event(
                "FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu.", "Warning"
            )
        await backend.submit(job, {})
        change = await watch.until(job, lambda change: change.reason == "unschedulable")
        assert "Insufficient cpu" in change.message


@pytest.mark.asyncio
async def test_a_retry_that_is_announced_waits(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUNNING / AttemptCompleted although nothing ever ran (6.2)."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        scripted(openpai, job).prepare().delay_retry(454)
        change = await watch.until(job, lambda change: change.reason == "retry-delay")
        assert (change.state, "454 s" in change.message) == ("waiting", True)


@pytest.mark.asyncio
async def test_too_short_to_be_seen_running(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        openpai.on_submit = lambda remote: remote.run().fail(220, origin=127, user="command not found\n")
        await backend.submit(job, {})
        final = await watch.final(job)
        assert [change.state for change in watch.of(job)][-2:] == ["running", "failed"]
        assert final.failed_task == "worker-0"
        assert "127" in final.message


@pytest.mark.asyncio
async def test_two_thousand_jobs_are_one_list(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of one of them is told with the next list; the calls stay within the budget."""
    first = simple(place)
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        await backend.submit(first, {})
        with openpai.lock:
            text, user = scripted(openpai, first).posted, scripted(openpai, first).user
            remote = scripted(openpai, first)
            for number in range(1999):
                name = f"job-{number}"
                data = {**remote.data, "name": name}
                other = type(remote)(user, text, data, {**remote.stored, "name": name}, remote._clock)
                openpai.jobs[other.framework] = other.run()
            remote.run()
        await watch.running(first)
        lists = openpai.count("GET", "/jobs")
        await until(lambda: openpai.count("GET", "/jobs") >= lists + 2)
        scripted(openpai, first).succeed()
        assert (await watch.final(first)).state == "succeeded"
        assert details(openpai) <= 6


@pytest.mark.asyncio
async def test_lists_leave_the_most_of_the_calls_to_other_things(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short the period: ten ends are told, within the calls of a minute."""
    async with backend_on(openpai, place, monkeypatch, callsPerMinute=120, pollSeconds=0.01) as backend:
        jobs = [simple(place) for _ in range(10)]
        async with watching(backend) as watch:
            for job in jobs:
                await backend.submit(job, {})
            with openpai.lock:
                for job in jobs:
                    scripted(openpai, job).run().succeed()
            for job in jobs:
                assert (await watch.final(job)).state == "succeeded"
        assert len(openpai.requests) <= 120


@pytest.mark.asyncio
async def test_many_jobs_of_an_earlier_engine_are_taken_from_one_list(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their states are told at once; what their tasks are doing is learnt as calls are left."""
    openpai.on_submit = lambda remote: remote.run()
    jobs = [simple(place) for _ in range(30)]
    async with backend_on(openpai, place, monkeypatch) as backend:
        for job in jobs:
            await backend.submit(job, {})
    with openpai.lock:
        openpai.requests.clear()
        scripted(openpai, jobs[3]).fail(255, origin=3)
    async with (
        backend_on(openpai, place, monkeypatch, callsPerMinute=40) as backend,
        watching(backend, jobs) as watch,
    ):
        for job in jobs:
            await watch.until(job, lambda change: change.state != "waiting")
        assert (await watch.final(jobs[3])).failed_task == "worker-0"
        assert details(openpai) <= 12
