"""Why things wait, asked so that hundreds of jobs that wait are no load (peers: "pending for ever")."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from api_server import ApiServer, Reply, Request, status

from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.events import FEW, Events
from paijupyter.backends.kubernetes.transport import KubeTransport

PATH = "GET /api/v1/namespaces/team/events"


def event(uid: str, reason: str) -> dict[str, Any]:
    return {"involvedObject": {"uid": uid}, "reason": reason, "message": f"of {uid}", "type": "Warning"}


def reasons(found: Any) -> dict[str, list[str]]:
    return {uid: [each.reason for each in events] for uid, events in found.items()}


@pytest.mark.asyncio
async def test_few_are_asked_one_by_one(transport: KubeTransport, server: ApiServer) -> None:
    async def answer(request: Request, reply: Reply) -> None:
        uid = request.query["fieldSelector"].partition("=")[2]
        await reply.json({"items": [event(uid, "Pulling")] if uid == "a" else []})

    server.answers[PATH] = answer
    assert reasons(await Events(transport).of(["a", "b"])) == {"a": ["Pulling"], "b": []}


@pytest.mark.asyncio
async def test_many_share_one_list_page_by_page(transport: KubeTransport, server: ApiServer) -> None:
    """A cluster searches all events of a namespace for each question."""
    lists: list[dict[str, str]] = []

    async def answer(request: Request, reply: Reply) -> None:
        if "fieldSelector" in request.query:
            await reply.json({"items": []})
            return
        lists.append(request.query)
        first = "continue" not in request.query
        items = [event("u99", "Failed")] if first else [event("u99", "BackOff"), event("other", "Killing")]
        await reply.json({"metadata": {"continue": "more"} if first else {}, "items": items})

    server.answers[PATH] = answer
    events = Events(transport)
    found = await asyncio.gather(*(events.of([f"u{number}"]) for number in range(100)))
    asked = [each for each in server.requests if "fieldSelector" in each.query]
    assert len(asked) == FEW
    assert len(lists) == 2
    assert reasons(found[99]) == {"u99": ["Failed", "BackOff"]}
    assert reasons(found[98]) == {"u98": []}


@pytest.mark.asyncio
async def test_whoever_may_not_list_them_is_told(transport: KubeTransport, server: ApiServer) -> None:
    async def answer(_: Request, reply: Reply) -> None:
        await reply.json(status(403, "Forbidden", "no"), 403)

    server.answers[PATH] = answer
    events = Events(transport)
    told = await asyncio.gather(*(events.of([str(each)]) for each in range(FEW + 2)), return_exceptions=True)
    assert [type(each) for each in told] == [KubeError] * (FEW + 2)


@pytest.mark.asyncio
async def test_a_claim_is_asked_for_once_by_many(transport: KubeTransport, server: ApiServer) -> None:
    async def answer(_: Request, reply: Reply) -> None:
        about = {"kind": "PersistentVolumeClaim", "name": "data"}
        await reply.json({"items": [{**event("u", "FailedBinding"), "involvedObject": about}]})

    server.answers[PATH] = answer
    events = Events(transport)
    found = await asyncio.gather(*(events.of_claim("data") for _ in range(50)))
    assert {(each.reason, each.about) for told in found for each in told} == {("FailedBinding", "data")}
    (asked,) = server.requests
    named = "involvedObject.kind=PersistentVolumeClaim,involvedObject.name=data"
    assert asked.query["fieldSelector"] == named
