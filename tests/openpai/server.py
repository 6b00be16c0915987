"""A scripted OpenPAI server: the REST API v2 and the log server over real HTTP, for tests.

It keeps what is submitted and validates it as the original does; it runs nothing. A test says what becomes
of a job, and switches on what goes wrong::

    with OpenPai() as server:
        ...  # a client submits to server.url
        server.job("train").run()
        server.fault("GET", r"/jobs$", instead=faults.portal())
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

from tornado import httpserver, netutil, web
from tornado.iostream import StreamClosedError

from tests.openpai.accounts import Accounts, Limits, User
from tests.openpai.answers import Answer
from tests.openpai.api import Api
from tests.openpai.faults import Fault
from tests.openpai.jobs import ScriptedJob
from tests.openpai.rendering import by_kubernetes, by_the_runtime, on_the_server

_CHUNK = 1024 * 1024


class OpenPai:
    """The server; ``with`` starts it on a port of its own and stops it.

    Args:
        version: what it says it is.
        tls: certificate and key, to be served by https.

    Attributes:
        jobs: what was submitted, by ``user~name``.
        accounts: users and tokens; alice (password: password) is there.
        limits: how many requests are let through.
        requests: method and path with query of all requests so far.
        received: the bodies of all submissions so far, whatever became of them.
        on_submit: called with every new job.
        skew: seconds that its clock is ahead.
        lost_stops: how many of the next stops are accepted and not carried out.
        stops_at_once: whether a stop ends a running job at once; else a test says when.
    """

    def __init__(self, version: str = "v1.8.1", tls: tuple[str, str] | None = None) -> None:
        self.version = version
        self.authn = "basic"
        self.accounts = Accounts()
        self.limits = Limits()
        self.jobs: dict[str, ScriptedJob] = {}
        self.requests: list[tuple[str, str]] = []
        self.received: list[str] = []
        self.on_submit: Callable[[ScriptedJob], Any] = lambda job: None
        self.skew = 0.0
        self.lost_stops = 0
        self.stops_at_once = True
        self.virtual_clusters = ["default"]
        self.skus: dict[str, dict[str, int]] = {}
        self.storages: dict[str, dict[str, Any]] = {}
        self.log_manager = True
        self.log_epoch = 0  # addresses of logs from before are no longer good
        self.errors: list[BaseException] = []  # of this server itself
        self.lock = threading.RLock()
        self.url = ""
        self._faults: list[Fault] = []
        self._tls = tls
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="scripted OpenPAI", daemon=True)
        self._ready = threading.Event()
        self._closing = asyncio.Event()
        self.add_user("alice", "password")

    # -- for tests ---------------------------------------------------------------------------------------

    def add_user(self, name: str, password: str, **more: Any) -> User:
        """Add a user; see :class:`User`."""
        self.accounts.users[name] = User(name, password, **more)
        return self.accounts.users[name]

    def token(self, user: str = "alice") -> str:
        """Return a new application token of a user."""
        return self.accounts.issue(user, self.now())

    def revoke(self, token: str) -> None:
        """Let a token be good no more."""
        self.accounts.tokens.pop(token, None)

    def job(self, name: str, user: str = "alice") -> ScriptedJob:
        """Return a submitted job; ``name`` may be the start of its name if no other begins so."""
        with self.lock:
            found = [job for job in self.jobs.values() if job.user == user and job.name == name]
            found = found or [job for job in self.jobs.values() if job.name.startswith(name)]
        if len(found) != 1:
            raise KeyError(f"{name}: {len(found)} of {sorted(self.jobs)}")
        return found[0]

    def command(self, name: str, role: str, **variables: str) -> str:
        """Return what bash would receive of a job's commands, in the end.

        Args:
            name: the job's.
            role: the role's.
            variables: FC_* variables of the pod, for what Kubernetes expands.
        """
        job = self.job(name)
        text = by_kubernetes(on_the_server(job.data, role), variables)
        return by_the_runtime(text, job.data.get("secrets"))

    def fault(self, method: str, path: str, **what: Any) -> Fault:
        """Let requests of a method (``*``: of any) whose path matches go wrong; see :class:`Fault`."""
        fault = Fault(method, path, **what)
        with self.lock:
            self._faults.append(fault)
        return fault

    def lift(self, fault: Fault | None = None) -> None:
        """Let one fault end, or all of them."""
        with self.lock:
            for each in [fault] if fault else list(self._faults):
                self._faults.remove(each)
                if each.held:
                    each.held.set()

    def expire_logs(self) -> None:
        """Let all addresses of logs that were given be older than 120 s."""
        self.log_epoch += 1

    def count(self, method: str, path: str) -> int:
        """Return how many requests there were whose path ends so, the query left out."""
        return sum(each == method and where.partition("?")[0].endswith(path) for each, where in self.requests)

    @property
    def release(self) -> float:
        """Its version as a number: 1.8."""
        return float(".".join(self.version.lstrip("v").split(".")[:2]))

    def now(self) -> float:
        """Return the time by its clock."""
        return time.time() + self.skew

    # -- serving -----------------------------------------------------------------------------------------

    def __enter__(self) -> OpenPai:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        if self.errors:
            raise self.errors[0]

    def met(self, method: str, path: str) -> Fault | None:
        """Return the fault that befalls a request, the first that was switched on."""
        with self.lock:
            return next((fault for fault in self._faults if fault.befalls(method, path)), None)

    def _serve(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        context = None
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._tls)
        application = web.Application(
            [(".*", _Everything, {"server": self, "api": Api(self)})], log_function=lambda handler: None
        )
        http = httpserver.HTTPServer(application, ssl_options=context, max_body_size=64 * _CHUNK)
        sockets = netutil.bind_sockets(0, "127.0.0.1")
        http.add_sockets(sockets)
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._closing.wait()
        http.stop()
        await http.close_all_connections()


class _Everything(web.RequestHandler):
    """Hands a request to the API and sends what it answers, as whole as the faults let it."""

    def initialize(self, server: OpenPai, api: Api) -> None:
        self._server, self._api = server, api

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.clear_header("Content-Type")

    def log_exception(self, typ: Any, value: Any, trace: Any) -> None:
        """Keep what the test must hear of; a connection that is cut is none of it (called by tornado)."""
        if not isinstance(value, StreamClosedError):
            self._server.errors.append(value)

    async def answer(self) -> None:
        server, request = self._server, self.request
        with server.lock:
            server.requests.append((str(request.method), str(request.uri)))
        fault = server.met(str(request.method), request.path)
        if fault and fault.held:
            await asyncio.get_running_loop().run_in_executor(None, fault.held.wait)
        answer = self._decided(fault)
        if fault and fault.drop:
            self.detach().close()
            return
        self.set_header("Date", formatdate(server.now(), usegmt=True))
        await self._send(answer, cut=bool(fault and fault.cut))

    def _decided(self, fault: Fault | None) -> Answer:
        if fault and fault.instead and not fault.after:
            return fault.instead
        with self._server.lock:
            true = self._api.answer(self.request)
        return fault.instead if fault and fault.instead else true

    async def _send(self, answer: Answer, cut: bool) -> None:
        self.set_status(answer.status)
        for name, value in answer.headers.items():
            self.set_header(name, value)
        if answer.status == 204:
            return
        self.set_header("Content-Length", str(len(answer.body)))
        body = answer.body[: len(answer.body) // 2] if cut else answer.body
        for start in range(0, len(body), _CHUNK):
            self.write(body[start : start + _CHUNK])
            await self.flush()
        if cut:
            self.detach().close()

    get = put = post = delete = answer
