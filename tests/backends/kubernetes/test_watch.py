"""Whoever listens hears each object's latest state, whatever the API server does to the watch (O29)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from api_server import Answer, ApiServer, Reply, Request, answering, kubeconfig, serving, status

from paijupyter.backends.kubernetes import watch
from paijupyter.backends.kubernetes.paths import core
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.backends.kubernetes.watch import Reflector

PODS = core("pods", namespace="team")
PLACE = f"GET {PODS}"


@dataclass(frozen=True)
class Thing:
    uid: str
    version: str


class Heard:
    """What a listener was told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, bool]] = []

    def __call__(self, thing: Thing, gone: bool) -> None:
        self.told.append((thing.uid, thing.version, gone))

    async def until(self, *expected: tuple[str, str, bool]) -> None:
        end = asyncio.get_running_loop().time() + 40
        while self.told[-len(expected) :] != list(expected):
            assert asyncio.get_running_loop().time() < end, self.told
            await asyncio.sleep(0.01)


def thing(uid: str, version: int) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": str(version)}}


def listing(version: int, *things: dict[str, Any], following: str = "") -> Answer:
    return answering(
        {"metadata": {"resourceVersion": str(version), "continue": following}, "items": list(things)}
    )


def event(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": data}


def watching(*steps: Any, then: str = "stay") -> Answer:
    """Send events; ``end`` properly, ``cut``, or ``stay`` open."""

    async def answer(_: Request, reply: Reply) -> None:
        reply.start()
        for step in steps:
            await reply.piece(step)
        if then == "end":
            await reply.end()
        elif then == "cut":
            reply.cut()
        else:
            await asyncio.sleep(60)

    return answer


@contextlib.asynccontextmanager
async def reflecting(
    folder: Path, *answers: Answer
) -> AsyncIterator[tuple[ApiServer, Reflector[Thing], Heard]]:
    heard = Heard()
    async with serving({PLACE: list(answers)}) as server:
        transport = KubeTransport(kubeconfig=kubeconfig(folder, server.url))

        def read(data: Any) -> Thing:
            return Thing(data["metadata"]["uid"], data["metadata"]["resourceVersion"])

        reflector = Reflector(transport, lambda: PODS, "a=b", read, heard)
        task = asyncio.create_task(reflector.run())
        yield server, reflector, heard
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_PAUSES", (0.02, 0.05))


async def until(condition: Callable[[], object]) -> None:
    end = asyncio.get_running_loop().time() + 40
    while not condition():
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.01)


@pytest.mark.asyncio
async def test_a_list_by_pages_then_what_changes(tmp_path: Path) -> None:
    first = listing(5, thing("a", 1), following="more")
    second = listing(5, thing("b", 2))
    events = watching(
        event("MODIFIED", thing("a", 6)), event("DELETED", thing("b", 7)), event("ADDED", thing("c", 8))
    )
    async with reflecting(tmp_path, first, second, events) as (server, reflector, heard):
        await heard.until(
            ("a", "1", False), ("b", "2", False), ("a", "6", False), ("b", "7", True), ("c", "8", False)
        )
        assert reflector.synced.is_set()
        assert reflector.objects.keys() == {"a", "c"}
        asked = server.requests[2].query
    assert server.requests[1].query["continue"] == "more"
    assert asked["resourceVersion"] == "5"
    assert asked["allowWatchBookmarks"] == "true"
    assert asked["labelSelector"] == "a=b"


@pytest.mark.asyncio
async def test_a_watch_that_ends_goes_on_where_it_was(tmp_path: Path) -> None:
    """Bookmarks move the version without saying anything."""
    first = watching(event("BOOKMARK", thing("", 90)), then="end")
    second = watching(event("MODIFIED", thing("a", 91)))
    async with reflecting(tmp_path, listing(5, thing("a", 1)), first, second) as (server, _, heard):
        await heard.until(("a", "1", False), ("a", "91", False))
        assert [each.query.get("resourceVersion") for each in server.requests] == [None, "5", "90"]


@pytest.mark.parametrize("how", ["event", "status"])
@pytest.mark.asyncio
async def test_an_expired_version_is_listed_anew(tmp_path: Path, how: str) -> None:
    """410, as an event of the watch or as its answer: what went meanwhile is told, and nothing twice."""
    gone = status(410, "Expired", "too old resource version")
    expired = watching(event("ERROR", gone), then="end") if how == "event" else answering(gone, 410)
    again = listing(50, thing("a", 1), thing("c", 40))
    answers = (listing(5, thing("a", 1), thing("b", 2)), expired, again, watching())
    async with reflecting(tmp_path, *answers) as (_, reflector, heard):
        await heard.until(("a", "1", False), ("b", "2", False), ("c", "40", False), ("b", "2", True))
        assert reflector.objects.keys() == {"a", "c"}
        assert len(heard.told) == 4


@pytest.mark.asyncio
async def test_a_cut_and_a_busy_server_are_passed_over(tmp_path: Path) -> None:
    cut = watching(event("ADDED", thing("b", 6)), then="cut")
    broken = answering(status(500, "InternalError", "etcd leader changed"), 500)
    answers = (listing(5), cut, broken, watching(event("ADDED", thing("c", 7))))
    async with reflecting(tmp_path, *answers) as (server, reflector, heard):
        await heard.until(("b", "6", False), ("c", "7", False))
        assert server.requests[-1].query["resourceVersion"] == "6"
        await until(lambda: reflector.error is None)


@pytest.mark.asyncio
async def test_a_silent_watch_is_opened_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is dead and does not say so."""
    monkeypatch.setattr(watch, "_IDLE", 0.2)
    async with reflecting(tmp_path, listing(5), watching(), watching(event("ADDED", thing("a", 6)))) as (
        _,
        _r,
        heard,
    ):
        await heard.until(("a", "6", False))


@pytest.mark.asyncio
async def test_a_server_that_goes_away_comes_back(tmp_path: Path) -> None:
    """Nothing changes meanwhile; it is known since when nothing is heard."""
    answers = (listing(5, thing("a", 1)), watching(), watching(event("MODIFIED", thing("a", 9))))
    async with reflecting(tmp_path, *answers) as (server, reflector, heard):
        await heard.until(("a", "1", False))
        await until(lambda: server.count(PLACE) == 2)
        await server.stop()
        await until(lambda: reflector.failing_since is not None)
        assert reflector.error is not None
        assert reflector.error.is_unreachable
        assert reflector.objects.keys() == {"a"}
        await server.start()
        await heard.until(("a", "9", False))
        assert reflector.failing_since is None


@pytest.mark.asyncio
async def test_a_missing_right_is_said(tmp_path: Path) -> None:
    no = answering(status(403, "Forbidden", 'pods is forbidden: User "u" cannot list resource "pods"'), 403)
    async with reflecting(tmp_path, no) as (_, reflector, _h):
        await until(lambda: reflector.error is not None)
        assert reflector.error is not None
        assert reflector.error.for_people("list pods").code == "not-allowed"
