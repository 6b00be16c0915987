"""Connections into pods leave no socket behind, whoever ends them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import websocket
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application
from tornado.websocket import WebSocketHandler

from paijupyter.backends.kubernetes.channels import STATUS, STDOUT, Channels

pytestmark = pytest.mark.asyncio


class Command(WebSocketHandler):
    """As the API server ends a command: its status, and the farewell."""

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        return subprotocols[0] if subprotocols else None

    def check_origin(self, origin: str) -> bool:
        return True

    async def open(self, *args: str, **kwargs: str) -> None:
        await self.write_message(bytes([STDOUT]) + b"hello", binary=True)
        if self.request.path == "/ends":
            await self.write_message(bytes([STATUS]) + b"{}", binary=True)
            self.close()


@contextlib.asynccontextmanager
async def opened(path: str) -> AsyncIterator[tuple[Channels, Any]]:
    server = HTTPServer(Application([(".*", Command)]))
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    url = f"ws://127.0.0.1:{sockets[0].getsockname()[1]}{path}"
    connection: Any = await asyncio.to_thread(
        websocket.create_connection, url, subprotocols=["v5.channel.k8s.io"], suppress_origin=True
    )
    connection.settimeout(None)
    socket = connection.sock  # before anybody reads: it may end at once
    try:
        yield Channels(connection, asyncio.get_running_loop()), socket
    finally:
        server.stop()
        await server.close_all_connections()


async def is_closed(socket: Any, until: Callable[..., Any]) -> None:
    await asyncio.to_thread(until, lambda: socket.fileno() == -1, 20, "the socket's end")


async def test_one_that_the_server_ends(until: Callable[..., Any]) -> None:
    async with opened("/ends") as (channels, socket):
        assert [frame async for frame in channels] == [(STDOUT, b"hello"), (STATUS, b"{}")]
        await channels.close()
        await is_closed(socket, until)


async def test_one_that_is_broken_off(until: Callable[..., Any]) -> None:
    async with opened("/goes-on") as (channels, socket):
        assert await channels.__aiter__().__anext__() == (STDOUT, b"hello")
        await channels.close()
        await is_closed(socket, until)
