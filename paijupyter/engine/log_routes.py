"""Rows of the route table for logs."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import logs
from paijupyter.engine.route import LINES, TEXT, Answer, Parameter, Route

_TAIL = {"type": "integer", "minimum": 0, "maximum": 1_000_000}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000}

LOG_ROUTES = (
    Route(
        "GET",
        "/v1/jobs/{ref}/logs",
        logs.logs,
        "Read the log of one task (`task`), or of all",
        {
            200: Answer(
                "With `task` bytes from X-Log-Offset; else frames {task, attempt, offset, text, cursor}.",
                s.TEXT,
                f"{TEXT} {LINES}",
            )
        },
        query=(
            Parameter("task", "`<role>-<index>`"),
            Parameter("attempt", "number of the attempt", s.COUNT),
            Parameter("offset", "first byte", s.COUNT),
            Parameter("limit", "bytes at most", {"type": "integer", "minimum": 1, "maximum": 2**53}),
            Parameter("tail", "no more than the last lines", _TAIL),
            Parameter("cursor", "`cursor` of the last frame read"),
            Parameter("at", "`<task>:<offset>`: of all tasks, from some lines before this one on"),
            Parameter("follow", "go on with what is still to come", s.FLAG),
        ),
        problems=(404,),
    ),
    Route(
        "GET",
        "/v1/jobs/{ref}/logs/search",
        logs.search,
        "Search the whole log of one task (`task`), or of all, whatever the case",
        {
            200: Answer(
                "How many lines have the text, and the first of them with their offsets.",
                s.record(
                    "lines hits more",
                    lines=s.COUNT,
                    hits=s.many(
                        s.record(
                            "task attempt offset text",
                            task=s.TEXT,
                            attempt=s.COUNT,
                            offset=s.COUNT,
                            text=s.TEXT,
                        )
                    ),
                    more=s.FLAG,
                ),
            )
        },
        query=(
            Parameter("text", "what the lines shall contain"),
            Parameter("task", "`<role>-<index>`"),
            Parameter("attempt", "number of the attempt", s.COUNT),
            Parameter("most", "how many hits at most", _LIMIT),
        ),
        problems=(404,),
    ),
    Route(
        "GET",
        "/v1/jobs/{ref}/logs/times",
        logs.times,
        "Say when the lines of logs were written",
        {
            200: Answer(
                "Of each place the entries of the time index from there on, up to `until`: what lies between "
                "two offsets was written between their times (milliseconds since the epoch).",
                s.record(
                    "attempt tasks",
                    attempt=s.COUNT,
                    tasks=s.many(
                        s.record(
                            "task offsets times until",
                            task=s.TEXT,
                            offsets=s.many(s.COUNT),
                            times=s.many(s.COUNT),
                            until=s.COUNT,
                        )
                    ),
                ),
            )
        },
        query=(
            Parameter("places", "`<role>-<index>:<offset>`, several with commas"),
            Parameter("attempt", "number of the attempt", s.COUNT),
            Parameter("most", "entries of each place at most", _LIMIT),
        ),
        problems=(404,),
    ),
)
