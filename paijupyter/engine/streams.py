"""Answers that are sent while they come into being: logs, events, files.

A stream that ends by itself is closed properly; one that is cut (the engine ends, something fails halfway)
loses its connection without the final chunk, so that a client can tell the difference and resume.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from tornado.iostream import StreamClosedError
from tornado.web import RequestHandler

from paijupyter.engine import problems
from paijupyter.engine.route import LINES

T = TypeVar("T")
KEEP_ALIVE_SECONDS = 15.0
_FIRST_SECONDS = 0.2
_QUEUE = 16
_BATCH_BYTES = 256 * 1024


class Sender:
    """Sends the body of one answer piece by piece."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler
        self._writer: asyncio.Task[None] | None = None
        self._is_cut = False

    def cut(self) -> None:
        """End a stream now, without a proper end; harmless when none is open."""
        self._is_cut = True
        if self._writer is not None:
            self._writer.cancel()

    async def lines(self, source: AsyncIterator[Mapping[str, Any]]) -> None:
        """Send objects as NDJSON; a blank line every 15 s keeps the connection alive."""
        await self.send(source, LINES, _as_line, keep_alive=b"\n")

    async def raw(
        self, source: AsyncIterator[bytes], media: str, headers: Mapping[str, str], status: int = 200
    ) -> None:
        """Send bytes as they are."""
        self._handler.set_status(status)
        for name, value in headers.items():
            self._handler.set_header(name, value)
        await self.send(source, media, bytes)

    async def send(
        self,
        source: AsyncIterator[T],
        media: str,
        encode: Callable[[T], bytes],
        keep_alive: bytes = b"",
    ) -> None:
        """Relay a source to the client, no faster than the client reads."""
        self._handler.set_header("Content-Type", media)
        self._handler.set_header("X-Accel-Buffering", "no")
        queue: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(_QUEUE)
        reader = asyncio.create_task(_read(source, encode, queue))
        self._writer = asyncio.create_task(self._write(queue, keep_alive))
        try:
            await self._writer
        except (StreamClosedError, asyncio.CancelledError):
            self._drop()
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader

    async def _write(self, queue: asyncio.Queue[bytes | BaseException | None], keep_alive: bytes) -> None:
        pause = _FIRST_SECONDS
        started = False
        while True:
            try:
                item = await asyncio.wait_for(queue.get(), pause)
            except asyncio.TimeoutError:
                item = keep_alive if started else b""
            if self._is_cut:
                # Before Python 3.12 `wait_for` swallows a cancellation that meets an item.
                raise asyncio.CancelledError
            pause = KEEP_ALIVE_SECONDS
            if isinstance(item, BaseException):
                if not started:
                    raise item
                return self._fail(item, keep_alive)
            if item is None:
                return
            self._handler.write(item + _more(queue, len(item)))
            started = True
            await self._handler.flush()
            await asyncio.sleep(0)

    def _fail(self, error: BaseException, keep_alive: bytes) -> None:
        """Tell of a failure halfway: as a last line where lines are sent, else by cutting the stream."""
        document = problems.document(problems.as_error(error))
        if keep_alive:
            self._handler.write(_as_line({"problem": document}))
        else:
            self._drop()

    def _drop(self) -> None:
        connection = self._handler.request.connection
        stream = getattr(connection, "stream", None)
        if stream is not None:
            stream.close()


async def _read(
    source: AsyncIterator[T],
    encode: Callable[[T], bytes],
    queue: asyncio.Queue[bytes | BaseException | None],
) -> None:
    try:
        async for item in source:
            await queue.put(encode(item))
        await queue.put(None)
    except Exception as error:  # whatever a source raises belongs to the one who waits for its items
        await queue.put(error)
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


def _more(queue: asyncio.Queue[bytes | BaseException | None], size: int) -> bytes:
    """Take what is ready besides, so that many small pieces make one write."""
    ready = []
    while size < _BATCH_BYTES and not queue.empty():
        item = queue.get_nowait()
        if not isinstance(item, bytes):
            queue.put_nowait(item)  # it is the last one, so its place is kept
            break
        ready.append(item)
        size += len(item)
    return b"".join(ready)


def _as_line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
