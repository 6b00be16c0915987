"""Commands in a pod and connections to its ports: WebSockets of numbered channels to the API server.

One thread per connection reads; what is sent waits in a small pool. The subprotocols are Kubernetes' own
(``v5.channel.k8s.io`` tells the end of standard input, ``v4`` cannot).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import struct
import threading
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from paijupyter.backends.kubernetes.errors import KubeError

if TYPE_CHECKING:
    from paijupyter.backends.kubernetes.access import Access

STDIN, STDOUT, STDERR, STATUS, _CLOSE = 0, 1, 2, 3, 255
_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_FORWARD = ("v4.channel.k8s.io",)
_CONNECT = 15.0
_WAITING = 256  # frames that wait for the loop before the reader does
_PIECE = 32 * 1024


@dataclass(frozen=True, slots=True)
class Exited:
    """How a command ended: its exit code, and what the server says of it."""

    code: int
    message: str = ""


class Channels:
    """An open connection. Iterate it: ``(channel, bytes)`` until it ends."""

    def __init__(self, socket: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = socket
        self._loop = loop
        self._frames: deque[tuple[int, bytes]] = deque()
        self._room = threading.Semaphore(_WAITING)
        self._news = asyncio.Event()
        self._ended = False
        self._error: KubeError | None = None
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="kubernetes-send")
        threading.Thread(target=self._receive, name="channels", daemon=True).start()

    @property
    def can_close(self) -> bool:
        """Whether the end of standard input can be told."""
        return str(self._socket.subprotocol or "").startswith("v5")

    def __aiter__(self) -> AsyncIterator[tuple[int, bytes]]:
        return self._iterate()

    async def send(self, channel: int, data: bytes) -> None:
        """Send bytes on a channel.

        Raises:
            KubeError: the connection is gone.
        """
        for start in range(0, len(data), _PIECE):
            frame = bytes([channel]) + data[start : start + _PIECE]
            await self._loop.run_in_executor(self._sender, self._send, frame)

    async def end_input(self, channel: int = STDIN) -> None:
        """Tell that no more comes on a channel, where the server understands it."""
        if self.can_close:
            await self._loop.run_in_executor(self._sender, self._send, bytes([_CLOSE, channel]))

    async def close(self) -> None:
        """Break it off."""
        self._ended = True
        self._room.release()
        with contextlib.suppress(Exception):
            self._socket.sock.shutdown(2)
        self._sender.shutdown(wait=False)
        self._news.set()

    async def _iterate(self) -> AsyncIterator[tuple[int, bytes]]:
        while True:
            ended = self._ended  # before the frames: those that came first are among them then
            while self._frames:
                frame = self._frames.popleft()
                self._room.release()
                yield frame
            if ended:
                if self._error is not None:
                    raise self._error
                return
            self._news.clear()
            if not self._frames and not self._ended:
                await self._news.wait()

    def _send(self, frame: bytes) -> None:
        try:
            self._socket.send_binary(frame)
        except Exception as error:  # websocket-client raises its own, and whatever the socket does
            raise KubeError(0, "Unreachable", f"the connection to the pod broke: {error}") from error

    def _receive(self) -> None:
        import websocket

        try:
            while True:
                opcode, data = self._socket.recv_data()
                if opcode == websocket.ABNF.OPCODE_CLOSE:
                    break
                if data:
                    self._room.acquire()
                    if self._ended:
                        break
                    self._frames.append((data[0], bytes(data[1:])))
                    self._tell()
        except websocket.WebSocketConnectionClosedException:
            pass
        except Exception as error:
            if not self._ended:
                self._error = KubeError(0, "Unreachable", f"the connection to the pod broke: {error}")
        self._ended = True
        with contextlib.suppress(Exception):
            self._socket.close(timeout=1)
        # Where the server has said the farewell, `close` takes the socket for closed, which it is not.
        self._socket.shutdown()
        self._tell()

    def _tell(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads
            self._loop.call_soon_threadsafe(self._news.set)


def open_exec(
    access: Access, path: str, command: Sequence[str], *, stdin: bool, tty: bool, container: str
) -> Any:
    """Open the connection of a command. Blocking.

    Raises:
        KubeError: the server refused it, or cannot be reached.
    """
    query = [("container", container), ("stdout", "true"), ("stderr", "false" if tty else "true")]
    query += [("stdin", "true")] if stdin else []
    query += [("tty", "true")] if tty else []
    query += [("command", word) for word in command]
    return _connect(access, f"{path}?{urlencode(query)}", _PROTOCOLS)


def open_forward(access: Access, path: str, port: int) -> Any:
    """Open a connection to a port of a pod. Blocking; data is on channel 0, errors on channel 1."""
    return _connect(access, f"{path}?{urlencode({'ports': port})}", _FORWARD)


def exit_of(status: bytes) -> Exited:
    """Read what comes on the status channel.

    Raises:
        KubeError: the command was not started at all.
    """
    try:
        found: Mapping[str, Any] = json.loads(status)
    except ValueError:
        return Exited(1, status.decode("utf-8", "replace"))
    if found.get("status") == "Success":
        return Exited(0)
    for cause in (found.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return Exited(int(cause.get("message") or 1), str(found.get("message") or ""))
    reason = str(found.get("reason") or "InternalError")
    raise KubeError(int(found.get("code") or 500), reason, str(found.get("message") or ""))


def port_header(data: bytes) -> int | None:
    """Read the first frame of a forwarded channel: the port, as a check; None if it is none."""
    return struct.unpack("<H", data)[0] if len(data) == 2 else None


def _connect(access: Access, path: str, protocols: Sequence[str]) -> Any:
    import websocket

    parts = urlsplit(access.server)
    context = access.tls()
    options: dict[str, Any] = {"context": context} if context else {}
    if context and access.tls_server_name:
        options["server_hostname"] = access.tls_server_name
    socket: Any = websocket.WebSocket(sslopt=options, enable_multithread=True, skip_utf8_validation=True)
    proxy = urlsplit(access.proxy) if access.proxy else None
    try:
        socket.connect(
            f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}{parts.path}{path}",
            header=[f"{name}: {value}" for name, value in access.headers().items()],
            subprotocols=list(protocols),
            timeout=_CONNECT,
            suppress_origin=True,
            http_proxy_host=proxy.hostname if proxy else None,
            http_proxy_port=proxy.port if proxy else None,
        )
    except websocket.WebSocketBadStatusException as error:
        body = getattr(error, "resp_body", None) or str(error).encode()
        raise KubeError.from_answer(error.status_code, body) from error
    except ssl.SSLError as error:
        raise KubeError(0, "Tls", str(error)) from error
    except (websocket.WebSocketException, OSError) as error:
        raise KubeError(0, "Unreachable", str(error)) from error
    socket.settimeout(None)
    return socket
