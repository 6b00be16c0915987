"""Requests and streams, held against a scripted API server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_server import Answer, ApiServer, Reply, Request, answering, kubeconfig, serving, status

from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.paths import batch, core
from paijupyter.backends.kubernetes.transport import KubeTransport

PODS = core("pods", namespace="team")
LOG = core("pods", "p", "log", namespace="team")


@contextlib.asynccontextmanager
async def cluster(
    folder: Path, answers: dict[str, Answer | list[Answer]]
) -> AsyncIterator[tuple[ApiServer, KubeTransport]]:
    async with serving(answers) as server:
        transport = KubeTransport(kubeconfig=kubeconfig(folder, server.url))
        yield server, transport
        await transport.close()


@pytest.mark.asyncio
async def test_a_request_says_who_we_are_and_returns_json(tmp_path: Path) -> None:
    """P34: by the kubeconfig's context; the namespace is the context's."""
    async with cluster(tmp_path, {f"POST {PODS}": answering({"kind": "Pod"})}) as (server, transport):
        assert await transport.request("POST", PODS, query={"dryRun": "All"}, body={"a": "ü"}) == {
            "kind": "Pod"
        }
        seen = server.requests[0]
    assert seen.headers["authorization"] == "Bearer t0k"
    assert seen.query == {"dryRun": "All"}
    assert seen.headers["content-type"] == "application/json"
    assert seen.body == b'{"a": "\\u00fc"}'
    assert transport.namespace == "team"
    assert transport.context == "here"
    assert transport.server == server.url


@pytest.mark.asyncio
async def test_a_status_becomes_an_error_with_its_reason(tmp_path: Path) -> None:
    no = {**status(409, "AlreadyExists", 'jobs.batch "a" already exists'), "details": {"name": "a"}}
    path = batch("jobs", namespace="team")
    async with cluster(tmp_path, {f"POST {path}": answering(no, 409)}) as (_, transport):
        with pytest.raises(KubeError) as caught:
            await transport.request("POST", path, body={})
    assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")
    assert caught.value.details == {"name": "a"}


@pytest.mark.asyncio
async def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    busy = answering(status(429, "TooManyRequests", "too many"), 429, retry_after="0")
    async with cluster(tmp_path, {f"POST {PODS}": [busy, busy, answering({})]}) as (server, transport):
        assert await transport.request("POST", PODS, body={}) == {}
        assert server.count(f"POST {PODS}") == 3


@pytest.mark.asyncio
async def test_an_expired_token_is_renewed_once(tmp_path: Path) -> None:
    """The kubeconfig is read again: whoever rotates credentials writes it anew."""

    async def check(request: Request, reply: Reply) -> None:
        if request.headers["authorization"] == "Bearer new":
            await reply.json({"kind": "PodList"})
        else:
            await reply.json(status(401, "Unauthorized", "Unauthorized"), 401)

    async with cluster(tmp_path, {f"GET {PODS}": check}) as (server, transport):
        with pytest.raises(KubeError) as caught:
            await transport.request("GET", PODS)
        assert caught.value.status == 401
        assert server.count(f"GET {PODS}") == 2
        kubeconfig(tmp_path, server.url, token="new")
        assert (await transport.request("GET", PODS))["kind"] == "PodList"
        kubeconfig(tmp_path, server.url, token="old")
        await transport.close()
        kubeconfig(tmp_path, server.url, token="new")
        pieces = [piece async for piece in transport.stream(PODS)]
    assert b"".join(pieces) == b'{"kind": "PodList"}'


@pytest.mark.asyncio
async def test_nobody_there(tmp_path: Path) -> None:
    async with serving({}) as server:
        config = kubeconfig(tmp_path, server.url)
    transport = KubeTransport(kubeconfig=config)
    with pytest.raises(KubeError) as caught:
        await transport.request("GET", PODS)
    await transport.close()
    assert (caught.value.status, caught.value.reason) == (0, "Unreachable")
    assert "refused" in caught.value.message
    assert caught.value.for_people("list pods").code == "cluster-unreachable"


@pytest.mark.asyncio
async def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    async def never(_: Request, reply: Reply) -> None:
        await asyncio.sleep(60)

    async with cluster(tmp_path, {f"GET {PODS}": never}) as (_, transport):
        with pytest.raises(KubeError) as caught:
            await transport.request("GET", PODS, timeout=0.2)
    assert caught.value.reason == "Timeout"


@pytest.mark.asyncio
async def test_a_broken_kubeconfig_is_said(tmp_path: Path) -> None:
    async with serving({}) as server:
        config = kubeconfig(tmp_path, server.url)
    for wanted, context in ((str(tmp_path / "none"), None), (config, "elsewhere")):
        transport = KubeTransport(kubeconfig=wanted, context=context)
        with pytest.raises(KubeError) as caught:
            await transport.open()
        await transport.close()
        assert caught.value.reason == "Config"
        error = caught.value.for_people("list pods")
        assert error.code == "bad-kubeconfig"
        assert error.hint


@pytest.mark.asyncio
async def test_bytes_come_as_they_are_and_at_once(tmp_path: Path) -> None:
    """``\\r`` without an end of line, invalid UTF-8 and a last line without end."""
    go_on = asyncio.Event()

    async def answer(_: Request, reply: Reply) -> None:
        reply.start(content_type="text/plain")
        await reply.piece(b"10%\r")
        await go_on.wait()
        await reply.piece(b"\xff\xfe\nlast")
        await reply.end()

    async with cluster(tmp_path, {f"GET {LOG}": answer}) as (_, transport):
        stream = transport.stream(LOG, query={"follow": "true"})
        assert await anext(stream) == b"10%\r"
        go_on.set()
        assert b"".join([piece async for piece in stream]) == b"\xff\xfe\nlast"


@pytest.mark.asyncio
async def test_a_cut_stream_is_an_error_after_its_last_byte(tmp_path: Path) -> None:
    async def answer(_: Request, reply: Reply) -> None:
        reply.start()
        await reply.piece(b"some")
        await asyncio.sleep(0.05)
        reply.cut()

    async with cluster(tmp_path, {f"GET {LOG}": answer}) as (_, transport):
        stream = transport.stream(LOG)
        assert await anext(stream) == b"some"
        with pytest.raises(KubeError) as caught:
            await anext(stream)
    assert caught.value.is_unreachable


@pytest.mark.asyncio
async def test_a_silent_connection_counts_as_dead(tmp_path: Path) -> None:
    """A half-open connection never says so (kubernetes-client/python#1148)."""

    async def answer(_: Request, reply: Reply) -> None:
        reply.start()
        await reply.piece(b"some")
        await asyncio.sleep(60)

    async with cluster(tmp_path, {f"GET {LOG}": answer}) as (_, transport):
        stream = transport.stream(LOG, idle=0.2)
        assert await anext(stream) == b"some"
        with pytest.raises(KubeError) as caught:
            await anext(stream)
    assert caught.value.reason == "Timeout"


@pytest.mark.asyncio
async def test_a_closed_stream_lets_its_thread_and_connection_go(tmp_path: Path) -> None:
    """A thread in ``recv`` is woken; many streams at once wait for no one."""
    gone = 0

    async def answer(_: Request, reply: Reply) -> None:
        nonlocal gone
        reply.start()
        await reply.piece(b"hello")
        try:
            await asyncio.sleep(60)
        finally:
            gone += 1

    def readers() -> list[Any]:
        import threading

        return [each for each in threading.enumerate() if each.name.startswith("stream ")]

    async with cluster(tmp_path, {f"GET {LOG}": answer}) as (_, transport):
        streams = [transport.stream(LOG) for _ in range(40)]
        assert await asyncio.gather(*(anext(stream) for stream in streams)) == [b"hello"] * 40
        assert len(readers()) == 40
        for stream in streams[:-1]:
            await stream.aclose()
        await transport.close()
        with contextlib.suppress(StopAsyncIteration):
            await anext(streams[-1])
        end = time.monotonic() + 5
        while readers() and time.monotonic() < end:
            await asyncio.sleep(0.01)
        assert not readers()


@pytest.mark.asyncio
async def test_a_slow_reader_holds_the_writer_back(tmp_path: Path) -> None:
    """Memory stays flat: the thread waits once a few megabytes are unread."""
    sent = 0

    async def answer(_: Request, reply: Reply) -> None:
        nonlocal sent
        reply.start()
        while sent < 200:
            await reply.piece(b"x" * 1_000_000)
            sent += 1
        await reply.end()

    async with cluster(tmp_path, {f"GET {LOG}": answer}) as (_, transport):
        stream = transport.stream(LOG)
        got = len(await anext(stream))
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.2)
        assert sent < 60
        got += sum([len(piece) async for piece in stream])
    assert got == 200_000_000


@pytest.mark.asyncio
async def test_a_stream_that_is_refused_says_why(tmp_path: Path) -> None:
    no = status(400, "BadRequest", 'container "main" in pod "p" is waiting to start: ContainerCreating')
    async with cluster(tmp_path, {f"GET {LOG}": answering(no, 400)}) as (_, transport):
        with pytest.raises(KubeError) as caught:
            await anext(transport.stream(LOG))
    assert caught.value.status == 400
    assert "waiting to start" in caught.value.message
