"""The handlers: who may do what, and on to the engine.

The decorator of jupyter-server keeps the action and resource of its first call, so each is given explicitly.
Its actions: ``read`` to look, ``write`` to change, ``execute`` to run code.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlencode

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web
from tornado.httputil import HTTPHeaders
from tornado.iostream import StreamClosedError

from paijupyter.errors import PaiJupyterError
from paijupyter.server.contents import folder_of, interpreter_of, place_of
from paijupyter.server.door import Door, Upstream

RESOURCE = "paijupyter"
UPLOAD_LIMIT_BYTES = 64 * 1024**3
_UP = ("Content-Type", "Range", "If-Range")
_DOWN = (
    "Content-Type",
    "Content-Length",
    "Content-Range",
    "Accept-Ranges",
    "ETag",
    "Allow",
    "Cache-Control",
    "X-Accel-Buffering",
    "X-Log-Attempt",
    "X-Log-Offset",
    "X-Log-Size",
)
_OURS = {"token", "no_track_activity", "_xsrf"}


class PassOn(APIHandler):
    """Passes a request on to the engine, and the answer back, both unchanged but for contents paths."""

    auth_resource = RESOURCE
    _upstream: Upstream | None = None
    _gone = False

    @property
    def _track_activity(self) -> bool:
        """Whether the request counts as activity: looking does not."""
        return self.request.method not in {"GET", "HEAD"}

    @property
    def content_security_policy(self) -> str:
        """What outputs of a job may do in a browser: nothing."""
        return f"{super().content_security_policy}; sandbox"

    async def pass_on(self, body: bytes | None = None) -> None:
        """Exchange this request with the engine."""
        method = self.request.method or "GET"
        complete = await self._exchange(method, body)
        if not complete and method == "GET" and not self._headers_written and not self._gone:
            complete = await self._exchange(method, body)  # the engine was just about to end
        self.conclude(complete)

    async def _exchange(self, method: str, body: bytes | None) -> bool:
        self._upstream = await self._door.open()
        try:
            return await self._upstream.exchange(method, self.target(), self.up_headers(), body, self)
        except StreamClosedError:
            self._upstream.close()
            return False

    def target(self) -> str:
        """Return path and query for the engine."""
        path = self.request.path[len(self.base_url.rstrip("/") + "/paijupyter") :]
        given = parse_qsl(self.request.query, keep_blank_values=True)
        query = [
            (name, self._engine_value(name, value)) for name, value in given if not _is_ours(name, value)
        ]
        return f"{path}?{urlencode(query)}" if query else path

    def up_headers(self) -> dict[str, str]:
        """Return the headers that are the engine's business; cookies and tokens are not."""
        return {name: self.request.headers[name] for name in _UP if name in self.request.headers}

    def head(self, status: int, headers: HTTPHeaders) -> None:
        """Take status and headers from the engine."""
        self.set_status(status)
        for name in _DOWN:
            if name in headers:
                self.set_header(name, headers[name])
        if status == 200 and "Content-Length" not in headers:
            self.flush()  # a stream: whoever follows it is told at once that it is open

    async def data(self, chunk: bytes) -> None:
        """Take a piece of the body from the engine; wait until the browser has it."""
        if self._gone:
            raise StreamClosedError
        self.write(chunk)
        await self.flush()

    def conclude(self, complete: bool) -> None:
        """End the answer as the engine ended its own."""
        if complete or self._gone:
            return
        if not self._headers_written:
            self.clear()
            raise PaiJupyterError(
                "engine-lost",
                "The engine ended before it answered.",
                "Try again; engine.log may say why.",
                503,
            )
        # Headers are out: only a broken connection tells the client that this is not all.
        stream = getattr(self.request.connection, "stream", None)
        if stream is not None:
            stream.close()

    def contents_request(self) -> bytes:
        """Return the body with the contents paths of its context made into paths of this host."""
        return rewritten(self.request.body, self._rewrite_context)

    def on_connection_close(self) -> None:
        """The browser is gone: hang up on the engine."""
        super().on_connection_close()
        self._gone = True
        if self._upstream is not None:
            self._upstream.close()

    def finish(self, *args: Any, **kwargs: Any) -> asyncio.Future[None]:
        """Finish with the content type that the answer has."""
        kwargs.setdefault("set_content_type", self._headers.get("Content-Type", "application/json"))
        return super().finish(*args, **kwargs)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with a problem document (called by tornado)."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        if not isinstance(error, PaiJupyterError):
            error = _problem_of(error, status_code)
        self.set_status(error.status)
        self.finish(json.dumps(error.to_problem_json()), set_content_type="application/problem+json")

    def log_exception(
        self,
        typ: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Log what nobody foresaw; an error for people is told to people."""
        if not isinstance(value, PaiJupyterError):
            super().log_exception(typ, value, tb)

    @property
    def _door(self) -> Door:
        door: Door = self.settings["paijupyter_door"]
        return door

    def _engine_value(self, name: str, value: str) -> str:
        return str(folder_of(self.contents_manager, value)) if name == "folder" else value

    def _rewrite_context(self, body: dict[str, Any]) -> None:
        context = body.get("context")
        if not isinstance(context, dict):
            return
        if isinstance(context.get("folder"), str):
            context["folder"] = str(folder_of(self.contents_manager, context["folder"]))
        if isinstance(context.get("notebook"), str):
            context["notebook"] = str(place_of(self.contents_manager, context["notebook"]))
        kernelspec = context.pop("kernelspec", None)
        if isinstance(kernelspec, str) and not context.get("python"):
            context["python"] = interpreter_of(self.kernel_spec_manager, kernelspec)


class AnyHandler(PassOn):
    """All routes that need nothing special."""

    @web.authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, *_: str) -> None:
        """Look."""
        await self.pass_on()

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Change."""
        await self.pass_on(self.request.body)

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def put(self, *_: str) -> None:
        """Store."""
        await self.pass_on(self.request.body)

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def delete(self, *_: str) -> None:
        """Remove."""
        await self.pass_on()


class ProfilesHandler(PassOn):
    """Profiles. Where and how jobs run is what a profile says, so changing one is like running code."""

    @web.authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, *_: str) -> None:
        """Look."""
        await self.pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Add, edit, choose or test."""
        await self.pass_on(self.request.body)

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def delete(self, *_: str) -> None:
        """Remove."""
        await self.pass_on()


class JobsHandler(PassOn):
    """The list of jobs, and submitting one."""

    @web.authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, *_: str) -> None:
        """List."""
        await self.pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Submit."""
        await self.pass_on(self.contents_request())


