"""How a task ended: from its exit record, or for one whose boot process could write none."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from paijupyter.backends.base import Exit, State, TaskStatus
from paijupyter.backends.jsonfiles import read_json, write_json_once
from paijupyter.backends.local.files import TaskFiles, tail
from paijupyter.backends.told import Task

RESTARTED = "machine-restarted"
_LOST = "The task was lost: its boot process was killed from outside, often because memory ran out."
_FAILED = "The task was lost: its boot process failed with `{said}`."
_KILLED = "The task did not end in time and was killed."
_NEVER_RAN = "The task was stopped before it ran."
_THE_TASK = "The task "  # how the boot process, which knows no other, calls it
_ENDED_WITH_IT = "The task ended because the machine was restarted."


def status(task: Task, attempt: int, facts: dict[str, Any], *, ending: bool) -> TaskStatus:
    """Return the final status of a task from its exit record.

    Args:
        task: the task.
        attempt: number of the attempt.
        facts: its exit record.
        ending: whether the job had been decided when it ended. Only then does a boot process that was told
            to stop make it ``stopped``; told by a stranger, it is the user's failure.
    """
    code, signal = facts.get("code"), facts.get("signal")
    reason = str(facts.get("reason") or "")
    state: State
    if ending and reason == "stopped":
        state, reason = "stopped", ""
    elif code == 0 and signal is None and reason in ("", "stopped"):
        state, reason = "succeeded", ""
    else:
        state, reason = "failed", "user" if reason in ("", "stopped") else reason
    return TaskStatus(
        role=task.role,
        index=task.index,
        attempt=attempt,
        state=state,
        reason=reason,
        message=_message(task.key, state, code, signal, reason, str(facts.get("message") or "")),
        exit=Exit(code, signal, tuple(facts.get("lastLines") or ())),
        started_at=seconds(facts.get("startedAt")),
        ended_at=seconds(facts.get("endedAt")),
    )


def write_for(files: TaskFiles, *, stopped: bool) -> None:
    """Write the exit record of a task whose boot process is gone without one."""
    if stopped:
        message = _KILLED if files.started.exists() else _NEVER_RAN
        _write(files, "stopped", message, "SIGKILL")
    else:
        said = tail(files.boot_log, 1)
        message = _FAILED.format(said=said[0]) if said else _LOST
        _write(files, "lost", message, None)


def write_restarted(files: TaskFiles) -> None:
    """Write the exit record of a task that the end of the machine ended."""
    _write(files, RESTARTED, _ENDED_WITH_IT, None)


def _write(files: TaskFiles, reason: str, message: str, signal: str | None) -> None:
    started = read_json(files.started) or {}
    files.folder.mkdir(parents=True, exist_ok=True)
    write_json_once(
        files.exit,
        {
            "code": None,
            "signal": signal,
            "reason": reason,
            "message": message,
            "startedAt": started.get("at"),
            "endedAt": time.time(),
            "lastLines": tail(files.log),
        },
    )


def _message(key: str, state: str, code: int | None, signal: str | None, reason: str, said: str) -> str:
    if state == "succeeded":
        return ""
    if reason == "user" and signal:
        return f"{key} was ended by {signal}"
    if reason == "user":
        return f"{key} ended with exit code {code}"
    if said.startswith(_THE_TASK):
        return f"{key} {said.removeprefix(_THE_TASK)}"
    return f"{key}: {said or reason}"


def seconds(value: Any) -> float | None:
    """Read a time as a boot process writes it: seconds since the epoch, or ISO 8601."""
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    return None
