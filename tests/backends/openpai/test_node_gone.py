"""The node of a task, or its log server, is gone: it is said, what was read stays, all else goes on (O30)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from doing import backend_on, running, scripted, simple, until
from staging import Watch, log_of, watching

from paijupyter.backends.base import Job, Place
from paijupyter.backends.openpai import logs
from paijupyter.backends.openpai.backend import OpenPaiBackend
from tests.openpai import faults
from tests.openpai.answers import Answer, html, of_json
from tests.openpai.server import OpenPai

FILE, LIST = r"^/log-manager/", r"/attempts/\d+/logs$"
NOBODY = of_json({"locations": [{"name": "all", "uri": "http://127.0.0.1:9/log-manager/user-all"}]})
GONE: dict[str, tuple[str, dict[str, Any], str]] = {
    "404": (FILE, {"instead": Answer(404, b"", {})}, "its log server answered 404"),
    "404 page": (FILE, {"instead": html(404, "404 Not Found")}, "it has no /log-manager/"),
    "502": (FILE, {"instead": faults.bad_gateway()}, "its log server answered 502"),
    "504": (FILE, {"instead": html(504, "504 Gateway Time-out")}, "its log server answered 504"),
    "dropped": (FILE, {"drop": True}, "the connection ended"),
    "no list": (LIST, {"instead": faults.broken()}, "Something went wrong"),
    "refused": (LIST, {"instead": NOBODY}, "Connection refused"),
}
UNREAD = "The log of worker-0 cannot be read: "


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_PAUSES", (0.02, 0.1))


def copy_of(job: Job, attempt: int = 0) -> bytes:
    """What is here of the log of the only worker."""
    file: Path = job.folder / "tasks" / "worker-0" / str(attempt) / "log"
    return file.read_bytes() if file.exists() else b""


async def with_a_line(
    openpai: OpenPai, backend: OpenPaiBackend, watch: Watch, place: Place, line: bytes = b"first\n"
) -> Job:
    """A job that runs and has printed something, which is here by now."""
    job = await running(openpai, backend, watch, simple(place))
    scripted(openpai, job).log("worker", 0, line)
    await until(lambda: copy_of(job) == line)
    return job


def make_gone(openpai: OpenPai, how: str) -> str:
    """Let all logs be gone; return the words for it."""
    path, what, words = GONE[how]
    openpai.fault("GET", path, times=None, **what)
    openpai.expire_logs()  # so that the list is asked for, too
    return words


@pytest.mark.asyncio
@pytest.mark.parametrize("how", GONE)
async def test_while_the_job_runs(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """O30: the state says so, other jobs are followed all the same, and no line is lost once it is back."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await with_a_line(openpai, backend, watch, place)
        words = make_gone(openpai, how)
        scripted(openpai, job).log("worker", 0, b"second\n")
        change = await watch.until(job, lambda change: change.message.startswith(UNREAD))
        assert change.state == "running"
        assert words in change.message
        assert copy_of(job) == b"first\n"
        other = await running(openpai, backend, watch, simple(place))
        scripted(openpai, other).succeed()
        assert (await watch.final(other)).state == "succeeded"
        openpai.lift()
        await watch.until(job, lambda change: change.state == "running" and not change.message)
        scripted(openpai, job).log("worker", 0, b"third\n").succeed()
        final = await watch.final(job)
        assert (final.state, final.message) == ("succeeded", "")
        assert await log_of(backend, job, "worker-0") == b"first\nsecond\nthird\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("how", GONE)