class AgainHandler(PassOn):
    """Running a job again, or a command in one that runs."""

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Retry, clone, or give what a waiting job lacks."""
        await self.pass_on(self.request.body)


class QuestionHandler(PassOn):
    """Questions that come with a document and change nothing."""

    @web.authenticated
    @authorized("read", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Plan, check or edit a text."""
        await self.pass_on(self.contents_request())


class PackagesHandler(PassOn):
    """Beginning a package: a manifest, or a folder of this server."""

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Begin."""
        await self.pass_on(rewritten(self.request.body, self._rewrite_folder))

    def _rewrite_folder(self, body: dict[str, Any]) -> None:
        if isinstance(body.get("folder"), str):
            body["folder"] = str(folder_of(self.contents_manager, body["folder"]))


class NotebookHandler(PassOn):
    """The job document of a notebook of this server."""

    @web.authenticated
    @authorized("read", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Read the notebook, which must lie below the server's root."""
        await self.pass_on(rewritten(self.request.body, self._rewrite_places))

    def _rewrite_places(self, body: dict[str, Any]) -> None:
        if isinstance(body.get("notebook"), str):
            body["notebook"] = str(place_of(self.contents_manager, body["notebook"]))
        if isinstance(body.get("folder"), str):
            body["folder"] = str(folder_of(self.contents_manager, body["folder"]))


class CellsHandler(NotebookHandler):
    """Cells of a notebook of this server as a job: it makes a package, so it needs what packaging needs."""

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Package the notebook's folder, which must lie below the server's root."""
        await self.pass_on(rewritten(self.request.body, self._rewrite_places))


@web.stream_request_body
class UploadHandler(PassOn):
    """Bytes of a package, passed on while they arrive; so who sends them is checked before."""

    _broken = False
    _method = "PUT"
    _action = "write"

    async def prepare(self) -> None:
        """Authenticate, authorise, and begin the engine's request."""
        await super().prepare()
        user = self.current_user
        if not user or self.request.method != self._method:
            return  # the method's decorators refuse it; nothing is passed on
        if not await ensure_async(self.authorizer.is_authorized(self, user, self._action, RESOURCE)):
            return
        self.request.connection.set_max_body_size(UPLOAD_LIMIT_BYTES)
        self._upstream = await self._door.open()
        lengths = {name: v for name, v in self.request.headers.items() if name == "Content-Length"}
        await self._upstream.begin(self._method, self.target(), {**self.up_headers(), **lengths})

    async def data_received(self, chunk: bytes) -> None:
        """Pass a piece on (called by tornado)."""
        if self._upstream is None or self._broken:
            return
        try:
            await self._upstream.write(chunk)
        except StreamClosedError:
            self._broken = True  # the engine refused it; its answer may say why

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def put(self, *_: str) -> None:
        """Pass the engine's answer back."""
        await self.answer()

    async def answer(self) -> None:
        """Pass on what the engine says of the upload."""
        if self._upstream is None:
            raise web.HTTPError(403)
        self.conclude(await self._upstream.finish(self))


def rewritten(body: bytes, rewrite: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a JSON body after a change; what is no JSON object is left to the engine to refuse."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(value, dict):
        return body
    rewrite(value)
    return json.dumps(value).encode()


def _is_ours(name: str, value: str) -> bool:
    """Whether a parameter is for the Jupyter server: also the time that JupyterLab adds against caches."""
    return name in _OURS or (name.isdigit() and not value)


def _problem_of(error: BaseException | None, status: int) -> PaiJupyterError:
    message = error.log_message if isinstance(error, web.HTTPError) and error.log_message else ""
    reason = error.reason if isinstance(error, web.HTTPError) and error.reason else ""
    said = message or reason or f"The Jupyter server answered {status}."
    return PaiJupyterError(f"http-{status}", said, "", status)


_V1 = "/paijupyter/v1"
RULES = [
    (rf"{_V1}/(?:jobs|groups)", JobsHandler),
    (rf"{_V1}/(?:jobs|groups)/[^/]+/(?:retry|rerun|clone|secrets|exec|forward)", AgainHandler),
    (rf"{_V1}/document/notebook", NotebookHandler),
    (rf"{_V1}/document/cells", CellsHandler),
    (rf"{_V1}/(?:plan|groups/plan|report|document/(?:start|edit|check))", QuestionHandler),
    (rf"{_V1}/profiles(?:/.*)?", ProfilesHandler),
    (rf"{_V1}/packages(?:/data)?", PackagesHandler),
    (rf"{_V1}/packages/(?:[^/]+/pack|blobs/[^/]+)", UploadHandler),
    (rf"{_V1}/storages/[^/]+/uploads/[^/]+", UploadHandler),
    # Whether the engine ends for another one is a matter of this host, so /engine/ is left out.
    (rf"{_V1}/(?!engine/).*", AnyHandler),
]
