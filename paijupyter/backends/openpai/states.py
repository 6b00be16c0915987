"""States of OpenPAI in our words, and why a job ended; the original stands in the message. Pure.

The states are those of openpai.md 6.2, the exit codes those of its catalogue (6.4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from paijupyter.backends.base import Exit, State, TaskStatus
from paijupyter.backends.openpai.answers import FINAL, Detail, Event, Spec, Summary, Task
from paijupyter.protocol.names import converted, task_key

STOP_REQUESTED, PEER_ENDED = -210, -220
_TASK_STATES: Mapping[str, State] = {
    "WAITING": "waiting",
    "RUNNING": "running",
    "STOPPING": "running",
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "STOPPED": "stopped",
}
_NOT_CREATED = frozenset({"AttemptCreationPending", "AttemptCreationRequested"})
_ENDING = frozenset({"AttemptDeletionPending", "AttemptDeletionRequested", "AttemptDeleting"})
# Exit code of the catalogue → our reason; others by their type.
REASONS: Mapping[int, str] = {
    -100: "internal",
    -101: "internal",
    -200: "refused",
    -1000: "evicted",
    -1001: "node-lost",
    -1002: "refused",
    -1003: "preempted",
    -1004: "deadline",
    -1005: "refused",
    -1006: "refused",
    -1100: "refused",
    -1200: "out-of-memory",
    -1202: "start",
    -1203: "start",
    -1205: "start",
    -1300: "start",
    1: "start",
    221: "out-of-memory",
    226: "out-of-memory",
    249: "barrier-timeout",
    250: "barrier-timeout",
    251: "barrier-timeout",
    252: "barrier-timeout",
    253: "ports",
    254: "start",
    256: "start",
}
_PLATFORM = frozenset({"PLATFORM_FAILURE", "RESOURCE_ALLOCATION_TIMEOUT"})
# Exit status of our boot program → the failure of ours that it stands for (`paijupyter.runtime.codes`).
BOOT_CODES: Mapping[int, str] = {
    41: "package",
    42: "requirements",
    43: "barrier-timeout",
    44: "data",
    45: "secret",
    46: "no-shell",
    47: "deadline",
    48: "lost",
    49: "internal",
}
_NOTE = "[paijupyter]"
_SIGNAL_STATUSES = (137, 143)
_LOOP = 5  # retries of the platform after which a job is said to go round in circles
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Position:
    """Where a job stands, in our words."""

    state: State
    reason: str = ""
    message: str = ""


def position(summary: Summary, detail: Detail | None, events: Sequence[Event] = ()) -> Position | None:
    """Return where an unfinished job stands; None where the server does not say.

    Args:
        summary: of the list.
        detail: of the job, if it is known.
        events: of the job, if they were asked for.
    """
    if summary.state == "STOPPING" or (summary.execution == "STOP" and summary.state not in FINAL):
        return Position(
            "running" if summary.state != "WAITING" else "waiting", "stopping", _original(summary)
        )
    if summary.state == "WAITING":
        return _waiting(summary, detail, events)
    if summary.state != "RUNNING":
        return None
    if summary.sub_state == "AttemptCompleted":
        return Position("waiting", "retry-delay", _retrying(summary, detail))
    if summary.sub_state in _ENDING:
        return Position("running", "finishing", _original(summary))
    return Position("running", "", _loop(summary))


def outcome(summary: Summary, detail: Detail | None, names: Mapping[str, str], *, booted: bool) -> Position:
    """Return how a job that is final ended.

    Args:
        summary: of the list.
        detail: of the job, None where it could not be had.
        names: of the roles, by how the server calls them.
        booted: whether our boot program ran its commands.
    """
    if summary.state == "SUCCEEDED":
        return Position("succeeded")
    if summary.state == "STOPPED":
        return Position("stopped", "", _sentence(detail.spec.reason if detail else ""))
    if detail is None:
        return Position("failed", _reason(summary.exit_code, None), _original(summary))
    task = deciding(detail)
    who = task_key(names.get(task.role, task.role), task.index) if task else "The job"
    origin, lines = runtime_error(task.diagnostics if task else detail.diagnostics)
    origin = detail.origin_code if origin is None else origin
    reason = _reason(detail.exit_code, detail.spec, origin, detail.user_lines or lines, booted)
    return Position("failed", reason, _failure(who, detail, origin, lines))


def deciding(detail: Detail) -> Task | None:
    """Return the task that decided a failure: the one named, else the first that failed."""
    for task in detail.tasks:
        if (task.role, task.index) == detail.trigger:
            return task
    failed = [task for task in detail.tasks if task.state == "FAILED"]
    return min(failed, key=lambda task: task.ended_at or 0.0, default=None)


def status_of(task: Task, names: Mapping[str, str], attempt: int, *, booted: bool) -> TaskStatus | None:
    """Return a task in our words; None where the server does not say how it is."""
    state = _TASK_STATES.get(task.state)
    if state is None:
        return None
    role = names.get(task.role, task.role)
    started = task.launched_at if state != "waiting" else None
    if state == "stopped" and task.launched_at == task.ended_at:
        started = None  # what never started has its end here (openpai.md 8.3)
    over = state in ("succeeded", "failed", "stopped")
    ended, reason, message = None, "", ""
    if state == "succeeded":
        ended = Exit(0)
    elif state == "failed":
        origin, lines = runtime_error(task.diagnostics)
        ended = Exit(origin, None, lines)
        reason = _reason(task.exit_code, task.spec, origin, lines, booted)
        message = _sentence(_what(task.exit_code, task.spec, origin))
    elif task.state == "STOPPING":
        reason = "stopping"
    return TaskStatus(
        role, task.index, attempt, state, reason, message, ended, started, task.ended_at if over else None
    )


def role_names(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the document's roles by how the server calls them (openpai.md 5.4)."""
    return {converted(str(name)): str(name) for name in document.get("taskRoles") or {}}


