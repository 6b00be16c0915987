"""What a server says of jobs, read from its JSON: every key may be absent, unknown ones are left alone. Pure.

Times are seconds since the epoch (the server's are milliseconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FINAL = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
KNOWN = FINAL | {"WAITING", "RUNNING", "STOPPING"}
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Spec:
    """What the catalogue of exit codes says of one (openpai.md 6.4)."""

    code: int | None = None
    phrase: str = ""
    type: str = ""
    behavior: str = ""
    reaction: str = ""
    reason: str = ""
    solution: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """One job as the list has it; two that are equal mean that nothing has changed.

    Attributes:
        name: without its user.
        attempt: number of the current attempt, as far as the list tells.
        retries: of which kind, and how many.
    """

    name: str
    user: str
    state: str
    sub_state: str = ""
    execution: str = ""
    attempt: int = 0
    retries: tuple[tuple[str, int], ...] = ()
    retry_delay: float | None = None
    exit_code: int | None = None
    launched_at: float | None = None
    ended_at: float | None = None
    submitted_at: float | None = None

    @property
    def is_final(self) -> bool:
        """Whether the job has ended for good."""
        return self.state in FINAL


@dataclass(frozen=True, slots=True)
class Task:
    """One task of an attempt. ``log`` is the path of its list of logs."""

    role: str
    index: int
    state: str
    node: str = ""
    pod: str = ""
    ports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    log: str = ""
    exit_code: int | None = None
    spec: Spec = Spec()
    diagnostics: str = ""
    retries: int = 0
    attempt: int = 0
    launched_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    """One job with its tasks.

    Attributes:
        summary: as in the list.
        attempt: number of the attempt, None while there is none.
        attempt_state: of that attempt.
        spec: of its exit code.
        origin_code: exit status of the user's command that decided it.
        user_lines: what that command said last.
        diagnostics: why it ended, as the server found it.
        trigger: role and index of the task that decided it.
        trigger_message: which rule decided it.
    """

    summary: Summary
    attempt: int | None
    attempt_state: str
    spec: Spec
    exit_code: int | None = None
    origin_code: int | None = None
    user_lines: tuple[str, ...] = ()
    diagnostics: str = ""
    trigger: tuple[str, int] | None = None
    trigger_message: str = ""
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One event of Kubernetes about a job; ``at`` is 0.0 where it has no time."""

    reason: str
    message: str
    is_warning: bool
    at: float
    role: str = ""
    index: int | None = None


def summary_of(data: Object, user: str = "") -> Summary:
    """Read a job of the list, or the ``jobStatus`` of a detail with its name."""
    found = mapping(data.get("retryDetails"))
    return Summary(
        name=text(data.get("name")),
        user=text(data.get("username")) or user,
        state=text(data.get("state")) or "UNKNOWN",
        sub_state=text(data.get("subState")),
        execution=text(data.get("executionType")),
        attempt=whole(data.get("attemptId")) or whole(data.get("retries")) or 0,
        retries=tuple(sorted((str(kind), whole(count) or 0) for kind, count in found.items())),
        retry_delay=number(data.get("retryDelayTime")),
        exit_code=whole(data.get("appExitCode")),
        launched_at=seconds(data.get("launchedTime")),
        ended_at=seconds(data.get("completedTime")),
        submitted_at=seconds(data.get("submissionTime")) or seconds(data.get("createdTime")),
    )


def detail_of(data: Object) -> Detail:
    """Read the detail of a job, or of one of its attempts."""
    status = mapping(data.get("jobStatus"))
    runtime = mapping(mapping(status.get("appExitMessages")).get("runtime"))
    role = text(status.get("appExitTriggerTaskRoleName"))
    index = whole(status.get("appExitTriggerTaskIndex"))
    return Detail(
        summary=summary_of({**status, "name": data.get("name")}),
        attempt=whole(status.get("attemptId")),
        attempt_state=text(status.get("attemptState")),
        spec=spec_of(status.get("appExitSpec")),
        exit_code=whole(status.get("appExitCode")),
        origin_code=whole(runtime.get("originUserExitCode")),
        user_lines=_lines(mapping(runtime.get("errorLogs")).get("user")),
        diagnostics=text(status.get("appExitDiagnostics")),
        trigger=(role, index) if role and index is not None else None,
        trigger_message=text(status.get("appExitTriggerMessage")),
        tasks=tuple(_tasks(mapping(data.get("taskRoles")))),
    )


def events_of(data: Any) -> tuple[Event, ...]:
    """Read events, the oldest first; those without a time come last, as the scheduler's newest word."""
    items = data.get("data") if isinstance(data, Mapping) else data
    found = []
    for each in items if isinstance(items, list) else ():
        if isinstance(each, Mapping):
            at = _time(each.get("lastTimestamp")) or _time(each.get("firstTimestamp")) or 0.0
            kind, index = text(each.get("type")), whole(each.get("taskIndex"))
            role = text(each.get("taskroleName"))
            found.append(
                Event(text(each.get("reason")), text(each.get("message")), kind == "Warning", at, role, index)
            )
    return tuple(sorted(found, key=lambda event: event.at or float("inf")))


def spec_of(data: Any) -> Spec:
    """Read an exit spec."""
    spec = mapping(data)
    solution = spec.get("solution")
    return Spec(
        code=whole(spec.get("code")),
        phrase=text(spec.get("phrase")),
        type=text(spec.get("type")),
        behavior=text(spec.get("behavior")),
        reaction=text(spec.get("reaction")),
        reason=text(spec.get("reason")),
        solution=tuple(text(each) for each in solution if text(each)) if isinstance(solution, list) else (),
    )


def _tasks(roles: Object) -> list[Task]:
    found = []
    for name, role in roles.items():
        statuses = mapping(role).get("taskStatuses")
        for each in statuses if isinstance(statuses, list) else ():
            if isinstance(each, Mapping) and whole(each.get("taskIndex")) is not None:
                found.append(_task(str(name), each))
    return found


def _task(role: str, data: Object) -> Task:
    ports = {
        str(label): tuple(int(port) for port in str(numbers).split(",") if port.strip().isdigit())
        for label, numbers in mapping(data.get("containerPorts")).items()
    }
    return Task(
        role=role,
        index=whole(data.get("taskIndex")) or 0,
        state=text(data.get("taskState")) or "UNKNOWN",
        node=text(data.get("containerNodeName")) or text(data.get("containerIp")),
        pod=text(data.get("containerId")),
        ports=ports,
        log=text(data.get("containerLog")),
        exit_code=whole(data.get("containerExitCode")),
        spec=spec_of(data.get("containerExitSpec")),
        diagnostics=text(data.get("containerExitDiagnostics")),
        retries=whole(data.get("retries")) or 0,
        attempt=whole(data.get("attemptId")) or 0,
        launched_at=seconds(data.get("launchedTime")),
        ended_at=seconds(data.get("completedTime")),
    )


def mapping(value: Any) -> Object:
    """Return a mapping, an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def text(value: Any) -> str:
    """Return a text, "" for anything else."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """Return a whole number, None for anything else."""
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def number(value: Any) -> float | None:
    """Return a number, None for anything else."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def seconds(value: Any) -> float | None:
    """Return the seconds of a time in milliseconds."""
    found = number(value)
    return None if found is None else found / 1000


def _time(value: Any) -> float | None:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text(value).replace("Z", "+00:00")).timestamp() if value else None
    except ValueError:
        return None


def _lines(value: Any) -> tuple[str, ...]:
    return tuple(line for line in text(value).splitlines() if line.strip())[-20:]
