"""Threads that read ahead: results in order, and never more than a few in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

WORKERS = min(4, os.cpu_count() or 1)
_AHEAD = WORKERS + 2


def in_order(
    pool: ThreadPoolExecutor, function: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[_Result]:
    """Yield ``function`` of each item in order, working a few items ahead; an interrupt ends it at once."""
    running: deque[Future[_Result]] = deque()
    try:
        for item in items:
            running.append(pool.submit(function, item))
            if len(running) > _AHEAD:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()
