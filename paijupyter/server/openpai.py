"""OpenPAI's REST API, below ``<base_url>/paijupyter/openpai/``: to its clients the portal's address."""

from __future__ import annotations

import json
import re
from typing import Any

from jupyter_server.auth.decorator import authorized
from tornado import web

from paijupyter.errors import PaiJupyterError
from paijupyter.server.handlers import RESOURCE, PassOn, UploadHandler

_PREFIX = re.compile(r"^/openpai/(?:rest-server/)?")


class OpenPaiAnswers:
    """How both handlers differ from ours: the path, and errors as ``{code, message}``."""

    def target(self) -> str:
        """Return path and query for the engine; clients write ``rest-server`` before the API or do not."""
        path, mark, query = super().target().partition("?")  # type: ignore[misc]
        return _PREFIX.sub("/openpai/", path).rstrip("/") + mark + query

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer as OpenPAI's server does (called by tornado); who has no token gets 401, as there."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        nobody = status_code == 403 and not self.current_user  # type: ignore[attr-defined]
        status = 401 if nobody else error.status if isinstance(error, PaiJupyterError) else status_code
        words = "Guest is not allowed to do this operation." if nobody else str(error or f"Status {status}.")
        code = {401: "UnauthorizedUserError", 403: "ForbiddenUserError", 404: "NoApiError"}.get(status)
        self.set_status(status)  # type: ignore[attr-defined]
        body = json.dumps({"code": code or "UnknownError", "message": words})
        self.finish(body, set_content_type="application/json")  # type: ignore[attr-defined]


class OpenPaiHandler(OpenPaiAnswers, PassOn):
    """All calls but submitting."""

    @web.authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, *_: str) -> None:
        """Look."""
        await self.pass_on()

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def put(self, *_: str) -> None:
        """Stop."""
        await self.pass_on(self.request.body)

    post = delete = put  # there is none; the engine says so in OpenPAI's words


class OpenPaiJobsHandler(OpenPaiAnswers, UploadHandler):
    """Listing jobs, and submitting one, which is running code."""

    _method = "POST"
    _action = "execute"

    @web.authenticated
    @authorized("read", resource=RESOURCE)
    async def get(self, *_: str) -> None:
        """List."""
        await self.pass_on()

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Submit."""
        await self.answer()


_V2 = r"/paijupyter/openpai/(?:rest-server/)?api/v2"
RULES = [(rf"{_V2}/jobs/?", OpenPaiJobsHandler), (rf"{_V2}/.+", OpenPaiHandler)]
