"""Logs: one task's bytes by offset, or the lines of all tasks with a cursor."""

from __future__ import annotations

from collections.abc import AsyncIterator

from paijupyter.engine.call import Call
from paijupyter.engine.route import TEXT, Reply
from paijupyter.engine.service import Service
from paijupyter.errors import UsageProblem

_LOOK_BACK_BYTES = 64 * 1024
_MOST_BYTES = 64 * 1024 * 1024


async def logs(call: Call) -> Reply | None:
    """Send the log of one task, or of all."""
    if "task" in call.query:
        await _one(call)
    else:
        await _all(call)
    return None


async def search(call: Call) -> Reply:
    """Search the whole log of one task, or of all."""
    return Reply(await call.service.whole_logs.search(call.path["ref"], **{"text": "", **call.query}))


async def times(call: Call) -> Reply:
    """Say when lines were written."""
    places = [_place("places", text) for text in call.query.get("places", "").split(",") if text]
    if not places:
        raise UsageProblem("The parameter `places` is missing.", "Write `worker-0:0`, several with commas.")
    given = {name: call.query[name] for name in ("attempt", "most") if name in call.query}
    return Reply(await call.service.whole_logs.times(call.path["ref"], places, **given))


async def _one(call: Call) -> None:
    for name in ("cursor", "at"):
        if name in call.query:
            raise UsageProblem(
                f"The parameter `{name}` is for the log of all tasks.", "Use `offset` with `task`."
            )
    ref, task = call.path["ref"], call.query["task"]
    # Named once: the job may begin another attempt while this one's log is read.
    attempt = call.query.get("attempt", call.service.get(ref).get("attempt") or 0)
    size = call.service.log_size(ref, task, attempt)
    offset = call.query.get("offset", 0)
    if "tail" in call.query:
        offset = max(offset, await _tail(call.service, ref, task, attempt, size, call.query["tail"]))
    source = call.service.logs(ref, task, attempt, offset, call.query.get("follow", False))
    if "limit" in call.query:
        source = first(source, call.query["limit"])
    headers = {"X-Log-Attempt": str(attempt), "X-Log-Offset": str(offset), "X-Log-Size": str(size)}
    await call.sender.raw(source, f"{TEXT}; charset=utf-8", headers)


async def _all(call: Call) -> None:
    for name in ("offset", "limit", *(() if "at" in call.query else ("attempt",))):
        if name in call.query:
            raise UsageProblem(f"The parameter `{name}` needs `task`.", "Name a task, or use `cursor`.")
    ref, line = call.path["ref"], None
    view = call.service.get(ref)  # an unknown job is told before the stream begins
    if "at" in call.query:
        task, offset = _place("at", call.query["at"])
        line = (call.query.get("attempt", view.get("attempt") or 0), task, offset)
        call.service.log_size(ref, task, line[0])  # so is an unknown task or attempt
    source = call.service.merged_log(
        ref, call.query.get("cursor"), call.query.get("follow", False), call.query.get("tail"), line
    )
    await call.sender.lines(source)


def _place(parameter: str, text: str) -> tuple[str, int]:
    """Read `<task>:<offset>`."""
    task, _, offset = text.rpartition(":")
    if not task or not (offset.isascii() and offset.isdigit() and len(offset) < 17):
        raise UsageProblem(f"The parameter `{parameter}` must be `<task>:<offset>`, not `{text}`.")
    return task, int(offset)


async def first(source: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Yield the first bytes of a stream, then close it."""
    try:
        async for chunk in source:
            yield chunk[:limit]
            limit -= len(chunk)
            if limit <= 0:
                return
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


async def _tail(service: Service, ref: str, task: str, attempt: int | None, size: int, lines: int) -> int:
    """Find the offset of the last lines of a log, looking back no further than needed."""
    if lines == 0:
        return size
    span = _LOOK_BACK_BYTES
    while True:
        start = max(0, size - span)
        parts = [chunk async for chunk in service.logs(ref, task, attempt, start, False)]
        text = b"".join(parts)[: size - start]
        at = len(text) - 1 if text.endswith(b"\n") else len(text)
        for _ in range(lines):
            at = text.rfind(b"\n", 0, at)
            if at < 0:
                break
        if at >= 0:
            return start + at + 1
        if start == 0 or span >= _MOST_BYTES:
            return start
        span *= 4