async def test_after_the_end_of_the_job(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """O30: it ends as it did; who reads gets what there is, and the rest where it can be had later."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await with_a_line(openpai, backend, watch, place)
        with openpai.lock:
            words = make_gone(openpai, how)
            scripted(openpai, job).log("worker", 0, b"second\n").succeed()
        final = await watch.final(job)
        assert final.state == "succeeded"
        assert final.message.startswith(UNREAD)
        assert words in final.message
        assert await log_of(backend, job, "worker-0") == b"first\n"
        openpai.lift()
        for _ in range(2):
            assert await log_of(backend, job, "worker-0") == b"first\nsecond\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["404 page", "502", "refused"])
async def test_who_follows_gets_every_line_once(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """O30: through a log server that goes and comes back, its files rotated meanwhile."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await running(openpai, backend, watch, simple(place))
        got = bytearray()

        async def follow() -> None:
            async for piece in backend.logs(job, "worker", 0, 0, 0):
                got.extend(piece)

        following = asyncio.create_task(follow())
        wanted = b""
        for number in range(4):
            with openpai.lock:
                scripted(openpai, job).log("worker", 0, f"{number}\n".encode())
                if number == 2:
                    scripted(openpai, job).rotate("worker", 0)
            wanted += f"{number}\n".encode()
            await until(lambda: bytes(got) == wanted)  # noqa: B023 - done with before the next
            make_gone(openpai, how)
            with openpai.lock:
                scripted(openpai, job).log("worker", 0, f"{number}, unseen\n".encode())
            wanted += f"{number}, unseen\n".encode()
            await watch.until(job, lambda change: change.message.startswith(UNREAD))
            openpai.lift()
        await until(lambda: bytes(got) == wanted)
        scripted(openpai, job).succeed()
        await asyncio.wait_for(following, 60)
        assert bytes(got) == wanted


@pytest.mark.asyncio
async def test_a_node_is_lost_and_the_job_goes_on_elsewhere(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O30, O21: what was read of the attempt there stays; nothing is wrong with the next one's log."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await with_a_line(openpai, backend, watch, place, b"on the lost node\n")
        openpai.fault("GET", r"/attempts/0/.*/logs$", times=None, instead=faults.bad_gateway())
        openpai.expire_logs()
        await watch.until(job, lambda change: change.message.startswith(UNREAD))
        with openpai.lock:
            scripted(openpai, job).retry("platform", -1001).run().log("worker", 0, b"elsewhere\n")
        change = await watch.until(job, lambda change: change.attempt == 1 and change.state == "running")
        assert change.message == ""
        assert watch.tasks(job, 0)["worker-0"].reason == "node-lost"
        assert (
            await asyncio.wait_for(log_of(backend, job, "worker-0", attempt=0), 60) == b"on the lost node\n"
        )
        scripted(openpai, job).succeed()
        final = await watch.final(job)
        assert (final.state, final.message) == ("succeeded", "")
        assert await log_of(backend, job, "worker-0", attempt=1) == b"elsewhere\n"
        assert copy_of(job) == b"on the lost node\n"


@pytest.mark.asyncio
async def test_a_job_that_ends_with_its_node(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await with_a_line(openpai, backend, watch, place)
        with openpai.lock:
            make_gone(openpai, "502")
            scripted(openpai, job).log("worker", 0, b"unseen\n").fail(-1001)
        final = await watch.final(job)
        assert (final.state, final.reason) == ("failed", "node-lost")
        assert f"{UNREAD}its log server answered 502." in final.message
        assert await log_of(backend, job, "worker-0") == b"first\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", [{"drop": True}, {"cut": True}], ids=["before", "within"])
async def test_the_older_file_is_cut_after_lines_were_lost(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> None:
    """Where lines are missing is said once, and what the server still has comes once."""
    async with backend_on(openpai, place, monkeypatch) as backend, watching(backend) as watch:
        job = await with_a_line(openpai, backend, watch, place, b"first\n" * 20)
        second = b"".join(b"second %04d\n" % number for number in range(1000))
        with openpai.lock:
            remote = scripted(openpai, job)
            remote.log("worker", 0, b"lost\n").rotate("worker", 0)
            remote.log("worker", 0, second).rotate("worker", 0).log("worker", 0, b"third\n")
            openpai.fault("GET", r"user-all\.1$", times=3, **fault)
        await until(lambda: copy_of(job).endswith(b"third\n"))
        scripted(openpai, job).log("worker", 0, b"fourth\n").succeed()
        await watch.final(job)
        text = await log_of(backend, job, "worker-0")
        said = b"\n[paijupyter] Lines may be missing here: the cluster had thrown them away.\n"
        assert text == b"first\n" * 20 + said + second + b"third\nfourth\n"
