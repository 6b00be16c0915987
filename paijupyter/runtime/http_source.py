"""Data over http and https: goes on where a lost connection or a killed fetch ended, by Range."""

import json
import os
import time

from .fetch import Unfetched, shown_size, write_progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

    from .cache import Cache

_CHUNK = 1 << 18
_SILENCE = 60.0  # seconds without a byte until a connection counts as lost
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds before it is tried again, while nothing comes


class Lost(Exception):
    """The connection failed in a way that another try may mend."""


def fetch(source: "Dict[str, Any]", cache: "Cache", secret: str) -> str:
    """Have the file in the cache; return its key.

    Without a checksum the server is asked first; what it says of the file (ETag, time, size) is part of the
    key. A server that says nothing gives a key of this job only.

    Raises:
        Unfetched: with the reason.
    """
    checksum = (source.get("sha256") or "").lower()
    if checksum:
        key = cache.key("sha256", checksum, source["base"])
        return _download(source, cache, secret, key, None)
    answer = _again(source, lambda: open_uri(source, secret, {}))
    try:
        stamp = _stamp(answer)
        key = cache.key("http", source["uri"], source["base"], stamp or [source["job"]])
        return _download(source, cache, secret, key, answer)
    finally:
        answer.close()


def _download(source: "Dict[str, Any]", cache: "Cache", secret: str, key: str, answer: "Any") -> str:
    with cache.lock(key):
        if cache.content(key, source["base"]):
            return key
        return _Download(source, cache, secret, key).run(answer)


class _Download:
    def __init__(self, source: "Dict[str, Any]", cache: "Cache", secret: str, key: str) -> None:
        from hashlib import sha256

        self._source = source
        self._secret = secret
        self._cache = cache
        self._key = key
        self._draft = cache.draft(key)
        self._path = os.path.join(self._draft, "content", source["base"])
        self._digest = sha256()
        self._sha256 = sha256
        self._total: "Optional[int]" = None
        self._said = time.monotonic()

    def run(self, answer: "Any") -> str:
        """Fetch it, from where an ended fetch was or from the answer to the first question."""
        source = self._source
        wanted = (source.get("sha256") or "").lower()
        with open(self._path, "ab") as file:
            self._go_on(file)
            resumed = file.tell() > 0
            self._complete(file, answer)
            if resumed and wanted and self._digest.hexdigest() != wanted:
                write_progress(source, "what an earlier fetch left does not fit; from the beginning")
                file.truncate(0)
                self._rehash(file)
                self._complete(file, None)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        if wanted and self._digest.hexdigest() != wanted:
            self._cache.discard(self._key)
            raise Unfetched("its sha256 is %s, not %s" % (self._digest.hexdigest(), wanted))
        if os.path.exists(self._state):
            os.unlink(self._state)
        self._cache.publish(self._key, source["base"], {"uri": source["shown"], "bytes": size, "files": 1})
        write_progress(source, shown_size(size))
        return self._key

    def _complete(self, file: "Any", answer: "Any") -> None:
        """Read on until all is there."""
        failed = 0
        while True:
            before = file.tell()
            try:
                self._piece(file, None if before or failed else answer)
                return
            except Lost as error:
                failed = 1 if file.tell() > before else failed + 1
                if failed > len(_PAUSES):
                    raise Unfetched(
                        "the connection failed %d times in a row: %s" % (failed, error)
                    ) from error
                write_progress(self._source, "%s; trying again" % error)
                time.sleep(_PAUSES[failed - 1])

    @property
    def _state(self) -> str:
        return os.path.join(self._draft, "resume.json")

    def _go_on(self, file: "Any") -> None:
        """Take up what an ended fetch left, if it is known of which state of the file it is."""
        file.seek(0, os.SEEK_END)
        if file.tell() and not self._validator() and not self._source.get("sha256"):
            file.truncate(0)
        self._rehash(file)

    def _rehash(self, file: "Any") -> None:
        self._digest = self._sha256()
        with open(self._path, "rb") as stream:
            for chunk in iter(lambda: stream.read(_CHUNK), b""):
                self._digest.update(chunk)
        file.seek(0, os.SEEK_END)

    def _validator(self) -> str:
        try:
            with open(self._state, "rb") as stream:
                return str(json.loads(stream.read().decode("utf-8"))["validator"])
        except (OSError, ValueError, KeyError):
            return ""

    def _piece(self, file: "Any", answer: "Any") -> None:
        """Read one answer to its end into the file."""
        start = file.tell()
        headers = {}
        if start:
            headers["Range"] = "bytes=%d-" % start
            if self._validator():
                headers["If-Range"] = self._validator()
        if answer is None:
            answer = open_uri(self._source, self._secret, headers)
        try:
            if start and not self._continues(answer, start):
                file.truncate(0)  # it has changed, or the server knows no ranges: from the beginning
                self._rehash(file)
                start = 0
            if not start:
                self._remember(answer)
            length = answer.headers.get("Content-Length")
            if length and length.isdigit():
                self._total = start + int(length)
            self._read(file, answer)
        finally:
            answer.close()
        if self._total is not None and file.tell() < self._total:
            raise Lost(
                "the connection ended after %s of %s" % (shown_size(file.tell()), shown_size(self._total))
            )

    def _continues(self, answer: "Any", start: int) -> bool:
        return answer.status == 206 and (answer.headers.get("Content-Range") or "").startswith(
            "bytes %d-" % start
        )

    def _remember(self, answer: "Any") -> None:
        etag = answer.headers.get("ETag") or ""
        validator = answer.headers.get("Last-Modified") or "" if etag.startswith("W/") else etag
        validator = validator or answer.headers.get("Last-Modified") or ""
        with open(self._state, "w") as stream:
            json.dump({"validator": validator}, stream)

    def _read(self, file: "Any", answer: "Any") -> None:
        import http.client

        while True:
            try:
                chunk = answer.read(_CHUNK)
            except (OSError, http.client.HTTPException) as error:
                partial = getattr(error, "partial", b"")  # what came before the connection ended
                file.write(partial)
                self._digest.update(partial)
                raise Lost("the connection failed (%s)" % _reason(error)) from error
            if not chunk:
                return
            file.write(chunk)
            self._digest.update(chunk)
            if time.monotonic() - self._said >= 5:
                self._said = time.monotonic()
                write_progress(self._source, _share(file.tell(), self._total))


