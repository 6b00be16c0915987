"""Bytes from the event loop to a thread, with flow in both directions."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator

_HIGH_WATER = 4 * 1024 * 1024


class Pipe:
    """An upload on its way: the loop feeds it, a thread reads it as an iterator of chunks.

    The writer waits while the reader is behind. A reader that has failed is never waited for. What had come
    when the sender went is still read: an upload goes on behind it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = threading.Condition()
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._gone = False
        self._closed = False
        self._room = asyncio.Event()
        self._room.set()

    async def feed(self, chunk: bytes) -> None:
        """Hand over one chunk; returns when there is room for the next."""
        with self._ready:
            if self._gone or self._closed:
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
        """Say that the sender is gone before the end."""
        with self._ready:
            self._gone = True
            self._ready.notify()
        self._loop.call_soon_threadsafe(self._room.set)

    def close(self) -> None:
        """Say that nothing is read any more; what is still there is let go."""
        with self._ready:
            self._closed = True
            self._chunks.clear()
            self._ready.notify()
        self._loop.call_soon_threadsafe(self._room.set)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the chunks, in the reading thread.

        Raises:
            ConnectionAbortedError: if the sender is gone before the end, after all that had come.
        """
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._chunks or self._ended or self._gone or self._closed)
                if not self._chunks:
                    if self._ended and not self._closed:
                        return
                    raise ConnectionAbortedError("The upload was broken off.")
                chunk = self._chunks.popleft()
                self._size -= len(chunk)
                if self._size < _HIGH_WATER:
                    self._loop.call_soon_threadsafe(self._room.set)
            yield chunk
