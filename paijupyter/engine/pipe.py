"""Bytes from the event loop to a thread, with flow in both directions."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator

_HIGH_WATER = 4 * 1024 * 1024


class Pipe:
    """An upload on its way: the loop feeds it, a thread reads it as an iterator of chunks.

    The writer waits while the reader is behind. A reader that has failed is never waited for.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = threading.Condition()
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._broken = False
        self._room = asyncio.Event()
        self._room.set()

    async def feed(self, chunk: bytes) -> None:
        """Hand over one chunk; returns when there is room for the next."""
        with self._ready:
            if self._broken:
                return
            self._chunks.append(chunk)
            self._size += len(chunk)
            if self._size >= _HIGH_WATER:
                self._room.clear()
            self._ready.notify()
        await self._room.wait()

    def end(self) -> None:
        """Say that all bytes were handed over."""
        with self._ready:
            self._ended = True
            self._ready.notify()

    def break_off(self) -> None:
        """Say that the sender is gone, or that the reader does not read any more."""
        with self._ready:
            self._broken = True
            self._chunks.clear()
            self._ready.notify()
        self._loop.call_soon_threadsafe(self._room.set)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the chunks, in the reading thread.

        Raises:
            ConnectionAbortedError: if the sender is gone before the end.
        """
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._chunks or self._ended or self._broken)
                if self._broken:
                    raise ConnectionAbortedError("The upload was broken off.")
                if not self._chunks:
                    return
                chunk = self._chunks.popleft()
                self._size -= len(chunk)
                if self._size < _HIGH_WATER:
                    self._loop.call_soon_threadsafe(self._room.set)
            yield chunk
