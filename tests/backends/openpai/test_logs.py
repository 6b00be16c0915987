"""Logs by ranges: no byte lost or doubled that the server still has (O30)."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from doing import backend_on, running, scripted, simple, until
from staging import log_of, watching

from paijupyter.backends.base import Place
from paijupyter.backends.openpai import collecting, logs
from paijupyter.backends.openpai.budget import Turn
from paijupyter.backends.openpai.run import JobRun
from tests.openpai.server import OpenPai

LIST = r"/attempts/\d+/logs$"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_PAUSES", (0.02, 0.1))


@pytest.mark.asyncio
async def test_addresses_expire_and_files_rotate_while_it_is_followed(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        remote = scripted(openpai, job).run()
        await watch.running(job)
        got = bytearray()
        written = remote_log = bytearray()

        async def follow() -> None:
            async for piece in backend.logs(job, "worker", 0, 0, 0):
                got.extend(piece)

        following = asyncio.create_task(follow())
        for number in range(40):
            line = f"line {number} {'x' * (number % 7)}\n".encode()
            with openpai.lock:
                remote.log("worker", 0, line)
                written.extend(line)
                if number == 10:
                    openpai.expire_logs()
                if number in (15, 30):
                    remote.rotate("worker", 0)
            if number % 5 == 4:
                await until(lambda: bytes(got) == bytes(remote_log))
        with openpai.lock:
            remote.log("worker", 0, b"the end, without a newline")
            remote.succeed()
        written.extend(b"the end, without a newline")
        await asyncio.wait_for(following, 60)
        assert bytes(got) == bytes(written)
        assert await log_of(backend, job, "worker-0", offset=5) == bytes(written)[5:]


@pytest.mark.asyncio
async def test_a_task_that_is_tried_again_alone_has_all_its_attempts(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O21, O30: with gangAllocation false; each attempt's log is another one, and none is lost or doubled."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place, extras={"gangAllocation": False})
        await backend.submit(job, {})
        with openpai.lock:
            remote = scripted(openpai, job).run().log("worker", 0, "first\n")
        await watch.running(job)
        await until(lambda: (job.folder / "tasks" / "worker-0" / "0" / "log").exists())
        with openpai.lock:
            remote.log("worker", 0, "and its end\n").retry_task("worker", 0).run().log(
                "worker", 0, "second\n"
            )
            remote.rotate("worker", 0).retry_task("worker", 0).run()
            remote.log("worker", 0, "third\n").rotate("worker", 0).log("worker", 0, "the last\n").succeed()
        assert (await watch.final(job)).state == "succeeded"
        said = "\n[paijupyter] The cluster tries this task again: its attempt {}.\n"
        wanted = "first\nand its end\n" + said.format(1) + "second\n" + said.format(2) + "third\nthe last\n"
        assert (await log_of(backend, job, "worker-0")).decode() == wanted


@pytest.mark.asyncio
async def test_what_the_cluster_has_thrown_away_is_said(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rotations between two reads: one older file is all that is kept."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        remote = scripted(openpai, job).run().log("worker", 0, b"first\n" * 20)
        await watch.running(job)
        log = job.folder / "tasks" / "worker-0" / "0" / "log"
        await until(lambda: log.exists() and log.stat().st_size == 120)
        with openpai.lock:
            remote.log("worker", 0, b"lost\n").rotate("worker", 0)
            remote.log("worker", 0, b"second\n").rotate("worker", 0)
            remote.log("worker", 0, b"third\n").succeed()
        text = await log_of(backend, job, "worker-0")
        assert text.startswith(b"first\n" * 20)
        assert text.endswith(b"second\nthird\n")
        assert b"Lines may be missing here" in text
        assert text.count(b"second") == 1


@pytest.mark.asyncio
async def test_a_log_server_that_does_not_answer(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job ends all the same; its log comes when it can be had."""
    monkeypatch.setattr(collecting, "_AT_END_SECONDS", 0.5)
    openpai.log_manager = False
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        scripted(openpai, job).run().log("worker", 0, b"hello\n").succeed()
        assert (await watch.final(job)).state == "succeeded"
        assert await log_of(backend, job, "worker-0") == b""
        openpai.log_manager = True
        assert await log_of(backend, job, "worker-0") == b"hello\n"


@pytest.mark.asyncio
async def test_an_answer_that_is_cut_is_read_on(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"".join(b"%06d\n" % number for number in range(50_000))
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await running(openpai, backend, watch, simple(place))
        openpai.fault("GET", r"/log-manager/", cut=True, times=3)
        scripted(openpai, job).log("worker", 0, content).succeed()
        await watch.final(job)
        assert await log_of(backend, job, "worker-0") == content


@pytest.mark.asyncio
async def test_a_task_that_never_ran_has_the_log_of_its_start(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        with openpai.lock:
            remote = scripted(openpai, job).run()
            remote.log("worker", 0, b"KeyError: 'taskRoles'\n", "init.log")
            for name in ("all", "stdout", "stderr", "runtime.log"):
                del remote.task("worker", 0).run.logs.files[name]
            remote.fail(1)
        assert (await watch.final(job)).reason == "start"
        assert await log_of(backend, job, "worker-0") == b"KeyError: 'taskRoles'\n"


@pytest.mark.asyncio
async def test_the_end_of_a_job_where_few_calls_are_left(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for the end has the first logs with it all the same, and reads that the others follow."""
    few = {"pollSeconds": 3, "callsPerMinute": 60}
    async with backend_on(openpai, place, monkeypatch, **few) as backend, watching(backend) as watch:
        gather, budget = backend._collector.gather, backend._server.client.budget

        async def after_many_calls(run: JobRun) -> None:
            while budget.free(Turn.PERSON) > 4:
                await budget.take(Turn.LIST)
            await gather(run)

        backend._hub.before_end = after_many_calls
        await backend.capabilities()  # by now it is known what the server is
        job = simple(place, instances=4)
        await backend.submit(job, {})
        with openpai.lock:
            remote = scripted(openpai, job).run()
            for index in range(4):
                remote.log("worker", index, b"last words\n")
            remote.succeed()
        final = await watch.final(job)
        assert "2 logs follow within minutes" in final.message
        copies = [job.folder / "tasks" / f"worker-{index}" / "0" / "log" for index in range(4)]
        assert [path.exists() for path in copies] == [True, True, False, False]


@pytest.mark.asyncio
async def test_an_unscheduled_task_has_no_log(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        scripted(openpai, job).prepare(scheduled=False)
        await watch.until(job, lambda change: bool(change.tasks))
        await backend.stop(job)
        assert (await watch.final(job)).state == "stopped"
        assert await log_of(backend, job, "worker-0") == b""


@pytest.mark.asyncio
async def test_a_large_log_is_read_once_in_small_pieces(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 30 * 2**20
    content = hashlib.shake_256(b"log").digest(2**20) * (size // 2**20)
    pieces: list[int] = []
    write = logs.TaskLog._write

    def counted(self: logs.TaskLog, data: bytes) -> None:
        pieces.append(len(data))
        write(self, data)

    monkeypatch.setattr(logs.TaskLog, "_write", counted)
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = simple(place)
        await backend.submit(job, {})
        with openpai.lock:
            scripted(openpai, job).run().log("worker", 0, content)
        await watch.running(job)
        log = job.folder / "tasks" / "worker-0" / "0" / "log"
        await until(lambda: log.exists() and log.stat().st_size == size)
        scripted(openpai, job).succeed()
        await watch.final(job)
        assert log.read_bytes() == content
    assert max(pieces) <= 2**18
    assert sum(pieces) == size
