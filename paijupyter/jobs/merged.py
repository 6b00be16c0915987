"""Reading and following the merged log of a job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.merging import (
    Cursor,
    LineBuffer,
    TaskLog,
    frame_json,
    in_thread,
    merge,
    offsets_at,
    tail_offsets,
)

_log = logging.getLogger(__name__)
_QUIET = 0.5  # seconds after which an unfinished line is shown, for example a progress bar
_PAUSE = 1.0  # seconds until a backend that failed is asked again
_QUEUED = 8  # pieces; each may hold a quarter of a megabyte
Line = tuple[int, str, int]
"""A line of a log: number of the attempt, key of the task, offset of its first byte."""
Opener = Callable[[str, int, int], AsyncIterator[bytes]]


async def merged_log(
    live: LiveJob,
    opener: Opener | None,
    cursor: str | None = None,
    tail: int | None = None,
    line: Line | None = None,
) -> AsyncIterator[dict[str, Any]]:
    """Yield the frames of all tasks' logs, attempt by attempt.

    Args:
        live: the job.
        opener: opens a task's log at (task, attempt, offset) to follow it, or None to read what there is.
        cursor: of the last frame the reader had.
        tail: without a cursor: begin at the last lines of the current attempt.
        line: without these: begin some lines before this one.
    """
    place = Cursor.of(cursor) if cursor else Cursor(0, {})
    if not cursor and tail is None and line is not None:
        attempt, task, offset = line
        logs = await asyncio.to_thread(_logs, live, attempt, {})
        place = Cursor(attempt, await asyncio.to_thread(offsets_at, logs, task, offset))
    if not cursor and tail is not None:
        logs = await asyncio.to_thread(_logs, live, live.life.attempt, {})
        place = Cursor(live.life.attempt, await asyncio.to_thread(tail_offsets, logs, tail))
    attempt, offsets = place.attempt, dict(place.offsets)
    while attempt <= live.life.attempt:
        # Asked before reading: what is over by now does not grow while it is read.
        over = live.life.final or attempt < live.life.attempt
        logs = await asyncio.to_thread(_logs, live, attempt, offsets)
        async for log, offset, content in in_thread(merge(logs)):
            yield frame_json(log.task, attempt, offset, content, offsets)
        if over or opener is None:
            attempt, offsets = attempt + 1, {}
            continue
        try:
            async for task, offset, content in _followed(live, opener, attempt, offsets):
                yield frame_json(task, attempt, offset, content, offsets)
        except Exception as error:  # the backend's; its jobs are stale, and their readers wait with them
            _log.warning("log of job %s broke off: %s: %s", live.record.id, type(error).__name__, error)
            await asyncio.sleep(_PAUSE)
            continue
        if not live.life.final and attempt == live.life.attempt:
            await live.change()


def _logs(live: LiveJob, attempt: int, offsets: dict[str, int]) -> list[TaskLog]:
    return [TaskLog(key, live.record.task_folder(key, attempt), offsets.get(key, 0)) for key in _tasks(live)]


def _tasks(live: LiveJob) -> list[str]:
    return [f"{role}-{index}" for role, count in live.record.roles.items() for index in range(count)]


async def _followed(
    live: LiveJob, opener: Opener, attempt: int, offsets: dict[str, int]
) -> AsyncIterator[tuple[str, int, bytes]]:
    """Yield frames of all tasks of one attempt as they come, until all of these logs have ended."""
    queue: asyncio.Queue[tuple[str, bytes | Exception | None]] = asyncio.Queue(_QUEUED)
    buffers = {key: LineBuffer(offsets.get(key, 0)) for key in _tasks(live)}
    pumps = [
        asyncio.create_task(_pump(key, opener(key, attempt, buffer.offset), queue))
        for key, buffer in buffers.items()
    ]
    getter = asyncio.create_task(queue.get())
    left = len(pumps)
    try:
        while left:
            pending = [key for key, buffer in buffers.items() if buffer.pending]
            await asyncio.wait({getter}, timeout=_QUIET if pending else None)
            if not getter.done():
                for key in pending:
                    for frame in buffers[key].flush():
                        yield key, *frame
                continue
            key, chunk = getter.result()
            getter = asyncio.create_task(queue.get())
            if isinstance(chunk, Exception):
                raise chunk
            left -= chunk is None
            for frame in buffers[key].end() if chunk is None else buffers[key].add(chunk):
                yield key, *frame
    finally:
        for task in (getter, *pumps):
            task.cancel()
        await asyncio.gather(getter, *pumps, return_exceptions=True)


async def _pump(
    key: str, stream: AsyncIterator[bytes], queue: asyncio.Queue[tuple[str, bytes | Exception | None]]
) -> None:
    try:
        async for chunk in stream:
            await queue.put((key, chunk))
        await queue.put((key, None))
    except Exception as error:
        await queue.put((key, error))