def runtime_error(diagnostics: str) -> tuple[int | None, tuple[str, ...]]:
    """Return exit status and last lines of the user's command, which stand as YAML in the diagnostics."""
    found = re.search(r"originUserExitCode:\s*(-?\d+)", diagnostics)
    origin = int(found[1]) if found else None
    block = re.search(r"containers:\n.*", diagnostics, re.DOTALL)
    lines: tuple[str, ...] = ()
    if block:
        try:
            containers = yaml.safe_load(block[0])["containers"]
            message = next(each["message"] for each in containers if each.get("name") == "app")
            inner = message.partition("[PAI_RUNTIME_ERROR_START]")[2].partition("[PAI_RUNTIME_ERROR_END]")[0]
            told = (yaml.safe_load(inner) or {}).get("errorLogs") or {}
            lines = tuple(line for line in str(told.get("user") or "").splitlines() if line.strip())[-20:]
        except (yaml.YAMLError, KeyError, TypeError, AttributeError, StopIteration):
            lines = ()
    return origin, lines


def _waiting(summary: Summary, detail: Detail | None, events: Sequence[Event]) -> Position:
    if summary.sub_state in _NOT_CREATED:
        return Position(
            "waiting", "queued", f"The cluster has not created its tasks yet ({_states(summary)})."
        )
    tasks = detail.tasks if detail else ()
    left = [task for task in tasks if not task.node]
    of_tasks = f"{len(tasks) - len(left)} of {len(tasks)} tasks have their place"
    found = _from_events(events)
    if tasks and left and len(left) < len(tasks):
        why = f": {found.message}" if found else ""
        return Position("waiting", "partial-gang", _sentence(f"{of_tasks}, the others have none{why}"))
    if found is not None:
        return found
    if tasks and left:
        return Position("waiting", "queued", f"No task has its place yet ({_states(summary)}).")
    return Position("waiting", "starting", _original(summary))


