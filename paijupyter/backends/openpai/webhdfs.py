"""Packages in a Hadoop file system, by its HTTP interface (WebHDFS), which tasks read with no client.

``<path>/<sha256>.tar.gz`` is the archive of a package, ``<path>/<sha256>.json`` its facts, written last:
where it is, the archive is whole. Outputs come back by it, too, as files that the caller names.
What is refused is a JSON object with the reason, nearly all of it with status 403 (Hadoop 3.4, measured).
"""

from __future__ import annotations

import http.client
import json
import string
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

from paijupyter.backends.base import Package
from paijupyter.backends.delivery import archive
from paijupyter.backends.delivery.archive import Archive
from paijupyter.backends.openpai.settings import WebHdfs
from paijupyter.errors import PaiJupyterError

_SECONDS = 600.0
_NODES = 3  # data nodes that are tried: a name node names one that is gone for ten minutes still
_DENIED = ("AccessControlException", "SecurityException")


class Refused(OSError):
    """The file system answered, and did not do what it was asked.

    Attributes:
        status: of HTTP.
        exception: its own word for it (``AccessControlException``, ``SafeModeException`` …), or "".
    """

    def __init__(self, status: int, exception: str, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.exception = exception


def put(package: Package, store: WebHdfs, staging: Path) -> tuple[Archive, str]:
    """See that the package's archive is there; return its facts and its address for tasks. Blocking.

    Raises:
        PaiJupyterError: ``package-not-sent`` if the file system refuses.
    """
    try:
        facts = _facts(package, store) or _upload(package, store, staging)
    except (OSError, http.client.HTTPException) as error:
        raise _failed(store, error) from error
    return facts, _url(store, f"{package.sha256}.tar.gz", "OPEN")


def writing(store: WebHdfs, folder: str) -> tuple[str, str]:
    """Return what stands before and behind a file's name in the address by which a task writes it.

    Args:
        store: the file system.
        folder: below the store's path, with a ``/`` at its end.
    """
    before, _, after = _url(store, f"{folder}*", "CREATE", overwrite="true", noredirect="true").partition(
        "%2A"
    )
    return before, after


def reading(store: WebHdfs, name: str) -> Any:
    """Return the answer with a file's content. Blocking.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be had; :class:`Refused` if the file system says why.
    """
    return _send("GET", _url(store, name, "OPEN"))


def _facts(package: Package, store: WebHdfs) -> Archive | None:
    try:
        with _send("GET", _url(store, f"{package.sha256}.json", "OPEN")) as answer:
            found = json.loads(answer.read(10_000))
            return Archive(str(found["sha256"]), int(found["bytes"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _upload(package: Package, store: WebHdfs, staging: Path) -> Archive:
    staging.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=staging) as file:
        facts = archive.to_file(package, file)
        file.seek(0)
        _create(store, f"{package.sha256}.tar.gz", file, facts.size)
    told = json.dumps({"sha256": facts.sha256, "bytes": facts.size}).encode()
    _create(store, f"{package.sha256}.json", told, len(told))
    return facts


def _create(store: WebHdfs, name: str, body: IO[bytes] | bytes, size: int) -> None:
    """Create a file in the two steps of WebHDFS: the name node says which data node takes the content."""
    headers = {"content-length": str(size), "content-type": "application/octet-stream"}
    gone: list[str] = []
    while True:
        place = _place(store, name, gone)
        node = urlsplit(place)
        if not isinstance(body, bytes):
            body.seek(0)
        try:
            _send("PUT", place, body, headers).close()
            return
        except Refused:
            raise
        except (OSError, http.client.HTTPException) as error:
            gone.append(node.hostname or "")
            if len(gone) == _NODES:
                raise OSError(f"its data node {node.netloc} did not take it ({_reason(error)})") from error


def _place(store: WebHdfs, name: str, gone: list[str]) -> str:
    """Return the address at a data node, none of those that are gone, that takes a file's content."""
    but = {"excludedatanodes": ",".join(gone)} if gone else {}
    place = _url(store, name, "CREATE", overwrite="true", noredirect="true", **but)
    try:
        with _send("PUT", place, b"") as answer:
            place = str(json.loads(answer.read(10_000) or b"{}").get("Location") or "")
    except urllib.error.HTTPError as error:  # an old one knows no `noredirect`
        with error:
            place = str(error.headers.get("location") or "")
    if not place.startswith(("http://", "https://")):
        raise OSError("its name node named no data node")
    return quote(place, safe=string.punctuation)  # in JSON it has the letters of a path as they are


def _send(method: str, url: str, body: IO[bytes] | bytes | None = None, headers: Any = None) -> Any:
    """Send a request; return its answer.

    Raises:
        FileNotFoundError: there is no such file.
        Refused: it is not done, and why.
        OSError: there is no answer; ``urllib.error.HTTPError`` where a PUT is sent on to another place.
    """
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)  # noqa: S310 - settings
    try:
        return urllib.request.build_opener(_Handler).open(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code in (301, 302, 307):
            raise
        with error:
            raise _refused(error) from None


class _Connection(http.client.HTTPConnection):
    """One that reads the answer also where not all was taken: a data node that refuses closes at once."""

    _closed = False

    def send(self, data: Any) -> None:
        if self._closed:
            return
        try:
            super().send(data)
        except (BrokenPipeError, ConnectionResetError):
            self._closed = True


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


def _refused(error: urllib.error.HTTPError) -> OSError:
    """Read a refusal: ``{"RemoteException": {"exception", "message"}}``; of its message the first line."""
    exception, words = "", ""
    try:
        said = json.loads(error.read(1 << 20))["RemoteException"]
        exception, words = str(said["exception"]), str(said["message"]).strip().partition("\n")[0]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        pass
    if error.code == 404 and exception in ("", "FileNotFoundException"):
        return FileNotFoundError(words)
    return Refused(error.code, exception, f"it answered {error.code}: {words or error.reason}".rstrip("."))


def _url(store: WebHdfs, name: str, operation: str, **more: str) -> str:
    query = {"op": operation, **({"user.name": store.user} if store.user else {}), **more}
    return f"{store.url}/webhdfs/v1{quote(store.path)}/{quote(name)}?{urlencode(query)}"


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error or type(error).__name__)


def _failed(store: WebHdfs, error: Exception) -> PaiJupyterError:
    hint = "Correct `packageWebHdfs` of the profile, or take `webhdfs` out of its `packageWays`."
    if isinstance(error, Refused) and error.exception in _DENIED:
        hint = "Name in `packageWebHdfs` of the profile a `user` who may write to `path`, or another `path`."
    elif isinstance(error, Refused) and error.exception:
        hint = "Try again once it is well, or take `webhdfs` out of the profile's `packageWays`."
    return PaiJupyterError(
        "package-not-sent", f"Package did not reach {store.url}{store.path}: {_reason(error)}.", hint, 502
    )
