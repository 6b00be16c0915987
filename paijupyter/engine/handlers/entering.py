"""Going into running tasks: a command's output as it comes, and ports. Jobs of other hosts."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Mapping
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply
from paijupyter.errors import UsageProblem


async def run(call: Call) -> None:
    """Send what a command in a task prints, and how it ended."""
    body = call.body
    try:
        stdin = base64.b64decode(body.get("stdin") or "", validate=True)
    except binascii.Error:
        raise UsageProblem("The field `stdin` is not base64.") from None
    pieces = call.service.entrances.exec(call.path["ref"], body.get("task"), body["command"], stdin)
    await call.sender.lines(_frames(pieces))


async def forward(call: Call) -> Reply:
    """Have the engine's host listen for a port of a task."""
    body = call.body
    return Reply(await call.service.entrances.forward(call.path["ref"], body.get("task"), body["port"]))


async def adopt(call: Call) -> Reply:
    """Take over jobs that another host submitted."""
    return Reply(await call.service.adoption.adopt(call.body.get("profile"), call.body.get("user")))


async def _frames(pieces: AsyncIterator[tuple[str, bytes]]) -> AsyncIterator[Mapping[str, Any]]:
    async for stream, data in pieces:
        if stream == "exit":
            yield {"exit": int(data)}
        else:
            yield {"stream": stream, "data": base64.b64encode(data).decode("ascii")}
