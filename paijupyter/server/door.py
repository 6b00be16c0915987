"""The way to the engine: connect, starting it if need be, and exchange one request with flow both ways."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Protocol

from tornado.http1connection import HTTP1Connection, HTTP1ConnectionParameters
from tornado.httputil import HTTPHeaders, HTTPMessageDelegate, RequestStartLine, ResponseStartLine
from tornado.iostream import IOStream, StreamClosedError

from paijupyter import paths
from paijupyter.errors import PaiJupyterError

_ENDLESS = 2**62
_CHUNK = 256 * 1024


class Receiver(Protocol):
    """Takes an answer as it comes."""

    def head(self, status: int, headers: HTTPHeaders) -> None:
        """Take status and headers."""

    def data(self, chunk: bytes) -> Awaitable[None]:
        """Take a piece of the body; the next one comes when this is done."""


class Collector:
    """Takes a small answer as a whole."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""

    def head(self, status: int, headers: HTTPHeaders) -> None:
        """Take status and headers."""
        self.status = status

    async def data(self, chunk: bytes) -> None:
        """Take a piece of the body."""
        self.body += chunk


class Upstream:
    """One connection to the engine, or to a port of a task, for one request."""

    def __init__(self, stream: IOStream) -> None:
        self._stream = stream
        parameters = HTTP1ConnectionParameters(
            no_keep_alive=True, max_body_size=_ENDLESS, chunk_size=_CHUNK, max_header_size=_CHUNK
        )
        self._connection = HTTP1Connection(stream, True, parameters)

    @classmethod
    async def connect(cls, path: Path) -> Upstream:
        """Connect to a socket.

        Raises:
            StreamClosedError: if nobody listens there.
        """
        stream = IOStream(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        await stream.connect(str(path))
        return cls(stream)

    @classmethod
    async def connect_port(cls, port: int) -> Upstream:
        """Connect to a port of this host.

        Raises:
            StreamClosedError: if nobody listens there.
        """
        stream = IOStream(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        await stream.connect(("127.0.0.1", port))
        return cls(stream)

    async def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, receiver: Receiver
    ) -> bool:
        """Send a request and pass the answer on; say whether it came to its proper end."""
        lengths = {} if body is None else {"Content-Length": str(len(body))}
        await self.begin(method, target, {**headers, **lengths})
        if body:
            await self.write(body)
        return await self.finish(receiver)

    async def begin(self, method: str, target: str, headers: Mapping[str, str]) -> None:
        """Send the head of a request."""
        start = RequestStartLine(method, target, "")
        await self._connection.write_headers(start, HTTPHeaders({"Host": "localhost", **headers}))

    async def write(self, chunk: bytes) -> None:
        """Send a piece of the body; returns when there is room for the next."""
        await self._connection.write(chunk)

    async def finish(self, receiver: Receiver) -> bool:
        """End the request, receive the answer; say whether it came to its proper end."""
        self._connection.finish()
        relay = _Relay(receiver, self)
        await self._connection.read_response(relay)
        self.close()
        return relay.complete

    def close(self) -> None:
        """Hang up; a receiving :meth:`finish` returns."""
        self._stream.close()


class _Relay(HTTPMessageDelegate):
    def __init__(self, receiver: Receiver, upstream: Upstream) -> None:
        self._receiver = receiver
        self._upstream = upstream
        self.complete = False

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        if isinstance(start_line, ResponseStartLine):
            self._receiver.head(start_line.code, headers)
        return None

    async def data_received(self, chunk: bytes) -> None:
        try:
            await self._receiver.data(chunk)
        except StreamClosedError:
            self._upstream.close()  # whom we receive it for is gone
        # A stream that is always ready would otherwise keep the loop from everybody else.
        await asyncio.sleep(0)

    def finish(self) -> None:
        self.complete = True


class Door:
    """Finds the engine for the handlers; starts it when somebody asks for the first time."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._greeted = False

    async def open(self) -> Upstream:
        """Return a connection to the engine.

        Raises:
            PaiJupyterError: with status 503, if there is no engine and none can be started.
        """
        upstream = await _reach() if self._greeted else None
        if upstream is None:
            async with self._lock:  # many may come at once; one of them starts it
                upstream = await _reach() if self._greeted else None
                if upstream is None:
                    await asyncio.to_thread(_start)
                    self._greeted = True
                    upstream = await _reach()
        if upstream is None:
            raise PaiJupyterError(
                "engine-failed", "The engine ended just now.", "Try again; engine.log may say why.", 503
            )
        return upstream


async def _reach() -> Upstream | None:
    try:
        return await Upstream.connect(paths.engine_socket())
    except (OSError, StreamClosedError):
        return None


def _start() -> None:
    """Start the engine if none runs, replace one that is older; off the loop."""
    from paijupyter.client.client import JobsClient

    try:
        JobsClient.connect()
    except PaiJupyterError as error:
        raise PaiJupyterError(error.code, error.message, error.hint, 503) from error
