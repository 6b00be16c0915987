"""What the scripted server answers, and its errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = "application/json; charset=utf-8"


@dataclass
class Answer:
    """One answer. `promised` is the length that its header names, if not the true one."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    promised: int | None = None


class Refused(Exception):
    """An error of the API.

    Args:
        status: HTTP status.
        code: OpenPAI's code, None where the original has none.
        message: its sentence.
        headers: more headers.
    """

    def __init__(
        self, status: int, code: str | None, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})

    def answer(self) -> Answer:
        """Return it as an answer."""
        body: dict[str, Any] = {"message": self.message}
        return of_json({"code": self.code, **body} if self.code else body, self.status, self.headers)


def of_json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer of JSON."""
    return Answer(status, json.dumps(body, default=str).encode(), {"Content-Type": JSON, **(headers or {})})


def html(status: int = 200, title: str = "Platform for AI") -> Answer:
    """Return a page, as the portal or a proxy answers to what it does not know."""
    page = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><div id=app></div></body></html>"
    return Answer(status, page.encode(), {"Content-Type": "text/html; charset=utf-8"})
