"""The one request handler: finds the route's row, reads the request by it, sends reply or problem."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import tornado.web

from paijupyter.engine import problems
from paijupyter.engine.call import Call, parse_body, parse_path, parse_query
from paijupyter.engine.openpai.answers import BASE, reply_of
from paijupyter.engine.pipe import Pipe
from paijupyter.engine.route import JSON, PROBLEM, Reply, Route
from paijupyter.engine.streams import Sender
from paijupyter.errors import PaiJupyterError

if TYPE_CHECKING:
    from paijupyter.engine.process import Engine

BODY_LIMIT_BYTES = 64 * 1024 * 1024
UPLOAD_LIMIT_BYTES = 64 * 1024**3
_WORTH_READING = 1024 * 1024  # bytes of a refused body that are read all the same
_HOLES = re.compile(r"\{(\w+)\}")


def application(engine: Engine, routes: Iterable[Route]) -> tornado.web.Application:
    """Build the application of a route table."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, {})[route.method] = route
    rules = [
        (_pattern(path), RouteHandler, {"engine": engine, "methods": methods, "names": _names(path)})
        for path, methods in by_path.items()
    ]
    nowhere = {"engine": engine, "methods": {}, "names": ()}
    return tornado.web.Application(rules, default_handler_class=RouteHandler, default_handler_args=nowhere)


def _pattern(path: str) -> str:
    holes = {"path": "(.+)"}
    return re.sub(r"\\\{(\w+)\\\}", lambda hole: holes.get(hole[1], "([^/]+)"), re.escape(path)) + "$"


def _names(path: str) -> tuple[str, ...]:
    return tuple(_HOLES.findall(path))


@tornado.web.stream_request_body
class RouteHandler(tornado.web.RequestHandler):
    """Answers all methods of one path."""

    def initialize(self, engine: Engine, methods: Mapping[str, Route], names: tuple[str, ...]) -> None:
        """Take the path's rows of the table (called by tornado)."""
        self._engine = engine
        self._methods = methods
        self._names = names
        self._raw = bytearray()
        self._received = 0
        self._limit = BODY_LIMIT_BYTES
        self._pipe: Pipe | None = None
        self._upload: asyncio.Task[Reply | None] | None = None
        self._sender = Sender(self)
        self._arrived = asyncio.Event()
        self._late: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Check all that can be checked before the body arrives; start an upload."""
        route = self._route()
        if route.wakes:
            self._engine.enter(self._sender)
        self._call = Call(
            service=self._engine.service,
            manifests=self._engine.manifests,
            engine=self._engine.facts,
            path=parse_path(self._names, tuple(self.path_args)),
            query=parse_query(self.request.query_arguments, route.query, route.others),
            headers=self.request.headers,
            sender=self._sender,
            end_engine=self._engine.hand_over,
        )
        self._limit = UPLOAD_LIMIT_BYTES if route.upload else BODY_LIMIT_BYTES
        if self._announced > self._limit:
            raise self._too_large()
        if route.upload:
            self._pipe = Pipe()
            self._call.chunks = iter(self._pipe)
            self._upload = asyncio.create_task(self._receive(route, self._pipe))

    async def data_received(self, chunk: bytes) -> None:
        """Take a piece of the body."""
        self._received += len(chunk)
        if self._received >= self._announced:
            self._arrived.set()
        if self._received > self._limit:
            self._raw.clear()
            if self._pipe is not None:
                self._pipe.close()
        elif self._pipe is not None:
            await self._pipe.feed(chunk)
        else:
            self._raw += chunk

    def on_connection_close(self) -> None:
        """The client is gone: end what works for it alone."""
        super().on_connection_close()
        if self._late is not None:
            self._late.cancel()
        if self._upload is not None:
            self._upload.add_done_callback(_forget)
        if self._pipe is not None:
            self._pipe.break_off()
        self._sender.cut()
        self._engine.leave(self._sender)

    def finish(self, chunk: str | bytes | dict[str, Any] | None = None) -> asyncio.Future[None]:
        """Send the answer; a refusal waits until a small body has arrived.

        Tornado closes a connection that has a part of its body unread, and with it the answer may be lost.
        """
        if self._late is not None:
            return self._late
        if not self._received < self._announced <= _WORTH_READING:
            return super().finish(chunk)
        if chunk is not None:
            self.write(chunk)
        self._late = asyncio.ensure_future(self._finish_late())
        return self._late

    async def _finish_late(self) -> None:
        await self._arrived.wait()
        await super().finish()

    def on_finish(self) -> None:
        """Count the request as done."""
        self._engine.leave(self._sender)

    async def _answer(self, *_: str) -> None:
        route = self._route()
        if self._received > self._limit:
            raise self._too_large()
        if self._upload is not None and self._pipe is not None:
            self._pipe.end()
            reply = await self._upload
        else:
            if route.body is not None:
                self._call.body = parse_body(bytes(self._raw), route.body)
                self._raw.clear()
            reply = await route.handler(self._call)
        if reply is not None:
            self._send(reply)

    get = head = post = put = patch = delete = options = _answer

    async def _receive(self, route: Route, pipe: Pipe) -> Reply | None:
        try:
            return await route.handler(self._call)
        finally:
            pipe.close()

    def _send(self, reply: Reply) -> None:
        self.set_status(reply.status)
        if reply.status == 204:
            return
        self.set_header("Content-Type", reply.media)
        self.set_header("Cache-Control", "no-store")
        if reply.media in {JSON, PROBLEM}:
            self.write(
                json.dumps(reply.body, ensure_ascii=False, separators=(",", ":"), default=str).encode()
            )
        else:
            self.write(reply.body)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Send the problem document of whatever went wrong (called by tornado)."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else tornado.web.HTTPError(status_code)
        problem = problems.as_error(error)
        self._send(self._refusal(problem))
        if problem.status == 405:
            self.set_header("Allow", ", ".join(self._methods))
        self.finish()

    def log_exception(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Log nothing here: what nobody foresaw is logged where it becomes a problem."""

    def compute_etag(self) -> None:
        """Make no etag of answers: nobody asks for them, and hashing costs."""

    def _refusal(self, problem: PaiJupyterError) -> Reply:
        if self.request.path.startswith(f"{BASE}/"):
            return reply_of(problem, self.request.path)
        return Reply(problems.document(problem), problem.status, PROBLEM)

    @property
    def _announced(self) -> int:
        """Bytes of the body, as far as the request says."""
        length = self.request.headers.get("Content-Length", "0")
        return int(length) if length.isdigit() else 0

    def _route(self) -> Route:
        method = self.request.method or ""
        if not self._methods:
            raise PaiJupyterError(
                "no-such-route",
                f"The path {self.request.path} is not part of this API.",
                "GET /v1/openapi.json lists the paths.",
                404,
            )
        if method not in self._methods:
            raise PaiJupyterError(
                "http-405",
                f"The method {method} is not allowed here.",
                f"Use {', '.join(self._methods)}.",
                405,
            )
        return self._methods[method]

    def _too_large(self) -> PaiJupyterError:
        return PaiJupyterError(
            "too-large", f"The request's body is larger than {self._limit} bytes.", "Send less.", 413
        )


def _forget(task: asyncio.Task[Reply | None]) -> None:
    """Take note of a task's end that nobody waits for any more."""
    if not task.cancelled():
        task.exception()
