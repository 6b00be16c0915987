"""Requests and streams to an API server, off the event loop, the same with every version of the client.

Requests share a small pool of threads. Each stream has a thread of its own, which does not keep the process
alive: it sits in a socket until data comes or the stream is cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from paijupyter._version import __version__
from paijupyter.backends.kubernetes import channels
from paijupyter.backends.kubernetes.channels import Channels
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.paths import core
from paijupyter.backends.kubernetes.pipe import Pipe
from paijupyter.backends.kubernetes.sockets import keep_alive, socket_of

if TYPE_CHECKING:
    import urllib3

    from paijupyter.backends.kubernetes.access import Access

_THREADS = 8
_CONNECT = 10.0  # seconds
_BUSY_TRIES = 5
_PIECE = 64 * 1024
_KEPT_CONNECTIONS = 16
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Form of a list whose items have their metadata and nothing else."""
_Result = TypeVar("_Result")


class KubeTransport:
    """The way to one cluster, as one user. Opens nothing until it is used; belongs to one event loop.

    Attributes:
        namespace: where the objects lie: the profile's, else the context's. Known after :meth:`open`.
        context: name of the context. Known after :meth:`open`.
        server: URL of the API server. Known after :meth:`open`.
    """

    def __init__(
        self, *, kubeconfig: str | None = None, context: str | None = None, namespace: str | None = None
    ) -> None:
        self.namespace = namespace or ""
        self.context = context or ""
        self.server = ""
        self._wanted = (kubeconfig, context)
        self._pool: ThreadPoolExecutor | None = None
        self._way: _Way | None = None
        self._lock = threading.Lock()
        self._cuts: set[Callable[[], None]] = set()

    async def open(self) -> None:
        """Load the configuration; asks no server. Every other method does it when it must.

        Raises:
            KubeError: reason ``Config``.
            MissingExtra: without the package ``kubernetes``.
        """
        await self._in_thread(self._opened)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float = 60,
    ) -> Any:
        """Make one request and return its parsed JSON, or its text where it is none.

        A server that is too busy (429) is asked again when it says, within the time; a token that is no
        longer accepted is renewed once. Nothing else is repeated: who asks knows what may be done twice.

        Args:
            method: HTTP method.
            path: from ``paths.py``.
            query: parameters.
            body: a JSON value, or bytes as they are.
            content_type: of the body.
            accept: form of the answer, for example :data:`METADATA_ONLY`.
            timeout: seconds for the whole request.

        Raises:
            KubeError: the server said no, or nothing.
        """
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        ends = asyncio.get_running_loop().time() + timeout
        renewed, tries = False, 0
        while True:
            left = max(ends - asyncio.get_running_loop().time(), 0.1)
            try:
                ask = partial(self._ask, method, path, query, content, content_type, accept, left)
                return await self._in_thread(ask)
            except KubeError as error:
                wait = 1.0 if error.retry_after is None else error.retry_after
                if error.status == 401 and not renewed:
                    renewed = True
                    await self._in_thread(self._forget_way)
                elif error.status == 429 and tries < _BUSY_TRIES and wait < left:
                    tries += 1
                    await asyncio.sleep(wait)
                else:
                    raise

    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, idle: float | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an answer as they come, until the server ends it or the generator is closed.

        Close it (``contextlib.aclosing``): that is what cuts the connection.

        Args:
            path: from ``paths.py``.
            query: parameters.
            idle: seconds without a byte after which the connection counts as dead.

        Raises:
            KubeError: no answer, one that is not 200, or a connection that broke or was silent too long.
        """
        pipe = Pipe(asyncio.get_running_loop())
        reader = _Reader(self, path, query, idle, pipe)
        self._cuts.add(reader.cut)
        reader.start()
        try:
            while data := await pipe.read():
                yield data
        finally:
            self._cuts.discard(reader.cut)
            pipe.close()
            reader.cut()

    async def exec(
        self,
        pod: str,
        command: Sequence[str],
        *,
        stdin: bool = False,
        tty: bool = False,
        container: str = "main",
    ) -> Channels:
        """Start a command in a pod; the caller closes what it gets.

        Raises:
            KubeError: the server refused it, or cannot be reached.
        """
        path = core("pods", pod, "exec", namespace=(await self.opened()).namespace)
        start = partial(channels.open_exec, command=command, stdin=stdin, tty=tty, container=container)
        return await self._channels(lambda way: start(way.access, path))

    async def forward(self, pod: str, port: int) -> Channels:
        """Open a connection to a port of a pod; the caller closes what it gets.

        Raises:
            KubeError: the server refused it, or cannot be reached.
        """
        path = core("pods", pod, "portforward", namespace=(await self.opened()).namespace)
        return await self._channels(lambda way: channels.open_forward(way.access, path, port))

    async def close(self) -> None:
        """Cut all streams and let go of all connections."""
        for cut in list(self._cuts):
            cut()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        self._forget_way()

    async def opened(self) -> KubeTransport:
        """Open it, and return it."""
        await self.open()
        return self

    async def _channels(self, connect: Callable[[_Way], Any]) -> Channels:
        socket = await self._in_thread(lambda: connect(self._opened()))
        return Channels(socket, asyncio.get_running_loop())

    # In a thread

    def _opened(self) -> _Way:
        with self._lock:
            if self._way is None:
                from paijupyter.backends.kubernetes.access import Access

                access = Access(*self._wanted)
                self._way = _Way(access)
                self.namespace = self.namespace or access.namespace
                self.context, self.server = access.context, access.server
            return self._way

    @contextlib.contextmanager
    def _using(self) -> Iterator[_Way]:
        """Give the way for one answer; one that is forgotten meanwhile is cleared by its last user."""
        way = self._opened()
        try:
            yield way
        finally:
            if way is not self._way:
                way.manager.clear()

    def _forget_way(self) -> None:
        """Load everything again at the next use: certificates and tokens may be new ones."""
        with self._lock:
            way, self._way = self._way, None
        if way is not None:
            way.manager.clear()

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        content: bytes | None,
        content_type: str,
        accept: str,
        timeout: float,
    ) -> Any:
        headers = {
            "accept": accept,
            **({"content-type": content_type} if content is not None else {}),
        }
        with self._using() as way:
            response = self._send(way, method, path, query, content, headers, timeout, timeout)
            try:
                body = _read(response)
            finally:
                response.release_conn()
        if response.status >= 300:
            raise KubeError.from_answer(response.status, body, response.headers.get("retry-after"))
        if "json" in response.headers.get("content-type", ""):
            return json.loads(body)
        return body.decode("utf-8", "replace")

    def _send(
        self,
        way: _Way,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
        idle: float | None,
    ) -> urllib3.response.BaseHTTPResponse:
        import urllib3

        url = f"{way.access.server}{path}" + (f"?{urlencode(query)}" if query else "")
        said = {"user-agent": f"paijupyter/{__version__}", **headers, **way.access.headers()}
        try:
            return way.manager.request(
                method,
                url,
                body=content,
                headers=said,
                timeout=urllib3.Timeout(connect=min(_CONNECT, timeout), read=idle),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise _no_answer(error) from error

    async def _in_thread(self, call: Callable[[], _Result]) -> _Result:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="kubernetes")
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


class _Way:
    """A loaded configuration and the connections made by it."""

    def __init__(self, access: Access) -> None:
        import urllib3

        self.access = access
        options: dict[str, Any] = {
            "maxsize": _KEPT_CONNECTIONS,
            "socket_options": [*urllib3.connection.HTTPConnection.default_socket_options, *keep_alive()],
        }
        context = access.tls()
        if context is not None:
            options["ssl_context"] = context
        if access.tls_server_name:
            options.update(server_hostname=access.tls_server_name, assert_hostname=access.tls_server_name)
        proxy = access.proxy
        self.manager = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)


class _Reader(threading.Thread):
    """Reads one answer into a pipe until it ends or is cut."""

    def __init__(
        self,
        transport: KubeTransport,
        path: str,
        query: Mapping[str, str] | None,
        idle: float | None,
        pipe: Pipe,
    ) -> None:
        super().__init__(name=f"stream {path}", daemon=True)
        self._transport = transport
        self._ask = (path, query, idle)
        self._pipe = pipe
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    def run(self) -> None:
        """Read; whatever ends it ends the pipe."""
        try:
            try:
                self._read()
            except KubeError as error:
                if error.status != 401:
                    raise
                self._transport._forget_way()
                self._read()
        except BaseException as error:  # a thread has nobody else to tell
            self._pipe.end(None if self._is_cut else error)
        else:
            self._pipe.end()

    def cut(self) -> None:
        """End it from outside: a thread that waits for data is woken."""
        with self._lock:
            self._is_cut = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        path, query, idle = self._ask
        with self._transport._using() as way:
            response = self._transport._send(way, "GET", path, query, None, {"accept": "*/*"}, _CONNECT, idle)
            try:
                self._relay(response)
            finally:
                with self._lock:
                    self._socket = None
                # What was cut has unread data, so its connection is good for nothing.
                response.close()
                response.release_conn()

    def _relay(self, response: urllib3.response.BaseHTTPResponse) -> None:
        import urllib3

        with self._lock:
            self._socket = socket_of(response)
            if self._is_cut:
                return
        if response.status != 200:
            raise KubeError.from_answer(
                response.status, response.read(1_000_000), response.headers.get("retry-after")
            )
        try:
            for piece in response.stream(_PIECE, decode_content=True):
                if not self._pipe.write(piece):
                    return
        except urllib3.exceptions.HTTPError as error:
            raise _no_answer(error) from error


def _read(response: urllib3.response.BaseHTTPResponse) -> bytes:
    import urllib3

    try:
        return response.read(decode_content=True)
    except urllib3.exceptions.HTTPError as error:
        raise _no_answer(error) from error


def _no_answer(error: Exception) -> KubeError:
    import urllib3

    kind = urllib3.exceptions
    if isinstance(error, kind.SSLError):
        return KubeError(0, "Tls", str(error))
    if isinstance(error, kind.ReadTimeoutError):
        return KubeError(0, "Timeout", "the API server did not answer in time")
    if isinstance(error, kind.NewConnectionError):  # before its base class ConnectTimeoutError
        return KubeError(0, "Unreachable", str(error).partition(": ")[2] or str(error))
    if isinstance(error, kind.ConnectTimeoutError):
        return KubeError(0, "Unreachable", "the API server cannot be connected to")
    return KubeError(0, "Unreachable", str(error))
