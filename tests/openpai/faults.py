"""What may go wrong between a client and the server, switched on by a test."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field

from tests.openpai.answers import Answer, Refused, html


@dataclass
class Fault:
    """One thing that goes wrong for requests of a method whose path matches.

    Attributes:
        instead: answer in place of the true one.
        after: whether the request is carried out all the same.
        cut: send half of the body and close.
        drop: close without an answer.
        held: the answer waits until this is set.
        times: how many requests it befalls; None: until it is lifted.
        met: how many it has befallen.
    """

    method: str
    path: str
    instead: Answer | None = None
    after: bool = False
    cut: bool = False
    drop: bool = False
    held: threading.Event | None = None
    times: int | None = 1
    met: int = field(default=0)

    def befalls(self, method: str, path: str) -> bool:
        """Say whether a request is meant, and count it."""
        if self.method not in (method, "*") or not re.search(self.path, path):
            return False
        if self.times is not None and self.met >= self.times:
            return False
        self.met += 1
        return True


def portal() -> Answer:
    """Return the portal's page, as a wrong address or a proxy gives it: 200 and HTML."""
    return html()


def bad_gateway() -> Answer:
    """Return what a proxy says of a server that is down."""
    return html(502, "502 Bad Gateway")


def unauthorized() -> Answer:
    """Return what an expired or revoked token gets."""
    return Refused(401, "UnauthorizedUserError", "Your token is invalid.").answer()


def too_many(retry_after: int = 60) -> Answer:
    """Return what is over the limit."""
    headers = {
        "X-RateLimit-Limit": "120",
        "X-RateLimit-Remaining": "0",
        "Retry-After": str(retry_after),
        "Content-Type": "text/html; charset=utf-8",
    }
    return Answer(429, b"Too many requests, please try again later.", headers)


def broken() -> Answer:
    """Return an error of the server."""
    return Refused(500, "UnknownError", "Something went wrong.").answer()


def no_job() -> Answer:
    """Return 404 NoJobError."""
    return Refused(404, "NoJobError", "Job is not found.").answer()
