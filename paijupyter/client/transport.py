"""How requests travel: over the engine's Unix socket, or by HTTP through a Jupyter server.

Each request has a connection of its own, so that threads need no lock and an interrupt leaves
nothing half read.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

from paijupyter.errors import PaiJupyterError

Body = bytes | Iterable[bytes] | None
_CONNECT_SECONDS = 10.0
_BROKEN = (OSError, http.client.HTTPException)


class Unreachable(PaiJupyterError):
    """The job server did not answer, or its answer broke off.

    Attributes:
        silent: it is there, but said nothing for as long as it was given.
    """

    def __init__(self, where: str, cause: BaseException) -> None:
        reason = str(cause) or type(cause).__name__
        super().__init__(
            "server-unreachable",
            f"The job server at {where} does not answer: {reason}.",
            "Try again; `paijob doctor` looks for the cause.",
            503,
        )
        self.silent = isinstance(cause, TimeoutError)


class Answer:
    """The head of an answer, and its body as it comes. Use it as a context manager."""

    def __init__(self, where: str, connection: http.client.HTTPConnection, answer: http.client.HTTPResponse):
        self._where = where
        self._connection = connection
        self._answer = answer
        self._socket = connection.sock
        self.status = answer.status
        self.headers = answer.headers  # a mapping that does not mind upper and lower case

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._answer.close()
        self._connection.close()

    def silence(self, seconds: float) -> None:
        """Set how long the server may be silent from now on."""
        if self._socket is not None:
            self._socket.settimeout(seconds)

    def read(self) -> bytes:
        """Return the whole body."""
        try:
            return self._answer.read()
        except _BROKEN as error:
            raise Unreachable(self._where, error) from error

    def piece(self, limit: int = 256 * 1024) -> bytes:
        """Return the next bytes that are there; b"" at the proper end.

        Raises:
            Unreachable: if the answer broke off before its end.
        """
        try:
            got = self._answer.read1(limit)
        except _BROKEN as error:
            raise Unreachable(self._where, error) from error
        if not got and not self._complete:
            raise Unreachable(self._where, ConnectionAbortedError("the answer broke off"))
        return got

    @property
    def _complete(self) -> bool:
        """Whether all was read: `read1` does not tell a lost connection from the end of a known length."""
        return self._answer.length in (None, 0)


class Transport(Protocol):
    """Carries one request."""

    remote: bool

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """Send a request and return the head of the answer.

        Args:
            method: the HTTP method.
            path: path below the API's root, beginning with /v1; parameters quoted already.
            query: parameters; those that are None are left out.
            body: the bytes, or pieces of them to send as they come.
            headers: further headers.
            seconds: how long the server may be silent; None: for ever.

        Raises:
            Unreachable: if there is no answer.
        """


class UnixTransport:
    """To the engine of this host."""

    remote = False

    def __init__(self, path: Path) -> None:
        self._path = path

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """Send a request; see :class:`Transport`."""
        connection = _UnixConnection(self._path)
        return _exchange(
            connection, str(self._path), method, _target(path, query), body, headers or {}, seconds
        )


class HttpTransport:
    """To the engine behind a Jupyter server, from anywhere.

    Args:
        url: base URL of the Jupyter server, for example ``http://127.0.0.1:8888/user/amy/``.
        token: its token.
    """

    remote = True

    def __init__(self, url: str, token: str = "") -> None:
        self._url = urlsplit(url)
        self._headers = {"Authorization": f"token {token}"} if token else {}

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """Send a request; see :class:`Transport`."""
        secure = self._url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._url.hostname or "localhost", self._url.port, timeout=_CONNECT_SECONDS)
        target = f"{self._url.path.rstrip('/')}/paijupyter{_target(path, query)}"
        where = f"{self._url.scheme}://{self._url.netloc}"
        return _exchange(
            connection, where, method, target, body, {**self._headers, **(headers or {})}, seconds
        )


def quoted(*parts: str) -> str:
    """Join parts to a path below /v1, each quoted; slashes within a part are kept."""
    return "/v1/" + "/".join(quote(part, safe="/") for part in parts)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _target(path: str, query: Mapping[str, Any] | None) -> str:
    given = {name: _plain(value) for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _plain(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _exchange(
    connection: http.client.HTTPConnection,
    where: str,
    method: str,
    target: str,
    body: Body,
    headers: Mapping[str, str],
    seconds: float | None,
) -> Answer:
    try:
        try:
            connection.connect()
        except OSError as error:
            raise Unreachable(where, error) from error
        connection.sock.settimeout(seconds)
        try:
            connection.request(method, target, body, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server refused the body; its answer may say why
        except OSError as error:
            raise Unreachable(where, error) from error
        try:
            return Answer(where, connection, connection.getresponse())
        except _BROKEN as error:
            raise Unreachable(where, error) from error
    except BaseException:
        connection.close()
        raise
