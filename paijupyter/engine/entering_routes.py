"""The rows of the table of routes that lead into running tasks."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import entering
from paijupyter.engine.route import LINES, Answer, Route

_COMMAND = {"type": "array", "items": s.TEXT, "minItems": 1, "maxItems": 1000}
# 16 MiB, which is what goes through; the rest is for files.
_BASE64 = {
    "type": "string",
    "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    "maxLength": 24 * 2**20,
}
_PORT = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, s.PLAIN]}

ENTERING_ROUTES = (
    Route(
        "POST",
        "/v1/jobs/{ref}/exec",
        entering.run,
        "Run a command in a running task",
        {200: Answer("Lines {stream, data} with what it prints, in base64; last {exit}.", s.OBJECT, LINES)},
        body=s.strict("command", command=_COMMAND, task=s.PLAIN, stdin=_BASE64),
        problems=(404, 409),
    ),
    Route(
        "POST",
        "/v1/jobs/{ref}/forward",
        entering.forward,
        "Listen on the engine's host for a port of a running task, until its job has ended",
        {
            200: Answer(
                "The number on this host.",
                s.record("task port local", task=s.TEXT, port=s.COUNT, local=s.COUNT),
            )
        },
        body=s.strict("port", port=_PORT, task=s.PLAIN),
        problems=(404, 409),
    ),
    Route(
        "POST",
        "/v1/adopt",
        entering.adopt,
        "Take over unfinished jobs that another host submitted",
        {
            200: Answer(
                "Those that were taken over.",
                s.record("profile jobs", profile=s.TEXT, jobs=s.many(s.named("Job"))),
            )
        },
        body=s.strict("", profile=s.PLAIN, user=s.PLAIN),
        problems=(404, 409, 422),
    ),
)
