"""Tasks of a job, by page."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.logs import log_size
from paijupyter.jobs.usage import usage_json

LIMIT = 10_000


def task_page(job: LiveJob, attempt: int, offset: int, limit: int) -> dict[str, Any]:
    """Return ``{tasks, total}``; tasks nobody has spoken of yet are waiting.

    Raises:
        UsageProblem: for an offset or a limit that makes no sense.
    """
    if offset < 0 or not 1 <= limit <= LIMIT:
        raise UsageProblem(f"Offset must not be negative, and limit must be from 1 to {LIMIT}.")
    total = sum(job.record.roles.values())
    wanted = _some(job, offset, min(offset + limit, total))
    return {"tasks": [_task(job, role, index, attempt) for role, index in wanted], "total": total}


def _some(job: LiveJob, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield role and index of tasks by their place in the list, without walking through all of them."""
    roles = list(job.record.roles)
    ends = list(itertools.accumulate(job.record.roles.values()))
    for place in range(start, end):
        at = bisect.bisect_right(ends, place)
        yield roles[at], place - (ends[at - 1] if at else 0)


def _task(job: LiveJob, role: str, index: int, attempt: int) -> dict[str, Any]:
    key = f"{role}-{index}"
    told = job.life.task(key, attempt)
    runs = told["state"] == "running" and attempt == job.life.attempt
    return {
        "key": key,
        "role": role,
        "index": index,
        "attempt": attempt,
        "state": told["state"],
        "reason": told.get("reason") or "",
        "message": told.get("message") or "",
        "code": told.get("code"),
        "signal": told.get("signal"),
        "startedAt": told.get("startedAt"),
        "endedAt": told.get("endedAt"),
        "logSize": log_size(job, key, attempt),
        "usage": usage_json(job.usage.get(key)) if runs else None,
    }
