"""A small API server on loopback that answers what a test scripts: cut streams, 410, 429, expired tokens.

What Kubernetes itself does is tested against a real one (tests/cluster).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Request:
    """What came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    """Writes an answer by hand."""

    writer: asyncio.StreamWriter

    def start(self, status: int = 200, content_type: str = "application/json", **headers: str) -> None:
        """Begin a chunked answer."""
        lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def piece(self, data: bytes | dict[str, Any]) -> None:
        """Send one chunk: bytes, or a watch event as a line."""
        content = data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n"
        self.writer.write(b"%x\r\n%s\r\n" % (len(content), content))
        await self.writer.drain()

    async def end(self) -> None:
        """End the answer properly."""
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    def cut(self) -> None:
        """Break the connection off."""
        self.writer.transport.abort()

    async def json(self, value: Any, status: int = 200, **headers: str) -> None:
        """Send a whole answer."""
        content = json.dumps(value).encode()
        lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {each}" for name, each in headers.items()]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + content)
        await self.writer.drain()


Answer = Callable[[Request, Reply], Awaitable[None]]


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    """Return a Status object."""
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


@dataclass
class ApiServer:
    """The server: ``answers`` by "METHOD path"; a list is used up one by one, its last for ever."""

    answers: dict[str, Answer | list[Answer]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    _server: asyncio.Server | None = None
    _busy: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen, on the port it had before if it had one."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Go away and cut everybody off."""
        assert self._server
        self._server.close()
        for task in list(self._busy):
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    def count(self, what: str) -> int:
        """Say how often "METHOD path" was asked."""
        return sum(f"{each.method} {each.path}" == what for each in self.requests)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._busy.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while True:
                    await self._answer(await _read(reader), Reply(writer))
        finally:
            self._busy.discard(task)
            writer.transport.abort()

    async def _answer(self, request: Request, reply: Reply) -> None:
        self.requests.append(request)
        found = self.answers.get(f"{request.method} {request.path}")
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        if found is None:
            await reply.json(status(404, "NotFound", f"{request.path} not found"), 404)
        else:
            await found(request, reply)


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split()
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)


@contextlib.asynccontextmanager
async def serving(answers: dict[str, Answer | list[Answer]]) -> AsyncIterator[ApiServer]:
    """Run a server for a test."""
    server = ApiServer(answers)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def kubeconfig(folder: Path, url: str, token: str = "t0k", namespace: str = "team") -> str:
    """Write a kubeconfig and return its path."""
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": token}}],
                "contexts": [
                    {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": namespace}}
                ],
            }
        )
    )
    return str(path)


def answering(value: Any, code: int = 200, **headers: str) -> Answer:
    """Make an answer of a JSON value."""

    async def answer(_: Request, reply: Reply) -> None:
        await reply.json(value, code, **headers)

    return answer
