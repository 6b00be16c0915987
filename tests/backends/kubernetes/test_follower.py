"""Following a pod's log: cut streams, restarts of the engine, rotation, a pod that goes (P24, O30)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from api_server import Answer, ApiServer, Reply, Request, answering, kubeconfig, serving, status

from paijupyter.backends.kubernetes import builds, logs
from paijupyter.backends.kubernetes.building import Build
from paijupyter.backends.kubernetes.facts import Container, Ended, Pod
from paijupyter.backends.kubernetes.logs import Follower, Lines
from paijupyter.backends.kubernetes.paths import core
from paijupyter.backends.kubernetes.transport import KubeTransport

LOG = core("pods", "p", "log", namespace="team")
PLACE = f"GET {LOG}"
RUNNING = Pod(
    uid="1", name="p", version="1", job="j", attempt=0, role="worker", index=0, phase="Running", node="n",
    conditions={}, container=Container(id="c1", running_since=1.0),
)  # fmt: skip
ENDED = replace(RUNNING, phase="Succeeded", container=Container(id="c1", ended=Ended(0)))


def line(number: int, text: bytes, second: int = 0) -> bytes:
    return b"2026-11-29T23:00:%02d.%09dZ %s" % (second, number, text)


def sending(*pieces: bytes, then: str = "end") -> Answer:
    async def answer(_: Request, reply: Reply) -> None:
        reply.start(content_type="text/plain")
        for piece in pieces:
            await reply.piece(piece)
            await asyncio.sleep(0.01)
        if then == "end":
            await reply.end()
        elif then == "cut":
            reply.cut()
        else:
            await asyncio.sleep(60)

    return answer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_PAUSES", (0.02, 0.05))


@contextlib.asynccontextmanager
async def following(folder: Path, *answers: Answer) -> AsyncIterator[tuple[ApiServer, Follower, list[str]]]:
    told: list[str] = []
    async with serving({PLACE: list(answers)}) as server:
        transport = KubeTransport(kubeconfig=kubeconfig(folder, server.url), namespace="team")
        follower = Follower(transport, Lines(), folder / "task", lambda: told.append("outputs"))
        yield server, follower, told
        await follower.close()
        await transport.close()


async def until_written(folder: Path, content: bytes) -> None:
    end = asyncio.get_running_loop().time() + 40
    path = folder / "task" / "log"
    while not path.exists() or path.read_bytes() != content:
        assert asyncio.get_running_loop().time() < end, path.exists() and path.read_bytes()
        await asyncio.sleep(0.01)


@pytest.mark.asyncio
async def test_cuts_lose_and_double_nothing(tmp_path: Path) -> None:
    one, two, three = line(1, b"one\n"), line(2, b"tw\xff\r"), line(3, b"three\n", 2)
    whole = one + line(2, b"tw\xff\ro\n") + three
    answers = (
        answering(status(400, "BadRequest", "container is waiting to start"), 400),
        sending(one, two[:-1], then="cut"),
        sending(whole[: len(one) + 40], then="cut"),
        sending(whole),
        sending(three),
    )
    async with following(tmp_path, *answers) as (server, follower, _):
        follower.see(RUNNING)
        await until_written(tmp_path, b"one\ntw\xff\ro\nthree\n")
        follower.see(ENDED)
        await asyncio.wait_for(follower.done.wait(), 10)
    assert (tmp_path / "task" / "log").read_bytes() == b"one\ntw\xff\ro\nthree\n"
    assert server.requests[2].query["sinceTime"] == "2026-11-29T23:00:00Z"
    assert server.requests[-1].query.get("follow") is None
    assert (tmp_path / "task" / "log.index").read_bytes() == b"0 1795993200000\n10 1795993202000\n"


@pytest.mark.asyncio
async def test_a_new_engine_goes_on_where_the_old_one_was_killed(tmp_path: Path) -> None:
    """The copy may have more than the cursor knows of: kill -9 comes between the two."""
    whole = line(1, b"one\n") + line(2, b"two\n") + line(3, b"three\n", 1)
    async with following(tmp_path, sending(whole[:38], then="stay")) as (_, follower, _t):
        follower.see(RUNNING)
        await until_written(tmp_path, b"one\n")
    log = tmp_path / "task" / "log"
    log.write_bytes(b"one\ntwo\nth")
    async with following(tmp_path, sending(whole), sending(b"")) as (_, follower, _t):
        follower.see(ENDED)
        await asyncio.wait_for(follower.done.wait(), 10)
    assert log.read_bytes() == b"one\ntwo\nthree\n"
    async with following(tmp_path) as (server, follower, _t):
        follower.see(ENDED)
        await asyncio.wait_for(follower.done.wait(), 10)
        assert not server.requests  # complete is complete


@pytest.mark.asyncio
async def test_a_pod_that_goes_keeps_what_was_read(tmp_path: Path) -> None:
    async with following(tmp_path, sending(line(1, b"one\n"), then="stay")) as (server, follower, _):
        follower.see(RUNNING)
        await until_written(tmp_path, b"one\n")
        server.answers[PLACE] = answering(status(404, "NotFound", 'pods "p" not found'), 404)
        follower.see(replace(RUNNING, gone=True))
        await server.stop()
        await server.start()
        await asyncio.wait_for(follower.done.wait(), 10)
    assert (tmp_path / "task" / "log").read_bytes() == b"one\n"


@pytest.mark.asyncio
async def test_what_cannot_be_had_is_said(tmp_path: Path) -> None:
    """A node that is lost answers 500 for ever; a job must end all the same."""
    lost = answering(status(500, "InternalError", "dial tcp: connect: no route to host"), 500)
    async with following(tmp_path, sending(line(1, b"half"), then="cut"), lost) as (_, follower, _t):
        follower.see(RUNNING)
        await until_written(tmp_path, b"half")
        follower.see(ENDED)
        await follower.finish(0.3)
        assert follower.done.is_set()
    said = (tmp_path / "task" / "log").read_bytes()
    assert said == b"half\n[paijupyter] The rest of this log could not be had from the cluster.\n"


@pytest.mark.asyncio
async def test_a_node_that_cannot_tell_just_now_is_asked_again(tmp_path: Path) -> None:
    """Its words come as a log (200, kubernetes/kubernetes#59902): no line of the task, and not its end."""
    words = b"unable to retrieve container logs for containerd://c1"
    half = line(1, b"one\n") + line(2, b"tw")
    whole = half + b"o\n" + line(3, b"three\n")
    answers = (sending(half, then="cut"), sending(words[:20], words[20:]), sending(words), sending(whole))
    async with following(tmp_path, *answers) as (server, follower, _):
        follower.see(RUNNING)
        await until_written(tmp_path, b"one\ntw")
        follower.see(ENDED)
        await asyncio.wait_for(follower.done.wait(), 60)
    assert (tmp_path / "task" / "log").read_bytes() == b"one\ntwo\nthree\n"
    assert len(server.requests) == 4


@pytest.mark.asyncio
async def test_a_rotated_log_has_its_gap_marked(tmp_path: Path) -> None:
    answers = (sending(line(1, b"one\n"), then="cut"), sending(line(5, b"late\n", 30), then="stay"))
    async with following(tmp_path, *answers) as (_, follower, _t):
        follower.see(RUNNING)
        gap = b"[paijupyter] Lines may be missing here: the node had thrown them away.\n"
        await until_written(tmp_path, b"one\n" + gap + b"late\n")


@pytest.mark.asyncio
async def test_a_container_that_was_restarted(tmp_path: Path) -> None:
    """restartPolicy OnFailure: the end of the first one's log is read, then the second one's."""
    first, second = line(1, b"one\n") + line(2, b"two\n"), line(3, b"again\n", 9)
    answers = (sending(first[:38], then="cut"), sending(first), sending(second, then="stay"))
    async with following(tmp_path, *answers) as (server, follower, _t):
        follower.see(RUNNING)
        await until_written(tmp_path, b"one\n")
        follower.see(replace(RUNNING, container=Container(id="c2", running_since=2.0, restarts=1)))
        note = b"[paijupyter] The container was started again (1).\n"
        await until_written(tmp_path, b"one\ntwo\n" + note + b"again\n")
        assert "true" in [each.query.get("previous") for each in server.requests]


@pytest.mark.asyncio
async def test_the_log_of_the_image_that_was_built_comes_first(tmp_path: Path) -> None:
    """P16: whatever engine goes on after the build, it has been said once."""
    async with following(tmp_path, sending(line(1, b"step 1\n"))) as (_, follower, _t):
        follower.see(ENDED)
        await asyncio.wait_for(follower.done.wait(), 60)
    build = Build("a", "b", "c", "", "reg/jobs")
    for _ in range(2):  # an engine that was killed after it, and the next one
        builds._begin_task(tmp_path / "task", build, True)
    own = replace(ENDED, uid="2", container=Container(id="c2", ended=Ended(0)))
    async with following(tmp_path, sending(line(2, b"own\n", 5))) as (server, follower, _t):
        follower.see(own)
        await asyncio.wait_for(follower.done.wait(), 60)
    said = f"step 1\n[paijupyter] The task begins, in the image {build.image}.\nown\n"
    assert (tmp_path / "task" / "log").read_text() == said
    assert "sinceTime" not in server.requests[0].query


@pytest.mark.asyncio
async def test_outputs_that_wait_are_told_of(tmp_path: Path) -> None:
    words = b"[paijupyter] Outputs wait to be fetched: 2 files, 10 bytes.\n"
    raw = line(1, words)
    async with following(tmp_path, sending(raw[:50], raw[50:], then="stay")) as (_, follower, told):
        follower.see(RUNNING)
        await until_written(tmp_path, words)
        assert told == ["outputs"]


@pytest.mark.asyncio
async def test_more_tasks_than_streams_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the streams that are held open, tasks are looked at one after the other."""
    monkeypatch.setattr(logs, "LIVE", 1)
    monkeypatch.setattr(logs, "LOOK_EVERY", 0.02)
    async with serving({PLACE: sending(line(1, b"one\n"), then="stay")}) as server:
        transport = KubeTransport(kubeconfig=kubeconfig(tmp_path, server.url), namespace="team")
        lines = Lines()
        first = Follower(transport, lines, tmp_path / "first", lambda: None)
        first.see(RUNNING)
        await until_written_at(tmp_path / "first" / "log", b"one\n")
        server.answers[PLACE] = sending(line(1, b"one\n"))
        second = Follower(transport, lines, tmp_path / "second", lambda: None)
        second.see(RUNNING)
        await until_written_at(tmp_path / "second" / "log", b"one\n")
        await second.catch_up(5)
        assert all("follow" not in each.query for each in server.requests[1:])
        await asyncio.gather(first.close(), second.close())
        await transport.close()


async def until_written_at(path: Path, content: bytes) -> None:
    end = asyncio.get_running_loop().time() + 40
    while not path.exists() or path.read_bytes() != content:
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.01)
