"""A plain client of the scripted server, for tests of the server itself."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Told:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return its body as values."""
        return json.loads(self.body)


def ask(
    url: str,
    method: str,
    path: str,
    token: str | None = None,
    body: str | bytes | Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Told:
    """Send one request and return what is answered, whatever its status."""
    place = urlsplit(url)
    sent = dict(headers or {})
    if token is not None:
        sent.setdefault("Authorization", f"Bearer {token}")
    if isinstance(body, Mapping):
        sent.setdefault("Content-Type", "application/json")
        body = json.dumps(body)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    try:
        connection.request(method, path, body.encode() if isinstance(body, str) else body, sent)
        answer = connection.getresponse()
        return Told(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()