# Words in events → our reason for waiting; the newest event that says one is taken.
_EVENTS: Sequence[tuple[str, str]] = (
    (r"FailedScheduling", "unschedulable"),
    (r"FailedMount|FailedAttachVolume", "volume"),
    (r"ImagePullBackOff|ErrImagePull|ErrImageNeverPull|InvalidImageName|Failed to pull image", "image"),
    (r"CreateContainerConfigError|FailedCreatePodSandBox", "config"),
    (r"CreateFrameworkPermanentFailed", "refused"),
)


def _from_events(events: Sequence[Event]) -> Position | None:
    scheduled = {(event.role, event.index) for event in events if event.reason == "Scheduled"}
    for event in reversed(events):
        if event.reason == "FailedScheduling" and (event.role, event.index) in scheduled:
            continue  # without times only this tells that it is over
        if not event.is_warning and event.reason not in ("Pulling", "BackOff"):
            continue
        text = f"{event.reason}: {event.message}"
        for pattern, reason in _EVENTS:
            if re.search(pattern, text):
                return Position("waiting", reason, _sentence(_best(events, reason, event)))
        if event.reason == "Pulling":
            return Position("waiting", "image", _sentence(event.message))
    return None


def _best(events: Sequence[Event], reason: str, event: Event) -> str:
    """Return the message that says most: of several on an image the one with the registry's answer."""
    if reason != "image":
        return event.message
    said = [each.message for each in events if each.message.startswith("Failed to pull image")]
    return said[-1] if said else event.message


def _retrying(summary: Summary, detail: Detail | None) -> str:
    why = detail.spec.reason if detail else ""
    when = f" in {summary.retry_delay:.0f} s" if summary.retry_delay else ""
    return _sentence(f"{why or 'The attempt failed'}; the cluster tries again{when} ({_states(summary)})")


def _loop(summary: Summary) -> str:
    """Warn of a job that the cluster starts again and again (openpai.md 6.4)."""
    platform = dict(summary.retries).get("platform", 0)
    if platform < _LOOP:
        return ""
    return (
        f"The cluster has started it {platform} times anew, without a delay or an end: a command that exits "
        "with 137 or 143 counts as a failure of the platform. Stop it if that goes on."
    )


def _reason(
    code: int | None,
    spec: Spec | None,
    origin: int | None = None,
    lines: Sequence[str] = (),
    booted: bool = False,
) -> str:
    if (
        booted
        and origin is not None
        and origin in BOOT_CODES
        and any(line.startswith(_NOTE) for line in lines[-3:])
    ):
        return BOOT_CODES[origin]
    if code is not None and code in REASONS:
        return REASONS[code]
    if spec is not None and spec.type in _PLATFORM and origin not in _SIGNAL_STATUSES:
        return "internal"
    return "user"


def _failure(who: str, detail: Detail, origin: int | None, lines: Sequence[str]) -> str:
    words = [_sentence(f"{who} failed: {_what(detail.exit_code, detail.spec, origin)}")]
    if origin is None and detail.diagnostics and detail.spec.code != detail.origin_code and not lines:
        words.append(_sentence(_short(detail.diagnostics)))
    if detail.trigger_message and len(detail.tasks) > 1:
        words.append(_sentence(detail.trigger_message))
    if detail.spec.solution:
        words.append(_sentence(f"OpenPAI advises: {'; '.join(detail.spec.solution)}"))
    return " ".join(words)


def _what(code: int | None, spec: Spec, origin: int | None) -> str:
    said = f"its command exited with {origin}" if origin is not None else spec.reason or "it did not succeed"
    known = f"{code} {spec.phrase}".strip() if code is not None else ""
    reason = f", {spec.reason}" if origin is not None and spec.reason and spec.phrase != _UNKNOWN else ""
    return f"{said}{reason}" + (f" (OpenPAI's code {known})" if known else "")


_UNKNOWN = "PAIRuntimeUnknownFailed"


def _original(summary: Summary) -> str:
    return f"OpenPAI says {_states(summary)}."


def _states(summary: Summary) -> str:
    return f"{summary.state}/{summary.sub_state}" if summary.sub_state else summary.state


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return f"{text.rstrip('. ')}." if text else ""


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
