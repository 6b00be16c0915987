"""The table of a group: one row per experiment, of what its job tells."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.clock import now
from paijupyter.jobs.group import Entry, Group
from paijupyter.jobs.index import Row

_TAIL = 1 << 11  # bytes of a log in which its last line is looked for
_LONGEST = 200
_OWN = "[paijupyter] "


async def rows_of(
    catalog: Catalog, group: Group, entries: Sequence[Entry], *, series: bool = False
) -> list[dict[str, Any]]:
    """Return one row per experiment.

    Args:
        catalog: the jobs.
        group: the group.
        entries: its experiments to tell of.
        series: with the course of every metric, for plots.
    """
    jobs = {row.id: row for row in catalog.index.of_group(group.id)}
    rows, logs = list[dict[str, Any]](), list[tuple[int, Path]]()
    for entry in entries:
        job = jobs.get(entry.job or "")
        view = _view(catalog, job) if job is not None else None
        if view is not None:
            logs.append((len(rows), catalog.folder / view["id"] / _log_of(view)))
        rows.append(_row(group, entry, view, series=series))
    said = await asyncio.to_thread(lambda: [_last_line(path) for _, path in logs])
    for (place, _), line in zip(logs, said, strict=True):
        rows[place]["lastLine"] = line
    return rows


def _view(catalog: Catalog, job: Row) -> Mapping[str, Any]:
    """Return a job's view, without its place in the queue: that is counted for each, and nobody asks here."""
    live = catalog.live.get(job.id)
    return live.view() if live is not None else job.view


def _row(group: Group, entry: Entry, view: Mapping[str, Any] | None, *, series: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": entry.key,
        "values": dict(entry.values),
        "state": group.state_of(entry),
        "reason": "",
        "message": "",
        "job": None,
        "name": "",
        "kept": entry.kept,
        "startedAt": None,
        "endedAt": None,
        "seconds": None,
        "node": "",
        "restarts": 0,
        "metrics": {},
        "lastLine": "",
    }
    if entry.problem is not None:
        said = [str(entry.problem.get(name) or "") for name in ("message", "hint")]
        return {
            **row,
            "reason": str(entry.problem.get("code") or ""),
            "message": " ".join(filter(None, said)),
        }
    if view is None:
        waits = row["state"] == "waiting"
        return {**row, "reason": "group" if waits else "", "message": group.waits(entry) if waits else ""}
    metrics = view.get("metrics") or {}
    row.update(
        state=view["state"],
        reason=view.get("reason") or "",
        message=view.get("message") or "",
        job=view["id"],
        name=view["name"],
        startedAt=view.get("startedAt"),
        endedAt=view.get("endedAt"),
        seconds=_seconds(view),
        node=view.get("node") or (view.get("host") if view.get("kind") == "local" else "") or "",
        restarts=view.get("attempt") or 0,
        metrics=dict(metrics.get("last") or {}),
    )
    return {**row, "series": dict(metrics.get("series") or {})} if series else row


def _seconds(view: Mapping[str, Any]) -> float | None:
    """How long it has run, to the end or to now."""
    start = view.get("startedAt")
    if not start:
        return None
    moments = [
        datetime.fromisoformat(str(each).replace("Z", "+00:00"))
        for each in (start, view.get("endedAt") or now())
    ]
    return round(max((moments[1] - moments[0]).total_seconds(), 0.0), 1)


def _log_of(view: Mapping[str, Any]) -> str:
    """Return where the log of the task lies that speaks for the job: the one that failed, else the first."""
    failed = view.get("failedTask") or {}
    first = f"{next(iter(view.get('roles') or {}), '')}-0"
    task = f"{failed['role']}-{failed['index']}" if failed else first
    return f"tasks/{task}/{view.get('attempt') or 0}/log"


def _last_line(path: Path) -> str:
    """Return the last line of a log that is not ours."""
    try:
        with open(path, "rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(log.tell() - _TAIL, 0))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    said = (line.rpartition("\r")[2].strip() for line in reversed(lines))
    return next((line[:_LONGEST] for line in said if line and not line.startswith(_OWN)), "")
