"""What has become of a job: its events folded, one after the other, into its present state.

The same events give the same life, whether they come from a backend or from ``events.jsonl``. A final state
is never left again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.backends.base import FINAL, Change, TaskStatus
from paijupyter.jobs.clock import iso
from paijupyter.jobs.record import Event

Task = Mapping[str, Any]
_STATES = ("waiting", "running", "succeeded", "failed", "stopped")


@dataclass(frozen=True, slots=True)
class Life:
    """State of a job after some of its events.

    Attributes:
        since: when ``state`` or ``reason`` last changed.
        submitted: whether the backend has taken the job.
        stopped_by: who asked for its end, or "".
        failed_task: key of the task that decided a failure.
        on_end: what became of the profile's exit hook, ``{state, message, at}``, or None.
        tasks: per attempt and task key what was last heard of it; tasks nobody spoke of are not in it.
    """

    state: str = "waiting"
    reason: str = "submitting"
    message: str = ""
    since: str = ""
    attempt: int = 0
    started_at: str | None = None
    ended_at: str | None = None
    submitted: bool = False
    stopped_by: str = ""
    failed_task: str | None = None
    on_end: Mapping[str, Any] | None = None
    tasks: Mapping[int, Mapping[str, Task]] = field(default_factory=dict)

    @property
    def final(self) -> bool:
        """Whether the job has ended for good."""
        return self.state in FINAL

    def after(self, event: Event) -> Life:
        """Return the life after one more event; an unknown event changes nothing."""
        kind = event.get("type")
        if kind == "created":
            return self if self.since else replace(self, since=_text(event.get("at")))
        if kind == "submitted":
            return replace(self, submitted=True)
        if kind == "stop-requested":
            return self._asked_to_stop(event)
        if kind == "change":
            return self._changed(event)
        if kind == "on-end":
            return replace(self, on_end={name: event.get(name) for name in ("state", "message", "at")})
        return self

    def task(self, key: str, attempt: int | None = None) -> Task:
        """Return what is known of a task; once its job or attempt is over, nothing of it runs on."""
        number = self.attempt if attempt is None else attempt
        found = self.tasks.get(number, {}).get(key) or {"state": "waiting"}
        over = self.final or number < self.attempt
        if over and found["state"] not in FINAL:
            return {**found, "state": "stopped"}
        return found

    def counts(self, roles: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Count the tasks of each role per state, in the current attempt."""
        told: dict[str, Counter[str]] = {role: Counter() for role in roles}
        for key in self.tasks.get(self.attempt, {}):
            role, _, index = key.rpartition("-")
            if role in told and index.isdigit() and int(index) < roles[role]:
                told[role][self.task(key)["state"]] += 1
        rest = "stopped" if self.final else "waiting"
        for role, instances in roles.items():
            told[role][rest] += instances - sum(told[role].values())
        return {
            role: {state: counter[state] for state in _STATES if counter[state]}
            for role, counter in told.items()
        }

    def _asked_to_stop(self, event: Event) -> Life:
        if self.final:
            return self
        by = self.stopped_by or _text(event.get("by")) or "user"
        if self.state != "running" or self.reason == "stopping":
            return replace(self, stopped_by=by)
        return replace(self, stopped_by=by, reason="stopping", since=_text(event.get("at")))

    def _changed(self, event: Event) -> Life:
        state, attempt = event.get("state"), event.get("attempt", 0)
        if state not in _STATES or not isinstance(attempt, int):
            return self
        tasks = self._with_tasks(attempt, event.get("tasks") or ())
        if self.final or (attempt < self.attempt and state not in FINAL):
            return replace(self, tasks=tasks)  # what is late may still complete the picture of the tasks
        # An end is an end: a backend that lost the job may not know how many attempts it had.
        attempt = max(attempt, self.attempt)
        at, reason = _text(event.get("at")), _text(event.get("reason"))
        if self.stopped_by and state == "running":
            reason = "stopping"
        if state == "stopped":
            reason = reason or self.stopped_by
        moved = (state, reason, attempt) != (self.state, self.reason, self.attempt)
        return replace(
            self,
            state=state,
            reason=reason,
            message=_text(event.get("message")),
            since=at if moved else self.since,
            attempt=attempt,
            started_at=self.started_at or _start(at, state, tasks),
            ended_at=at if state in FINAL else None,
            failed_task=event.get("failedTask"),
            tasks=tasks,
        )

    def _with_tasks(self, attempt: int, told: Iterable[Any]) -> Mapping[int, Mapping[str, Task]]:
        merged = {number: dict(tasks) for number, tasks in self.tasks.items()}
        for task in told:
            if not isinstance(task, Mapping) or task.get("state") not in _STATES:
                continue
            of_attempt = merged.setdefault(task.get("attempt", attempt), {})
            key = f"{task.get('role')}-{task.get('index')}"
            if of_attempt.get(key, {}).get("state") not in FINAL:
                of_attempt[key] = dict(task)
        return self.tasks if merged == self.tasks else merged


def fold(events: Iterable[Event]) -> Life:
    """Return the life after all of these events."""
    life = Life()
    for event in events:
        life = life.after(event)
    return life


def event_of(change: Change) -> dict[str, Any]:
    """Write a backend's change as an event."""
    return {
        "type": "change",
        "at": iso(change.at),
        "attempt": change.attempt,
        "state": change.state,
        "reason": change.reason,
        "message": change.message,
        "tasks": [_task(task) for task in change.tasks],
        "failedTask": change.failed_task,
    }


def _task(status: TaskStatus) -> dict[str, Any]:
    ended = status.exit
    return {
        "role": status.role,
        "index": status.index,
        "attempt": status.attempt,
        "state": status.state,
        "reason": status.reason,
        "message": status.message,
        "code": ended.code if ended else None,
        "signal": ended.signal if ended else None,
        "lastLines": list(ended.last_lines) if ended else [],
        "startedAt": None if status.started_at is None else iso(status.started_at),
        "endedAt": None if status.ended_at is None else iso(status.ended_at),
    }


def _start(at: str, state: str, tasks: Mapping[int, Mapping[str, Task]]) -> str | None:
    """When the first task started; a job that ended before its first task ran never started."""
    told = [task["startedAt"] for each in tasks.values() for task in each.values() if task.get("startedAt")]
    if told:
        return str(min(told))
    return at if state == "running" else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
