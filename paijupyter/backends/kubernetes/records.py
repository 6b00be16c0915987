"""How a task ended, from what its pod says: the record of its boot process, else what Kubernetes knows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from paijupyter.backends.base import Exit, State, TaskStatus
from paijupyter.backends.kubernetes.facts import Ended, Pod
from paijupyter.protocol.names import task_key

_THE_TASK = "The task "  # how the boot process, which knows no other, calls it
_LAST_LINES = 20

# Why Kubernetes ended a pod (condition DisruptionTarget, or the pod's own reason): our reason, and words.
_DISRUPTIONS: Mapping[str, tuple[str, str]] = {
    "PreemptionByScheduler": ("preempted", "had to make room for a pod of higher priority"),
    "EvictionByEvictionAPI": ("evicted", "was evicted, as when its node is drained"),
    "DeletionByTaintManager": (
        "node-lost",
        "was ended because its node got a taint that it does not tolerate",
    ),
    "DeletionByPodGC": ("node-lost", "was ended because its node is gone"),
    "TerminationByKubelet": ("evicted", "was ended by its node"),
    "Preempting": ("preempted", "had to make room for a pod that its node needs more"),
    "Evicted": ("evicted", "was evicted by its node"),
    "NodeLost": ("node-lost", "was lost with its node"),
    "NodeShutdown": ("node-lost", "was ended because its node was shut down"),
    "Shutdown": ("node-lost", "was ended because its node was shut down"),
    "Terminated": ("node-lost", "was ended because its node was shut down"),
    "DeadlineExceeded": ("deadline", "reached its deadline (activeDeadlineSeconds)"),
    "UnexpectedAdmissionError": ("refused", "was refused by its node"),
    "OutOfcpu": ("evicted", "did not fit on its node any more"),
    "OutOfmemory": ("evicted", "did not fit on its node any more"),
    "OutOfpods": ("evicted", "did not fit on its node any more"),
}
DISRUPTED = frozenset({"preempted", "evicted", "node-lost"})
"""Reasons in which the job has no part."""


def final_status(pod: Pod, role: str, *, ending: bool) -> TaskStatus | None:
    """Return how a task ended; None while it has not.

    Args:
        pod: its pod.
        role: its role, as the document has it.
        ending: whether the job was decided or told to stop, so that a pod that vanished was meant to.
    """
    if not pod.has_ended:
        return None
    ended = pod.ended
    key = task_key(role, pod.index)
    record = _record(ended)
    state, reason, message = _verdict(pod, ended, record, key, ending)
    return TaskStatus(
        role,
        pod.index,
        pod.attempt,
        state,
        reason,
        message,
        _exit(ended, record),
        _time(record, "startedAt") or (ended.started_at if ended else None),
        _time(record, "endedAt") or (ended.ended_at if ended else None),
    )


def _verdict(
    pod: Pod, ended: Ended | None, record: Mapping[str, Any] | None, key: str, ending: bool
) -> tuple[State, str, str]:
    disruption = _disruption(pod)
    if record is not None and record.get("reason") not in ("stopped", "lost"):
        return _by_record(record, ended, key)
    if ended is not None and ended.reason == "OOMKilled":
        return "failed", "out-of-memory", f"{key} used more memory than its limit and was killed"
    if disruption is not None:
        reason, words = disruption
        return "failed", reason, f"{key} {words}{_evidence(pod)}"
    if record is not None and record.get("reason") == "stopped":
        if ending or record.get("stoppedBy") == "board":
            return "stopped", "", ""
        return "failed", "lost", f"{key} was told to end by somebody else: its pod `{pod.name}` was deleted"
    if ended is None:
        return _without_an_end(pod, key, ending)
    if ended.code == 0:
        return "succeeded", "", ""
    if ended.reason in ("StartError", "ContainerCannotRun") or ended.code == 128:
        return "failed", "start", f"{key} could not be started: {_not_started(_said(ended))}"
    if ending:
        return "stopped", "", f"{key} did not end in time and was killed."
    if pod.written:
        return "failed", "user", f"{key} ended with exit code {ended.code}"
    if ended.code in (137, 143):
        return "failed", "lost", f"{key} was killed from outside (exit code {ended.code}), {_OFTEN_MEMORY}"
    return (
        "failed",
        "lost",
        f"{key} ended with exit code {ended.code} before it could say why: {_said(ended)}",
    )


_OFTEN_MEMORY = "often because memory ran out"


def _by_record(record: Mapping[str, Any], ended: Ended | None, key: str) -> tuple[State, str, str]:
    code, signal, reason = record.get("code"), record.get("signal"), str(record.get("reason") or "")
    said = str(record.get("message") or "")
    if code == 0 and signal is None and not reason:
        return "succeeded", "", ""
    if ended is not None and ended.reason == "OOMKilled" and reason in ("", "user"):
        # The node counted the task's memory, whichever of its processes the kernel chose.
        return "failed", "out-of-memory", f"{key} used more memory than its limit and was killed"
    if reason in ("", "user"):
        how = f"was ended by {signal}" if signal else f"ended with exit code {code}"
        return "failed", "user", f"{key} {how}"
    if said.startswith(_THE_TASK):
        return "failed", reason, f"{key} {said.removeprefix(_THE_TASK)}"
    return "failed", reason, f"{key}: {said or reason}"


def _without_an_end(pod: Pod, key: str, ending: bool) -> tuple[State, str, str]:
    if ending:
        return "stopped", "", ""
    if pod.phase == "Succeeded":
        return "succeeded", "", ""
    return "failed", "lost", f"{key} is gone: its pod `{pod.name}` was deleted"


def _disruption(pod: Pod) -> tuple[str, str] | None:
    condition = pod.conditions.get("DisruptionTarget")
    if condition is not None and condition.is_true and condition.reason in _DISRUPTIONS:
        return _DISRUPTIONS[condition.reason]
    return _DISRUPTIONS.get(pod.reason)


def _evidence(pod: Pod) -> str:
    condition = pod.conditions.get("DisruptionTarget")
    said = pod.message or (condition.message if condition else "")
    where = f" (node {pod.node})" if pod.node else ""
    return f"{where}: {said.rstrip('.')}" if said else where


def _record(ended: Ended | None) -> Mapping[str, Any] | None:
    """Read what the boot process wrote last; anything else is the end of the log, put there by the node."""
    if ended is None or not ended.message.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(ended.message)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "schema" in found else None


def _exit(ended: Ended | None, record: Mapping[str, Any] | None) -> Exit | None:
    if record is not None:
        return Exit(record.get("code"), record.get("signal"), tuple(record.get("lastLines") or ()))
    if ended is None:
        return None
    lines = tuple(ended.message.splitlines()[-_LAST_LINES:])
    return Exit(ended.code, None, lines)


def _said(ended: Ended) -> str:
    return (ended.message.strip().splitlines() or [ended.reason])[-1].rstrip(".")


def _not_started(said: str) -> str:
    """Say what the image lacks, where that is why."""
    found = re.search(r'exec: "([^"]+)": (?:executable file not found|stat [^:]*: no such file)', said)
    if found is None:
        return said
    name = found[1].rpartition("/")[2]
    if name.startswith("python"):
        return (
            f"its image has no `{found[1]}` (it needs a Python from 3.6 on, which the setting `python` names)"
        )
    return f"its image has no `{found[1]}`"


def _time(record: Mapping[str, Any] | None, name: str) -> float | None:
    value = (record or {}).get(name)
    return float(value) if isinstance(value, (int, float)) else None
