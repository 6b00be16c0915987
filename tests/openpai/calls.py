"""One request on its way through the API."""

from __future__ import annotations

import json
from typing import Any

from tornado.httputil import HTTPServerRequest

from tests.openpai.accounts import Token
from tests.openpai.answers import Refused


class Call:
    """One request, who asks it, and what is in it."""

    def __init__(self, request: HTTPServerRequest, user: str, token: Token | None) -> None:
        self.request, self.user, self.token = request, user, token
        self.query = {key: values[-1].decode() for key, values in request.arguments.items()}

    def json(self) -> dict[str, Any]:
        """Return the body of a form or JSON.

        Raises:
            Refused: 400 without a code, as its parser has it.
        """
        if "urlencoded" in self.request.headers.get("Content-Type", ""):
            return dict(self.query)
        try:
            found = json.loads(self.request.body or b"{}")
        except ValueError as error:
            raise Refused(400, None, f"Unexpected token: {error}") from None
        return found if isinstance(found, dict) else {}
