"""Calls to an OpenPAI server, off the event loop, within a budget. Standard library only.

Nothing is repeated here: who asks knows what may be done twice.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

from paijupyter._version import __version__
from paijupyter.backends.openpai.budget import ENGINE, Budget, Turn
from paijupyter.backends.openpai.errors import PaiError

API = "/api/v2"
_THREADS = 8
_LARGEST = 256 * 2**20  # bytes of an answer that is no log
_PIECE = 1 << 18
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered.

    Attributes:
        asked: method and path of the call.
        status: HTTP status, below 300.
        body: all of it.
        headers: by their names in small letters.
    """

    asked: str
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """Return the value that the body holds.

        Raises:
            PaiError: it is no JSON, so this is no OpenPAI server's answer.
        """
        try:
            return json.loads(self.body)
        except ValueError:
            kind = self.headers.get("content-type", "").partition(";")[0] or "nothing"
            raise PaiError(0, "NotOpenPai", f"it answers {self.asked} with {kind}") from None


class OpenPaiClient:
    """The way to one OpenPAI server, as one user. Opens nothing until it is used.

    Args:
        url: root of the portal; addresses of logs are relative to it.
        token: returns the token, None for no login; called in a thread before every call.
        ca_file: certificates of authorities that are trusted beside the system's.
        rest_url: root of the REST server, "" for ``<url>/rest-server``.
        budget: how often it may be asked; None: what all profiles of this process share.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Callable[[], str | None],
        ca_file: str = "",
        rest_url: str = "",
        budget: Budget | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.rest_url = (rest_url or f"{self.url}/rest-server").rstrip("/")
        self.budget = budget or ENGINE
        self._token = token
        self._ca_file = ca_file
        self._pool: ThreadPoolExecutor | None = None
        self._opener: urllib.request.OpenerDirector | None = None
        self._lock = threading.Lock()

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        login: bool = True,
        turn: Turn = Turn.PERSON,
        timeout: float = 30,
    ) -> Any:
        """Make one call of the API and return its parsed JSON.

        Args:
            method: HTTP method.
            path: below ``/api/v2``, quoted.
            query: parameters.
            body: a JSON value, or bytes as they are.
            content_type: of the body.
            login: whether the token goes along.
            turn: for what it is (:class:`Turn`).
            timeout: seconds without a byte.

        Raises:
            PaiError: the server said no, nothing, or something that is no OpenPAI server's.
        """
        answer = await self.ask(
            method, path, query=query, body=body, content_type=content_type, login=login,
            turn=turn, timeout=timeout,
        )  # fmt: skip
        return answer.json()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        login: bool = True,
        turn: Turn = Turn.PERSON,
        timeout: float = 30,
    ) -> Answer:
        """Make one call of the API and return the answer as it is; see :meth:`call`.

        Raises:
            PaiError: the server said no, or nothing.
        """
        url = f"{self.rest_url}{API}{path}" + (f"?{urlencode(query)}" if query else "")
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json, */*"}
        if content is not None:
            headers["Content-Type"] = content_type
        await self.budget.take(turn)
        try:
            answer = await self._in_thread(partial(self._ask, method, url, content, headers, login, timeout))
        except PaiError as error:
            if error.status == 429:
                self.budget.shut(error.retry_after or 60.0)
            raise
        self.budget.learn(_number(answer, "x-ratelimit-limit"), _number(answer, "x-ratelimit-remaining"))
        return answer

    async def fetch(
        self, uri: str, start: int = 0, *, turn: Turn = Turn.PERSON, timeout: float = 60
    ) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a log from an offset to its present end, in pieces; memory stays flat.

        Close it (``contextlib.aclosing``). Of a server that ignores ``Range``, what is before the offset is
        left out here.

        Args:
            uri: from a list of logs; relative to the portal's root, or absolute.
            start: first byte.
            turn: for what it is (:class:`Turn`).
            timeout: seconds without a byte.

        Raises:
            PaiError: 416 where nothing is behind the offset, 403 where the address has expired; ``Cut`` where
                the answer ended before its end.
        """
        url = urljoin(f"{self.url}/", uri)
        headers = {"Accept": "*/*", **({"Range": f"bytes={start}-"} if start else {})}
        # The address holds a token of its own; ours goes to nobody but the portal's own host.
        login = urlsplit(url).netloc == urlsplit(self.url).netloc
        await self.budget.take(turn)
        response = await self._in_thread(partial(self._open, "GET", url, None, headers, login, timeout))
        try:
            skip = start if response.status == 200 else 0
            left = response.length
            while piece := await self._in_thread(partial(_piece, response)):
                if left is not None:
                    left -= len(piece)
                if skip:
                    piece, skip = piece[skip:], max(skip - len(piece), 0)
                if piece:
                    yield piece
            if left:
                raise PaiError(0, "Cut", f"the log was cut off {left} bytes before its end")
        finally:
            response.close()

    async def close(self) -> None:
        """Let go of all threads; what is under way ends by its time limit."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    # In a thread

    def _ask(
        self,
        method: str,
        url: str,
        content: bytes | None,
        headers: Mapping[str, str],
        login: bool,
        timeout: float,
    ) -> Answer:
        with self._open(method, url, content, headers, login, timeout) as response:
            try:
                body = response.read(_LARGEST)
            except (OSError, http.client.HTTPException) as error:
                raise _no_answer(error) from error
            if response.length:
                raise PaiError(0, "Cut", "the answer was cut off before its end")
            asked = f"{method} {url.removeprefix(self.rest_url + API).partition('?')[0]}"
            found = {name.lower(): value for name, value in response.headers.items()}
            return Answer(asked, response.status, body, found)

    def _open(
        self,
        method: str,
        url: str,
        content: bytes | None,
        headers: Mapping[str, str],
        login: bool,
        timeout: float,
    ) -> http.client.HTTPResponse:
        said = {"User-Agent": f"paijupyter/{__version__}", **headers}
        token = self._token() if login else None
        if token:
            said["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(url, content, said, method=method)  # noqa: S310 - http(s): settings
        try:
            response: http.client.HTTPResponse = self._opened().open(request, timeout=timeout)
            return response
        except urllib.error.HTTPError as error:
            with error:
                raise _refused(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise _no_answer(error) from error

    def _opened(self) -> urllib.request.OpenerDirector:
        with self._lock:
            if self._opener is None:
                self._opener = urllib.request.build_opener(
                    urllib.request.HTTPSHandler(context=self._tls()), _NoRedirect()
                )
            return self._opener

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._ca_file:
            file = Path(self._ca_file).expanduser()
            try:
                context.load_verify_locations(file)
            except (OSError, ssl.SSLError) as error:
                raise PaiError(0, "Tls", f"`caFile` {file} cannot be used: {error}") from error
        return context

    async def _in_thread(self, call: Callable[[], _Result]) -> _Result:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="openpai")
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A server that sends us elsewhere (to a page for a login) is not followed: the token would go along."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


def _refused(error: urllib.error.HTTPError) -> PaiError:
    if 300 <= error.code < 400:
        return PaiError(0, "NotOpenPai", f"it sends to {error.headers.get('location') or 'another page'}")
    try:
        body = error.read(1 << 20)
    except (OSError, http.client.HTTPException):
        body = b""
    if error.code == 404 and "html" in (error.headers.get("content-type") or ""):
        return PaiError(0, "NotOpenPai", f"it has no {urlsplit(error.url or '').path}")
    return PaiError.from_answer(error.code, body, error.headers.get("retry-after"))


def _piece(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read1(_PIECE)
    except (OSError, http.client.HTTPException) as error:
        raise _no_answer(error) from error


def _no_answer(error: Exception) -> PaiError:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return PaiError(0, "Tls", reason.verify_message or str(reason))
    if isinstance(reason, ssl.SSLError):
        return PaiError(0, "Tls", str(reason))
    if isinstance(reason, (TimeoutError, socket.timeout)):
        return PaiError(0, "Timeout", "it did not answer in time")
    if isinstance(reason, (http.client.BadStatusLine, http.client.IncompleteRead)):
        return PaiError(0, "Cut", "the connection ended before the answer did")
    return PaiError(0, "Unreachable", str(reason) or type(reason).__name__)


def _number(answer: Answer, header: str) -> int | None:
    text = answer.headers.get(header, "")
    return int(text) if text.isdigit() else None
