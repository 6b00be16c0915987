"""How an attempt ended, and changes as plain values: what a backend keeps of a job on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paijupyter.backends.base import Change, Exit, State, TaskStatus


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ends, decided once."""

    state: State
    reason: str = ""
    message: str = ""
    failed_task: str | None = None


def change_of(data: Mapping[str, Any]) -> Change:
    """Rebuild a change from its plain values."""
    return Change(**{**data, "tasks": tuple(_task(task) for task in data["tasks"])})


def _task(data: Mapping[str, Any]) -> TaskStatus:
    if data["exit"]:
        ended = {**data["exit"], "last_lines": tuple(data["exit"]["last_lines"])}
        return TaskStatus(**{**data, "exit": Exit(**ended)})
    return TaskStatus(**data)
