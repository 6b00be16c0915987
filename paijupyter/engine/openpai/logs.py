"""Logs: the list of a task's files, and the bytes of one by range."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from paijupyter.engine.call import Call
from paijupyter.engine.handlers.logs import first
from paijupyter.engine.openpai.answers import Refused, in_their_words
from paijupyter.engine.openpai.jobs import task_of, view_of
from paijupyter.engine.route import BYTES, Reply

NAMES = ("all", "stdout")  # one stream: what a task writes to stderr is in it
_TAIL_BYTES = 16_384
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@in_their_words
async def openpai_logs(call: Call) -> Reply:
    """Return where a task's logs are; the addresses are below the portal's root, which is this API's."""
    task = task_of(call, view_of(call))
    if task["startedAt"] is None and not task["logSize"]:
        raise Refused(404, "NoTaskLogError", "Log of the task is not found: it has not started.")
    place = "/".join(
        ("jobs", quote(call.path["framework"], safe="~"), "attempts", str(task["attempt"]), "taskRoles",
         quote(str(task["role"])), "taskIndex", str(task["index"]), "attempts", "0", "logs")
    )  # fmt: skip
    tail = "?tail-mode=true" if call.query.get("tail-mode") == "true" else ""
    return Reply({"locations": [{"name": name, "uri": f"/api/v2/{place}/{name}{tail}"} for name in NAMES]})


@in_their_words
async def openpai_log(call: Call) -> Reply | None:
    """Send a log, or a range of it."""
    if call.path["file"] not in NAMES:
        raise Refused(404, "NoTaskLogError", f"Log {call.path['file']} is not found.")
    view = view_of(call)
    task = task_of(call, view)
    size = call.service.log_size(view["id"], task["key"], task["attempt"])
    if call.query.get("tail-mode") == "true":
        start, end, status = max(0, size - _TAIL_BYTES), size, 206
    else:
        start, end, status = _span(call.headers.get("Range", ""), size)
    headers = {"Accept-Ranges": "bytes", "Content-Disposition": 'attachment; filename="user-all.log"'}
    if status == 206:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    if status == 416:
        headers["Content-Range"] = f"bytes */{size}"
    else:
        headers["Content-Length"] = str(end - start)
    await call.sender.raw(_bytes(call, view["id"], task, start, end), BYTES, headers, status)
    return None


def _span(text: str, size: int) -> tuple[int, int, int]:
    """Return start, end (exclusive) and status of a Range header (RFC 9110, 14.2)."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or not (match[1] or match[2]):
        return 0, size, 200
    if not match[1]:
        start, end = max(0, size - int(match[2])), size
    else:
        start, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
    return (start, end, 206) if start < end else (0, 0, 416)


async def _bytes(call: Call, ref: str, task: Mapping[str, Any], start: int, end: int) -> AsyncIterator[bytes]:
    """Yield a part of a log, which may have become longer meanwhile."""
    if start >= end:
        return
    async for chunk in first(call.service.logs(ref, task["key"], task["attempt"], start, False), end - start):
        yield chunk
