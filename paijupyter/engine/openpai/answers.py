"""Errors as OpenPAI's server answers them: ``{code, message}`` with its codes."""

from __future__ import annotations

import functools
import json
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.route import Handler, Reply
from paijupyter.errors import InvalidDocument, NotFound, PaiJupyterError

BASE = "/openpai"
_NO_API = frozenset({"no-such-route", "http-405"})
_CODES = {
    400: "InvalidParametersError",
    403: "ForbiddenUserError",
    404: "NoJobError",
    409: "ConflictJobError",
    422: "InvalidProtocolError",
}


class Refused(PaiJupyterError):
    """An answer in OpenPAI's own words."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(code, message, "", status)


def in_their_words(handler: Handler) -> Handler:
    """Let a handler answer with OpenPAI's kind of error."""

    @functools.wraps(handler)
    async def answer(call: Call) -> Reply | None:
        try:
            return await handler(call)
        except PaiJupyterError as error:
            return reply_of(error)

    return answer


def no_job(name: str) -> Refused:
    """Return the answer for a job that is not there."""
    return Refused(404, "NoJobError", f"Job {name} is not found.")


def reply_of(error: PaiJupyterError, path: str = "") -> Reply:
    """Return an error as the original answers it.

    Args:
        error: what is wrong.
        path: that of the request.
    """
    if error.code in _NO_API:
        said = f"API {path.removeprefix(BASE)} is not found."
        return Reply({"code": "NoApiError", "message": said}, error.status)
    if isinstance(error, Refused):
        return Reply({"code": error.code, "message": error.message}, error.status)
    if isinstance(error, InvalidDocument):
        return Reply({"code": "InvalidProtocolError", "message": _list(error)}, 400)
    code = "NoJobError" if isinstance(error, NotFound) else _CODES.get(error.status, "UnknownError")
    return Reply({"code": code, "message": str(error)}, error.status)


def _list(error: InvalidDocument) -> str:
    """Return all problems as the original does: the JSON text of a list."""
    found: list[dict[str, Any]] = [
        {"dataPath": problem.path, "message": str(problem)}
        for problem in error.problems
        if problem.severity == "error"
    ]
    return json.dumps(found)
