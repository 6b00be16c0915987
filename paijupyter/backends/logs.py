"""This host's copy of a task's log from a byte offset, followed until the task has ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

_CHUNK = 2**18  # bytes of one piece
_POLL = (0.01, 0.05)  # seconds between looks: after news, and the longest
_SLOWER = 1.03  # by so much is each look later than the one before: the first line of a new task comes soon


async def follow(log: Path, offset: int, has_ended: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield what there is, then what comes, until the task has ended and all of it was yielded.

    Args:
        log: the file; it need not exist yet.
        offset: where to begin, in bytes.
        has_ended: says whether nothing will be written any more.
    """
    delay = _POLL[0]
    while True:
        # Asked before the read: what was written before the end is then surely read.
        ended = has_ended()
        piece = _read(log, offset)
        if piece:
            offset += len(piece)
            delay = _POLL[0]
            yield piece
        elif ended:
            return
        else:
            await asyncio.sleep(delay)
            delay = min(delay * _SLOWER, _POLL[1])


def _read(log: Path, offset: int) -> bytes:
    try:
        descriptor = os.open(log, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        return os.pread(descriptor, _CHUNK, offset)
    finally:
        os.close(descriptor)
