"""Bytes from a thread that reads a socket to the event loop, in pieces as large as there is time for."""

from __future__ import annotations

import asyncio
import threading

_ROOM = 4 * 1024 * 1024  # bytes that wait for the loop before the thread does


class Pipe:
    """One thread writes, one coroutine reads. The loop is woken once for all that came meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Condition()
        self._buffer = bytearray()
        self._closed = False
        self._ended = False
        self._error: BaseException | None = None
        self._wake = asyncio.Event()

    def write(self, data: bytes) -> bool:
        """Pass on data; waits while the reader is far behind. False once nobody reads (for the thread)."""
        with self._lock:
            self._lock.wait_for(lambda: self._closed or len(self._buffer) < _ROOM)
            if self._closed:
                return False
            was_empty = not self._buffer
            self._buffer += data
        return self._rouse() if was_empty else True

    def end(self, error: BaseException | None = None) -> None:
        """Say that no more comes, and why (for the thread)."""
        with self._lock:
            self._ended, self._error = True, error
        self._rouse()

    async def read(self) -> bytes:
        """Return all that has come since the last call, at least one byte; b"" at the end.

        Raises:
            BaseException: what the thread gave to :meth:`end`, after the last byte.
        """
        while True:
            await self._wake.wait()
            with self._lock:
                self._wake.clear()
                data = bytes(self._buffer)
                self._buffer.clear()
                self._lock.notify()
                if data:
                    if self._ended:
                        self._wake.set()
                    return data
                if self._ended:
                    self._wake.set()
                    if self._error is not None:
                        raise self._error
                    return b""

    def close(self) -> None:
        """Stop reading: the next write says False."""
        with self._lock:
            self._closed = True
            self._buffer.clear()
            self._lock.notify()

    def _rouse(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._wake.set)
        except RuntimeError:  # the loop is closed: nobody will read
            return False
        return True