def _share(done: int, total: "Optional[int]") -> str:
    if not total:
        return shown_size(done)
    return "%d %% of %s" % (100 * done // total, shown_size(total))


def _stamp(answer: "Any") -> "List[str]":
    """Return what the server says by which to tell this state of the file from others; [] if nothing."""
    etag, changed = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
    if etag:
        return [etag]
    return [changed, answer.headers.get("Content-Length") or ""] if changed else []


def _again(source: "Dict[str, Any]", ask: "Any") -> "Any":
    for pause in _PAUSES:
        try:
            return ask()
        except Lost as error:
            write_progress(source, "%s; trying again" % error)
            time.sleep(pause)
    try:
        return ask()
    except Lost as error:
        raise Unfetched("the server cannot be reached: %s" % error) from error


def open_uri(source: "Dict[str, Any]", secret: str, headers: "Dict[str, str]") -> "Any":
    """Send a request; return the good answer.

    Raises:
        Lost: another try may do.
        Unfetched: the server does not give it.
    """
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(source["uri"].partition("#")[0], headers=dict(headers))
    request.add_header("Accept-Encoding", "identity")
    request.add_header("User-Agent", "paijupyter")
    if secret:  # not sent on by a redirect to somebody else
        request.add_unredirected_header("Authorization", authorization(secret))
    try:
        answer = _opener().open(request, timeout=_SILENCE)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # a draft as long as the file or longer: begin anew
            return open_uri(source, secret, {})
        said = "the server answered %d %s" % (error.code, error.reason)
        if error.code in (408, 425, 429) or error.code >= 500:
            raise Lost(said) from None
        raise Unfetched(said) from None
    except (OSError, http.client.HTTPException) as error:
        if "CERTIFICATE" in str(error):
            raise Unfetched("its certificate is not accepted (%s)" % _reason(error)) from error
        raise Lost("the connection failed (%s)" % _reason(error)) from error
    except ValueError as error:
        raise Unfetched("its URI cannot be used (%s)" % error) from error
    return answer


def authorization(secret: str) -> str:
    """Return the header for a token, or for ``user:password``."""
    if ":" in secret:
        from base64 import b64encode

        return "Basic " + b64encode(secret.encode("utf-8")).decode("ascii")
    return "Bearer " + secret


def _opener() -> "Any":
    """Return what opens http and https only: a redirect must not read a file of this machine."""
    from urllib import request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPRedirectHandler,
        request.HTTPErrorProcessor,
        request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _reason(error: BaseException) -> str:
    return str(getattr(error, "reason", "") or error or type(error).__name__)
