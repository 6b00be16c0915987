"""JobView: the one JSON object of a job that every screen shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from paijupyter.jobs.diagnosis import Explanation, Facts, explain
from paijupyter.jobs.life import Life
from paijupyter.jobs.places import place_of
from paijupyter.jobs.record import Record


def job_view(
    record: Record,
    life: Life,
    *,
    outputs: Sequence[Mapping[str, Any]] = (),
    metrics: Mapping[str, Any] | None = None,
    progress: Mapping[str, Any] | None = None,
    usage: Mapping[str, Any] | None = None,
    execution: Mapping[str, Any] | None = None,
    executed: str | None = None,
    ports: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Build the view of a job from its record and life.

    ``mine``, ``staleSince`` and ``position`` belong to the moment of looking: see :func:`at_this_moment`.
    """
    facts, roles = record.facts, record.roles
    counts = life.counts(roles)
    gpus = {role["name"]: role.get("gpu") for role in facts["roles"]}
    failed = _failed_task(life, facts.get("cell"))
    said = _explanation(record, life, failed)
    return {
        "id": record.id,
        "name": facts["name"],
        "shortName": facts["shortName"],
        "profile": record.profile,
        "kind": facts.get("kind"),
        "state": life.state,
        "reason": life.reason,
        "message": said.message or _running_cell(life, execution),
        "advice": said.advice,
        "since": life.since or facts["submittedAt"],
        "staleSince": None,
        "submittedAt": facts["submittedAt"],
        "startedAt": life.started_at,
        "endedAt": life.ended_at,
        "user": facts.get("user"),
        "host": facts.get("host"),
        "mine": False,
        "folder": facts.get("folder"),
        "notebook": facts.get("notebook"),
        "cell": facts.get("cell"),
        "packageSha256": facts.get("packageSha256"),
        "clonedFrom": facts.get("clonedFrom"),
        "resumedFrom": facts.get("resumedFrom"),
        "group": facts.get("group"),
        "attempt": life.attempt,
        "taskTotal": sum(roles.values()),
        "roles": {
            role: {"instances": count, "gpu": gpus.get(role) or 0, "states": counts[role]}
            for role, count in roles.items()
        },
        "failedTask": failed,
        "parameters": json_safe(facts.get("parameters") or {}),
        "secretNames": list(facts.get("secretNames") or ()),
        "secretReferences": dict(facts.get("secretRefs") or {}),
        "data": list(facts.get("data") or ()),
        "declaredOutputs": list(facts.get("outputs") or ()),
        "outputFolder": str(record.folder / "output"),
        "outputs": list(outputs),
        "metrics": dict(metrics or {}),
        "progress": dict(progress) if progress else None,
        "usage": dict(usage) if usage else None,
        "runsNotebook": facts.get("runsNotebook"),
        "execution": dict(execution) if execution else None,
        "executedNotebook": executed,
        "onEnd": dict(life.on_end) if life.on_end else None,
        "position": None,
        "ports": dict(ports or {}),
    }


def at_this_moment(
    view: Mapping[str, Any], *, mine: bool, stale_since: str | None = None, position: int | None = None
) -> dict[str, Any]:
    """Return a view with what only holds now."""
    return {**view, "mine": mine, "staleSince": stale_since, "position": position}


def json_safe(value: Any) -> Any:
    """Return a value as strict JSON can carry it: a number that JSON does not have becomes its word."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _failed_task(life: Life, cell: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if life.state != "failed" or not life.failed_task:
        return None
    task = life.task(life.failed_task)
    role, _, index = life.failed_task.rpartition("-")
    return {
        "role": role,
        "index": int(index) if index.isdigit() else 0,
        "code": task.get("code"),
        "signal": task.get("signal"),
        "reason": task.get("reason") or "",
        "lastLines": list(task.get("lastLines") or ()),
        "message": task.get("message") or "",
        "place": place_of(task.get("lastLines") or (), cell),
    }


def _running_cell(life: Life, execution: Mapping[str, Any] | None) -> str:
    """Say which cell of a notebook runs."""
    if life.state != "running" or not execution or execution["done"]:
        return ""
    said = f"Cell {execution['cell']} of {execution['cells']}"
    return f"{said}: `{execution['line'].replace('`', chr(39))}`" if execution["line"] else said


def _explanation(record: Record, life: Life, failed: Mapping[str, Any] | None) -> Explanation:
    if life.state == "stopped":
        by = f"Stopped by {life.stopped_by}." if life.stopped_by else ""
        return Explanation(by or life.message or "Stopped.")
    if life.state == "waiting" and life.reason == "secret":
        name = record.facts["name"]
        return Explanation(life.message, f"Give it its values again: paijob secret give {name}")
    if life.state == "waiting" and life.reason == "disk":
        return Explanation(life.message, "Free room, for example by deleting old jobs: paijob delete NAME.")
    if life.state != "failed":
        return Explanation(life.message)
    task = failed or {}
    memory = {role["name"]: role.get("memoryMB") for role in record.facts["roles"]}
    return explain(
        Facts(
            task=life.failed_task or "",
            # What is known of the task is nearer to the cause than what is said of the job.
            reason=task.get("reason") or life.reason,
            message=task.get("message") or life.message,
            code=task.get("code"),
            signal=task.get("signal"),
            last_lines=tuple(str(line) for line in task.get("lastLines") or ()),
            memory_mb=memory.get(task.get("role")),
        )
    )
