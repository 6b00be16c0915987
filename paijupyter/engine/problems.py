"""One way from an exception to a problem document (RFC 9457)."""

from __future__ import annotations

import errno
import http
import logging
from types import TracebackType
from typing import Any

from tornado.web import HTTPError

from paijupyter.errors import PaiJupyterError

_log = logging.getLogger(__name__)
_FULL = {errno.ENOSPC, errno.EDQUOT}


def as_error(error: BaseException, traceback: TracebackType | None = None) -> PaiJupyterError:
    """Turn any exception into an error for people; what nobody foresaw is logged with its traceback."""
    if isinstance(error, PaiJupyterError):
        return error
    if isinstance(error, HTTPError):
        return _of_http(error)
    if isinstance(error, OSError) and error.errno in _FULL:
        return PaiJupyterError(
            "disk-full",
            f"The disk of the job server is full: {error.strerror}.",
            "Delete old jobs (`%paijob delete`), or set PAIJUPYTER_DATA_DIR to a folder with more space.",
            507,
        )
    _log.error("a request failed", exc_info=(type(error), error, traceback or error.__traceback__))
    return PaiJupyterError(
        "internal-error",
        f"The job server failed on this request ({type(error).__name__}).",
        "Its log, engine.log in the runtime folder, has the details.",
        500,
    )


def document(error: PaiJupyterError) -> dict[str, Any]:
    """Return the problem document of an error."""
    return error.to_problem_json()


def _of_http(error: HTTPError) -> PaiJupyterError:
    status = error.status_code
    phrase = http.HTTPStatus(status).phrase if status in http.HTTPStatus._value2member_map_ else "Error"
    return PaiJupyterError(
        f"http-{status}", f"The request was refused: {error.log_message or phrase}.", "", status
    )
