"""One task's log: read from an offset, or followed to its end.

The log file in the job's folder is the only copy where the backend keeps one there; offsets are bytes in it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from paijupyter.backends.base import Backend, Job
from paijupyter.errors import NotFound
from paijupyter.jobs.live import LiveJob
from paijupyter.protocol import split_task_key

CHUNK = 1 << 18
_LAST_WORDS = 2.0  # seconds a backend has to end a log after the job has ended


def task_of(job: LiveJob, key: str) -> tuple[str, int]:
    """Take a task's name apart.

    Raises:
        NotFound: if the job has no such task.
    """
    role, index = split_task_key(key) or ("", -1)
    if not 0 <= index < job.record.roles.get(role, 0):
        raise NotFound("Task", key, f"Tasks of this job: {_some_tasks(job)}.")
    return role, index


def task_keys(job: LiveJob) -> list[str]:
    """Return the names of all tasks of a job, in the order of roles and indexes."""
    return [f"{role}-{index}" for role, count in job.record.roles.items() for index in range(count)]


def attempt_of(job: LiveJob, attempt: int | None) -> int:
    """Return the number of an attempt; of the latest if none is named.

    Raises:
        NotFound: if the job has no such attempt.
    """
    if attempt is None:
        return job.life.attempt
    if not 0 <= attempt <= job.life.attempt:
        raise NotFound("Attempt", str(attempt), f"The job is at attempt {job.life.attempt}.")
    return attempt


def log_file(job: LiveJob, key: str, attempt: int) -> Path:
    """Return where a task's log lies."""
    return job.record.task_folder(key, attempt) / "log"


def log_size(job: LiveJob, key: str, attempt: int) -> int:
    """Return the length of a task's log in bytes, 0 if there is none."""
    try:
        return log_file(job, key, attempt).stat().st_size
    except OSError:
        return 0


def read_chunk(path: Path, offset: int, limit: int = CHUNK) -> bytes:
    """Return up to ``limit`` bytes from an offset, b"" at the end or where there is no log."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(limit)
    except OSError:
        return b""


async def stored_log(path: Path, offset: int, end: int) -> AsyncIterator[bytes]:
    """Yield what a log holds between two offsets."""
    while offset < end:
        chunk = await asyncio.to_thread(read_chunk, path, offset, min(CHUNK, end - offset))
        if not chunk:
            return
        yield chunk
        offset += len(chunk)


async def followed_log(
    live: LiveJob, job: Job, backend: Backend, key: str, attempt: int, offset: int
) -> AsyncIterator[bytes]:
    """Yield a task's log from an offset as it grows, until the task or the job has ended.

    The backend says when the task has ended. If it still has not some time after the job's end (it cannot be
    reached, or lost the task), what the file holds is the rest.
    """
    role, index = task_of(live, key)
    stream = backend.logs(job, role, index, attempt, offset)
    over = asyncio.create_task(_over(live, attempt))
    try:
        while True:
            step = asyncio.ensure_future(anext(stream, None))
            await asyncio.wait({step, over}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                await asyncio.wait({step}, timeout=_LAST_WORDS)
            if not step.done():
                step.cancel()
                await asyncio.gather(step, return_exceptions=True)
                break
            chunk = step.result()
            if chunk is None:
                break
            offset += len(chunk)
            yield chunk
    finally:
        over.cancel()
        with contextlib.suppress(Exception):
            await stream.aclose()  # type: ignore[attr-defined]  # where it is a generator
    if live.life.final:
        async for chunk in stored_log(log_file(live, key, attempt), offset, log_size(live, key, attempt)):
            yield chunk


async def _over(live: LiveJob, attempt: int) -> None:
    while not live.life.final and live.life.attempt <= attempt:
        await live.change()


def _some_tasks(job: LiveJob) -> str:
    names = [f"{role}-{index}" for role, count in job.record.roles.items() for index in range(min(count, 3))]
    return ", ".join(f"`{name}`" for name in names[:6]) + (", …" if len(names) > 6 else "")
