"""Ports of running tasks, opened below ``<base_url>/paijupyter/v1/jobs/<job>/ports/<task>/<label>/``.

Which port that is says the engine, for each request anew: one that it has given to this task, while the task
runs. There is no way to name a host or a number. To look is to use somebody's program, so every method needs
the right to ``execute``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable
from http.client import responses
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado import web
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import HTTPHeaders
from tornado.iostream import StreamClosedError
from tornado.websocket import (
    WebSocketClientConnection,
    WebSocketClosedError,
    WebSocketHandler,
    websocket_connect,
)

from paijupyter.errors import PaiJupyterError
from paijupyter.server import port_headers
from paijupyter.server.door import Upstream
from paijupyter.server.port_headers import Place
from paijupyter.server.port_lookup import number_of, silent

RESOURCE = "paijupyter"
BODY_LIMIT_BYTES = 64 * 1024**3
_PREFIX = re.compile(r"/paijupyter/v1/jobs/[^/]+/ports/[^/]+/[^/]+")
_PATIENCE = 10.0  # seconds for a program to accept a connection
_NO_CODES = frozenset({None, 1005, 1006, 1015})  # of closed connections, which nobody may send


@web.stream_request_body
class PortHandler(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """Passes requests and websockets on to a port, and answers and messages back, as they come."""

    _upstream: Upstream | None = None
    _socket: WebSocketClientConnection | None = None
    _pump: asyncio.Task[None] | None = None
    _place: Place | None = None
    _gone = False
    _broken = False

    async def prepare(self) -> None:
        """Authenticate and authorise before anything is passed on; begin the program's request."""
        await ensure_async(super().prepare())
        user = self.current_user
        if not user and self._is_websocket:
            raise web.HTTPError(403)  # nobody can log in there
        if not user or not await ensure_async(self.authorizer.is_authorized(self, user, "execute", RESOURCE)):
            return  # the method's decorators refuse it
        self._refuse_other_sites()
        connection: Any = self.request.connection
        connection.set_max_body_size(BODY_LIMIT_BYTES)
        prefix, inside = self._split()
        if not inside:
            return
        port = await number_of(self.settings["paijupyter_door"], *self.path_args[:3])
        self._place = Place(prefix, port, self.request.protocol, self.request.host)
        if not self._is_websocket:
            await self._begin(self._place)

    async def data_received(self, chunk: bytes) -> None:
        """Pass a piece of the body on (called by tornado)."""
        if self._upstream is None or self._broken:
            return
        try:
            await self._upstream.write(chunk)
        except StreamClosedError:
            self._broken = True  # the program has heard enough; its answer may say why

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def get(self, *args: str) -> None:  # type: ignore[override]
        """Pass on a request, or open a websocket."""
        if self._place is not None and self._is_websocket:
            origin = self.get_origin()
            if origin is not None and not self.check_origin(origin):
                raise web.HTTPError(403, "The websocket is opened by a page of another site.")
            await self._connect(self._place)
            await WebSocketHandler.get(self, *args)
            if self.ws_connection is None and self._socket is not None:
                self._socket.close()  # the handshake with the browser failed
        else:
            await self._pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def head(self, *_: str) -> None:
        """Pass on."""
        await self._pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Pass on."""
        await self._pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def put(self, *_: str) -> None:
        """Pass on."""
        await self._pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def patch(self, *_: str) -> None:
        """Pass on."""
        await self._pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def delete(self, *_: str) -> None:
        """Pass on."""
        await self._pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def options(self, *_: str) -> None:
        """Pass on."""
        await self._pass_on()

    # -- requests ---------------------------------------------------------------------------------------

    async def _begin(self, place: Place) -> None:
        try:
            self._upstream = await asyncio.wait_for(Upstream.connect_port(place.port), _PATIENCE)
            headers = port_headers.up(self.request.headers, place, has_token=self._has_token)
            if self.request.headers.get("Transfer-Encoding"):
                headers.pop("Content-Length", None)
            await self._upstream.begin(self.request.method or "GET", self._target(), headers)
        except (OSError, StreamClosedError, asyncio.TimeoutError):
            raise silent(*self.path_args[1:3]) from None

    async def _pass_on(self) -> None:
        if self._place is None:
            # So that relative links of the program's first page lead below its own path.
            text = port_headers.query(self.request.query, has_token=self._has_token)
            self.redirect(f"{self.request.path}/" + (f"?{text}" if text else ""))
            return
        if self._upstream is None:
            raise web.HTTPError(403)
        complete = False
        with contextlib.suppress(StreamClosedError):
            complete = await self._upstream.finish(_Answer(self))
        if complete or self._gone:
            return
        if not self._headers_written:
            self.clear()
            raise silent(*self.path_args[1:3])
        # Headers are out: only a broken connection tells the browser that this is not all.
        stream = getattr(self.request.connection, "stream", None)
        if stream is not None:
            stream.close()

    def head_of_answer(self, status: int, headers: HTTPHeaders) -> None:
        """Take status and headers from the program."""
        place = self._place
        if place is None:
            return
        self.set_status(status, responses.get(status, "Unknown"))
        self.clear_header("Content-Type")
        fresh: set[str] = set()
        for name, value in port_headers.down(headers, place):
            if name in fresh:
                self.add_header(name, value)
            else:
                self.set_header(name, value)
            fresh.add(name)

    async def data(self, chunk: bytes) -> None:
        """Take a piece of the body from the program; wait until the browser has it."""
        if self._gone:
            raise StreamClosedError
        self.write(chunk)
        await self.flush()

    # -- websockets -------------------------------------------------------------------------------------

    async def _connect(self, place: Place) -> None:
        headers = port_headers.up(self.request.headers, place, has_token=self._has_token)
        request = HTTPRequest(
            f"ws://{place.address}{self._target()}", headers=headers, connect_timeout=_PATIENCE
        )
        asked = self.request.headers.get("Sec-WebSocket-Protocol", "")
        protocols = [each.strip() for each in asked.split(",") if each.strip()]
        try:
            self._socket = await websocket_connect(request, subprotocols=protocols or None)
        except HTTPClientError as error:
            if error.code == 599:
                raise silent(*self.path_args[1:3]) from None
            raise web.HTTPError(error.code, "The program of the task refused the websocket.") from None
        except (OSError, StreamClosedError, WebSocketClosedError):
            raise silent(*self.path_args[1:3]) from None

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """Choose what the program has chosen (called by tornado)."""
        return self._socket.selected_subprotocol if self._socket else None

    async def open(self, *args: str, **kwargs: str) -> None:
        """Begin to pass messages of the program on (called by tornado)."""
        super().open()
        self._pump = asyncio.create_task(self._messages())

    async def on_message(self, message: str | bytes) -> None:
        """Pass a message on; the next one comes when this is done (called by tornado)."""
        if self._socket is not None:
            with contextlib.suppress(WebSocketClosedError):
                await self._socket.write_message(message, isinstance(message, bytes))

    def on_close(self) -> None:
        """The browser is gone: hang up on the program (called by tornado)."""
        if self._socket is not None:
            code = self.close_code
            self._socket.close(None if code in _NO_CODES else code, self.close_reason)
        if self._pump is not None:
            self._pump.cancel()

    async def _messages(self) -> None:
        socket = self._socket
        if socket is None:
            return
        with contextlib.suppress(WebSocketClosedError, StreamClosedError):
            while (message := await socket.read_message()) is not None:
                await self.write_message(message, isinstance(message, bytes))
        code = socket.close_code
        self.close(None if code in _NO_CODES else code, socket.close_reason)

    # -- whose it is ------------------------------------------------------------------------------------

    @property
    def _is_websocket(self) -> bool:
        return self.request.headers.get("Upgrade", "").lower() == "websocket"

    @property
    def _has_token(self) -> bool:
        """Whether the Jupyter server's own token came with the request."""
        return bool(self.token_authenticated)

    def _split(self) -> tuple[str, str]:
        """Return the path of the port, and the path on it; both as they were written."""
        found = _PREFIX.search(self.request.path)
        if found is None:
            raise web.HTTPError(404)
        return self.request.path[: found.end()], self.request.path[found.end() :]

    def _target(self) -> str:
        text = port_headers.query(self.request.query, has_token=self._has_token)
        return self._split()[1] + (f"?{text}" if text else "")

    def check_xsrf_cookie(self) -> None:
        """Let pages of a program send forms: they know no token of ours, so their origin must be ours."""
        if self.request.method not in ("GET", "HEAD", "OPTIONS") and not self._is_ours():
            raise web.HTTPError(403, "The request comes from another site.")

    def _is_ours(self) -> bool:
        if not hasattr(self, "_jupyter_current_user") or self.token_authenticated:
            return True  # too early, it is asked again; or it has a token, which other sites do not know
        if self.settings.get("disable_check_xsrf", False):
            return True
        origin = self.request.headers.get("Origin")
        if origin is None:
            return bool(self.check_referer())
        return urlsplit(origin).netloc.lower() == self.request.host.lower()

    def _refuse_other_sites(self) -> None:
        """Other sites may link to a page of a program, and use nothing of it."""
        headers = self.request.headers
        if headers.get("Sec-Fetch-Site") != "cross-site" or self.token_authenticated:
            return
        if headers.get("Sec-Fetch-Mode") != "navigate":
            raise web.HTTPError(403, "The request comes from another site.")

    # -- the end ----------------------------------------------------------------------------------------

    def on_connection_close(self) -> None:
        """The browser is gone: hang up on the program."""
        super().on_connection_close()
        self._gone = True
        if self._upstream is not None:
            self._upstream.close()

    def on_finish(self) -> None:
        """Let go of the connection to the program."""
        super().on_finish()
        if self._upstream is not None and not self._is_websocket:
            self._upstream.close()

    def compute_etag(self) -> None:
        """Make no etag: the program has its own."""

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with a problem document, or with a sentence where a person looks (called by tornado)."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        if not isinstance(error, PaiJupyterError):
            said = (error.log_message if isinstance(error, web.HTTPError) else "") or responses.get(
                status_code, ""
            )
            error = PaiJupyterError(f"http-{status_code}", said or "Failed.", "", status_code)
        self.set_status(error.status)
        if "text/html" in self.request.headers.get("Accept", ""):
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(f"{error.message} {error.hint}".strip() + "\n")
        else:
            self.set_header("Content-Type", "application/problem+json")
            self.finish(json.dumps(error.to_problem_json()))

    def log_exception(
        self,
        typ: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Log what nobody foresaw; an error for people is told to people."""
        if not isinstance(value, PaiJupyterError):
            super().log_exception(typ, value, tb)


class _Answer:
    """Takes an answer for a handler whose own ``head`` is a method of HTTP."""

    def __init__(self, handler: PortHandler) -> None:
        self._handler = handler

    def head(self, status: int, headers: HTTPHeaders) -> None:
        """Take status and headers."""
        self._handler.head_of_answer(status, headers)

    def data(self, chunk: bytes) -> Awaitable[None]:
        """Take a piece of the body."""
        return self._handler.data(chunk)


RULES = [(r"/paijupyter/v1/jobs/([^/]+)/ports/([^/]+)/([^/]+)(/.*)?", PortHandler)]
