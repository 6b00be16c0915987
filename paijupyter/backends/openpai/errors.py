"""What an OpenPAI server answers when it does not do what it was asked, and what a person reads of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from paijupyter.backends.remote import ServerError
from paijupyter.errors import PaiJupyterError

_LONGEST = 600  # characters of what a server said that a message repeats


class PaiError(ServerError):
    """A server refused a request, or could not be reached.

    Attributes:
        status: HTTP status; 0 if there was no answer of an OpenPAI server.
        code: ``code`` of its answer (``NoJobError``, ``ConflictJobError`` …), "" where it has none; without
            an answer one of ``Unreachable``, ``Timeout``, ``Tls``, ``Cut`` and ``NotOpenPai``.
        message: what the server or the network said.
        retry_after: seconds that the server asks to wait, or None.
    """

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after

    @classmethod
    def from_answer(cls, status: int, body: bytes, retry_after: str | None = None) -> PaiError:
        """Read an error: ``{code, message}``, or without a code, as text, as HTML or empty (8.1, 8.4)."""
        text = body.decode("utf-8", "replace").strip()
        found: Any = None
        if text.startswith("{"):
            try:
                found = json.loads(text)
            except ValueError:
                found = None
        wait = float(retry_after) if retry_after and retry_after.strip().isdigit() else None
        if not isinstance(found, dict):
            return cls(status, "", _plain(text) or f"HTTP status {status}", wait)
        message = readable(found.get("message")) or f"HTTP status {status}"
        return cls(status, str(found.get("code") or ""), message, wait)

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed a little later.

        A 500 is not: it may be the document's fault (2.3).
        """
        return (self.status == 0 and self.code in ("Unreachable", "Timeout", "Cut")) or self.status in (
            429,
            502,
            503,
            504,
        )

    @property
    def is_unclear(self) -> bool:
        """Whether what was asked for may have been done in spite of this answer."""
        return self.status == 0 or self.status >= 500

    def for_people(self, doing: str) -> PaiJupyterError:
        """Return the error of the whole product.

        Args:
            doing: what was tried, as the end of "The OpenPAI server did not …" (``take the job``).
        """
        said = self.message.rstrip(". ")
        for applies, code, lead, hint, status in _RULES:
            if applies(self):
                return PaiJupyterError(code, f"{lead.format(doing=doing)}: {said}.", hint, status)
        return PaiJupyterError(
            "cluster-refused",
            f"{_DID_NOT.format(doing=doing)}: {said} (HTTP {self.status}).",
            "Try again; if it stays, whoever runs the cluster finds more in the log of its REST server.",
            502,
        )


def readable(message: Any) -> str:
    """Return a message as one text; the list of findings of a schema is put into words."""
    text = str(message or "").strip()
    if text.startswith("["):
        try:
            found = json.loads(text)
        except ValueError:
            return _cut(text)
        words = [_finding(each) for each in found if isinstance(each, dict)]
        return _cut("; ".join(dict.fromkeys(word for word in words if word))) or _cut(text)
    return _cut(text)


def _finding(found: dict[str, Any]) -> str:
    place = str(found.get("dataPath") or "").lstrip(".")
    what = str(found.get("message") or "")
    more = (
        (found.get("params") or {}).get("additionalProperty") if isinstance(found.get("params"), dict) else ""
    )
    return f"`{place or 'document'}` {what}" + (f" (`{more}`)" if more else "")


def _plain(text: str) -> str:
    """Return a text; a page for browsers is not repeated."""
    return "" if text[:200].lstrip().lower().startswith(("<!doctype", "<html")) else _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_DID_NOT = "The OpenPAI server did not {doing}"

# (when, code, how the sentence begins, what to do, HTTP status); the first that applies is said.
_RULES: tuple[tuple[Callable[[PaiError], bool], str, str, str, int], ...] = (
    (
        lambda error: error.code == "Tls",
        "untrusted-cluster",
        "The certificate of the OpenPAI server is not trusted",
        "Name the file of its authority as `caFile` in the profile; it is never skipped by itself.",
        502,
    ),
    (
        lambda error: error.code == "NotOpenPai",
        "not-openpai",
        "What answers at the profile's `url` is no OpenPAI server",
        "Set `url` to the address of the portal's first page, and `restUrl` if its REST server is elsewhere; "
        "a proxy in between is named by NO_PROXY.",
        502,
    ),
    (
        lambda error: error.status == 0,
        "cluster-unreachable",
        _DID_NOT,
        "Nothing is lost: what runs there runs on. Check the network and the profile's `url`, try again.",
        503,
    ),
    (
        lambda error: error.status == 407,
        "proxy-refused",
        "A proxy on the way to the OpenPAI server wants a login of its own",
        "Name the server in NO_PROXY, or give HTTPS_PROXY its user and password, where Jupyter is started.",
        502,
    ),
    (
        lambda error: error.status == 401 and error.message.startswith("Guest "),
        "cluster-login",
        "Nobody is logged in at the OpenPAI server",
        "Log in: `paijob login PROFILE`.",
        401,
    ),
    (
        lambda error: error.status == 401,
        "cluster-login",
        "The OpenPAI server does not accept this login",
        "Log in again: `paijob login PROFILE`.",
        401,
    ),
    (
        lambda error: error.status == 429,
        "cluster-busy",
        "The OpenPAI server counts too many calls",
        "Wait a minute; the limit holds for everybody behind one address.",
        503,
    ),
    (
        lambda error: error.status == 403 and "virtual" not in error.code and "operation in" in error.message,
        "no-virtual-cluster",
        "The virtual cluster is not yours to use",
        "Name one of yours as `defaults.virtualCluster` or in the profile; a form lists them.",
        403,
    ),
    (
        lambda error: error.status == 403,
        "not-allowed",
        "The OpenPAI server does not let this user {doing}",
        "Only the owner of a job and administrators may change it.",
        403,
    ),
    (
        lambda error: error.code == "NoStorageError",
        "no-storage",
        "A storage that the job names does not exist or is not granted",
        "Name one of yours; `paijob data storages` lists them.",
        404,
    ),
    (lambda error: error.status == 404, "not-found", _DID_NOT, "Somebody may have removed it.", 404),
    (lambda error: error.status == 409, "name-taken", _DID_NOT, "Give the job another name.", 409),
    (
        lambda error: error.status == 413,
        "too-large",
        _DID_NOT,
        "A job document with all that travels in it has at most 102,400 bytes.",
        413,
    ),
    (
        lambda error: error.status in (400, 422),
        "cluster-refused",
        _DID_NOT,
        "Change what it names, then submit again.",
        422,
    ),
    (lambda error: error.is_passing, "cluster-busy", _DID_NOT, "Try again in a moment.", 503),
)
