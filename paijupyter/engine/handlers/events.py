"""The stream of changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply


async def events(call: Call) -> Reply | None:
    """Send the events after a number; without a number, those from now on."""
    bus = call.service.events
    since = call.query.get("since", bus.seq)
    known = bus.since(since)  # too old is told before the stream begins
    source = bus.follow(since) if call.query.get("follow") else _each(known)
    await call.sender.lines(source)
    return None


async def _each(items: Iterable[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for item in items:
        yield item
