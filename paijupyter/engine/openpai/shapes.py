"""OpenPAI's job summary and detail, made of our views.

Keys, states and exit codes are those of the original server (version 1.8), measured by recorded exchanges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

View = Mapping[str, Any]
# state → OpenPAI's state and sub-state of the job.
_STATES = {
    "waiting": ("WAITING", "AttemptPreparing"),
    "running": ("RUNNING", "AttemptRunning"),
    "succeeded": ("SUCCEEDED", "Completed"),
    "failed": ("FAILED", "Completed"),
    "stopped": ("STOPPED", "Completed"),
}
_NOT_BEGUN = frozenset({"submitting", "queued", "secret", "disk", "retry-delay"})
STOP_REQUESTED, PEER_ENDED = -210, -220
_UNKNOWN_FAILURE = 255
# reason → exit code.
_CODES = {
    "out-of-memory": -1200,
    "preempted": -1003,
    "evicted": -1000,
    "lost": -1001,
    "machine-restarted": -1001,
    "deadline": -1004,
    "image": 254,
    "ports": 253,
}
# What OpenPAI's catalogue says of an exit code: phrase, issuer, causer, type, stage, behavior, reaction.
_CATALOGUE = {
    int(code): facts
    for code, *facts in map(
        str.split,
        """\
0 Succeeded USER_CONTAINER USER_CONTAINER USER_SUCCESS COMPLETING UNKNOWN NEVER_RETRY
-210 StopFrameworkRequested PAI_FC USER_STOP USER_STOP UNKNOWN PERMANENT NEVER_RETRY
-220 FrameworkAttemptCompletion PAI_FC USER_STOP USER_STOP UNKNOWN PERMANENT NEVER_RETRY
-1000 PodEvicted PAI_K8S PAI_K8S PLATFORM_FAILURE RUNNING TRANSIENT ALWAYS_RETRY
-1001 PodNodeLost PAI_K8S PAI_K8S PLATFORM_FAILURE RUNNING TRANSIENT ALWAYS_RETRY
-1003 PodPreemptedForCriticalPod PAI_K8S PAI_K8S PLATFORM_FAILURE RUNNING TRANSIENT ALWAYS_RETRY
-1004 PodDeadlineExceeded PAI_K8S USER_STOP USER_STOP RUNNING PERMANENT NEVER_RETRY
-1200 UserContainerDockerOOMKilled PAI_DOCKER USER_CONTAINER USER_FAILURE RUNNING PERMANENT NEVER_RETRY
253 ContainerPortConflict PAI_RUNTIME PAI_RUNTIME PLATFORM_FAILURE LAUNCHING TRANSIENT ALWAYS_RETRY
254 ContainerImageNotExists PAI_RUNTIME PAI_RUNTIME USER_FAILURE LAUNCHING PERMANENT NEVER_RETRY
255 PAIRuntimeUnknownFailed PAI_RUNTIME UNKNOWN UNKNOWN_FAILURE UNKNOWN UNKNOWN RETRY_TO_MAX
""".splitlines(),
    )
}


def debug_id(user: str, name: str) -> str:
    """Return the md5 of ``user~name``, as OpenPAI names its objects; nothing secret hangs on it."""
    return hashlib.md5(f"{user}~{name}".encode(), usedforsecurity=False).hexdigest()


def summary(view: View, name: str) -> dict[str, Any]:
    """Return one job of the list.

    Args:
        view: our JobView.
        name: what the job is called here.
    """
    roles = (view.get("roles") or {}).values()
    return {
        "debugId": debug_id(str(view["user"]), name),
        "name": name,
        **_status(view),
        "tags": [],
        "appExitCode": exit_code(view),
        "virtualCluster": view["profile"],
        "totalGpuNumber": sum(int(each.get("gpu") or 0) * each["instances"] for each in roles),
        "totalTaskNumber": view.get("taskTotal") or 0,
        "totalTaskRoleNumber": len(roles),
        "jobPriority": None,
    }


def detail(view: View, name: str, tasks: Sequence[View], attempt: int | None = None) -> dict[str, Any]:
    """Return a job with its tasks.

    Args:
        view: our JobView.
        name: what the job is called here.
        tasks: the tasks of one attempt.
        attempt: number of that attempt; None: the latest.
    """
    latest = int(view.get("attempt") or 0)
    shown = latest if attempt is None else attempt
    # An attempt that another one followed has failed; what it failed of is in its tasks.
    code = exit_code(view) if shown == latest else _worst(tasks)
    state = str(_status(view)["state"]) if shown == latest else "FAILED"
    failed = view.get("failedTask") or {}
    times = {key: _status(view)[key] for key in ("createdTime", "launchedTime", "completedTime")}
    status = {
        **_status(view),
        "attemptId": shown,
        "attemptState": state,
        "appId": f"{shown}_{view['id']}",
        "appProgress": 0 if code is None else 1,
        "appTrackingUrl": "",
        **{f"app{key[0].upper()}{key[1:]}": value for key, value in times.items()},
        "appExitCode": code,
        "appExitSpec": _spec(code, view),
        "appExitDiagnostics": view.get("message") or None if code is not None else None,
        "appExitMessages": _messages(code, view),
        "appExitTriggerMessage": (view.get("message") or None) if failed else None,
        "appExitTriggerTaskRoleName": failed.get("role"),
        "appExitTriggerTaskIndex": failed.get("index"),
        "appExitType": None if code is None else ("Succeeded" if code == 0 else "Failed"),
        "virtualCluster": view["profile"],
    }
    path = f"/api/v2/jobs/{view['user']}~{name}/attempts/{shown}"
    return {
        "debugId": debug_id(str(view["user"]), name),
        "name": name,
        "tags": [],
        "jobStatus": status,
        "taskRoles": _roles(view, tasks, path),
    }


def task_attempts(view: View, name: str, task: View) -> dict[str, Any]:
    """Return a task with its attempts; ours are attempts of the whole job, so it has one."""
    path = f"/api/v2/jobs/{view['user']}~{name}/attempts/{task['attempt']}"
    shown = _task(view, task, path)
    once = {key: shown[key] for key in shown if key.startswith(("container", "attempt", "currentAttempt"))}
    job = {
        "username": view["user"],
        "jobName": name,
        "jobAttemptId": task["attempt"],
        "taskRoleName": task["role"],
    }
    kept = ("taskIndex", "taskUid", "taskState", "retries", "accountableRetries")
    times = ("createdTime", "launchedTime", "completedTime")
    return {**job, **{key: shown[key] for key in (*kept, *times)}, "attempts": [once]}


def exit_code(view: View) -> int | None:
    """Return the exit code of a job as OpenPAI counts them, None while it goes on."""
    return _code(view, stopped=STOP_REQUESTED)


def milliseconds(time: str | None) -> int | None:
    """Return one of our times as OpenPAI's: milliseconds since the epoch."""
    return round(datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000) if time else None


def _status(view: View) -> dict[str, Any]:
    state, sub_state = _STATES[view["state"]]
    stopping = _is_stopping(view)
    if stopping:
        state, sub_state = "STOPPING", "AttemptDeleting"
    elif view["state"] == "waiting" and view.get("reason") in _NOT_BEGUN:
        sub_state = "AttemptCreationPending"
    retries = int(view.get("attempt") or 0)
    submitted, ended = milliseconds(view.get("submittedAt")), milliseconds(view.get("endedAt"))
    return {
        "username": view["user"],
        "state": state,
        "subState": sub_state,
        "executionType": "STOP" if stopping or view["state"] == "stopped" else "START",
        "retries": retries,
        "retryDetails": {"user": retries, "platform": 0, "resource": 0},
        "retryDelayTime": None,
        "submissionTime": submitted,
        "createdTime": submitted,
        # Like the original: what never started has its end here.
        "launchedTime": milliseconds(view.get("startedAt")) or ended,
        "completedTime": ended,
    }


def _is_stopping(view: View) -> bool:
    return bool(view["state"] == "running" and view.get("reason") == "stopping")


def _code(view: View, stopped: int) -> int | None:
    state = view["state"]
    if state == "failed":
        failed = view.get("failedTask") or {}
        return _CODES.get(str(failed.get("reason") or view.get("reason") or ""), _UNKNOWN_FAILURE)
    return {"succeeded": 0, "stopped": stopped}.get(state)


def _worst(tasks: Iterable[View]) -> int:
    codes = [_code(task, PEER_ENDED) for task in tasks if task["state"] == "failed"]
    return codes[0] if codes and codes[0] is not None else _UNKNOWN_FAILURE


def _spec(code: int | None, view: View) -> dict[str, Any] | None:
    """Return what OpenPAI's catalogue says of a code, in its keys; the sentences are ours."""
    if code is None:
        return None
    keys = ("phrase", "issuer", "causer", "type", "stage", "behavior", "reaction")
    return {
        "code": code,
        **dict(zip(keys, _CATALOGUE[code], strict=True)),
        "reason": view.get("message") or "",
        "repro": [],
        "solution": [view["advice"]] if view.get("advice") else [],
    }


def _messages(code: int | None, view: View) -> dict[str, Any] | None:
    if code is None:
        return None
    failed = view.get("failedTask")
    runtime = None
    if failed:
        runtime = {
            "name": "app",
            "exitCode": code,
            "originUserExitCode": failed.get("code"),
            "errorLogs": {
                "user": "".join(f"{line}\n" for line in failed.get("lastLines") or ()),
                "platform": "",
            },
        }
    return {
        "container": None,
        "runtime": runtime,
        "launcher": None if failed else view.get("message") or None,
    }


def _roles(view: View, tasks: Sequence[View], path: str) -> dict[str, Any]:
    roles: dict[str, Any] = {}
    for task in tasks:
        role = roles.setdefault(task["role"], {"taskRoleStatus": {"name": task["role"]}, "taskStatuses": []})
        role["taskStatuses"].append(_task(view, task, path))
    return roles


def _task(view: View, task: View, path: str) -> dict[str, Any]:
    code = _code(task, PEER_ENDED)
    begun, ended = milliseconds(task.get("startedAt")), milliseconds(task.get("endedAt"))
    created = milliseconds(view.get("submittedAt"))
    state = _STATES[task["state"]][0]
    if state == "RUNNING" and _is_stopping(view):
        state = "STOPPING"
    uid = f"{view['id']}-{task['key']}-{task['attempt']}"
    ports = (view.get("ports") or {}).get(task["key"]) or {}
    return {
        "taskIndex": task["index"],
        "taskUid": uid,
        "taskState": state,
        "containerId": uid,
        "containerIp": (view.get("host") or "") if begun else "",
        "containerNodeName": (view.get("host") or "") if begun else "",
        "containerPorts": {label: ",".join(map(str, numbers)) for label, numbers in ports.items()},
        "containerGpus": None,
        "containerLog": f"{path}/taskRoles/{task['role']}/taskIndex/{task['index']}/attempts/0/logs",
        "containerExitCode": code,
        "containerExitSpec": _spec(code, task),
        "containerExitDiagnostics": (task.get("message") or None) if code is not None else None,
        "retries": 0,
        "accountableRetries": 0,
        "createdTime": created,
        "launchedTime": begun or ended,
        "completedTime": ended,
        "attemptId": 0,
        "attemptState": state,
        "currentAttemptCreatedTime": created,
        "currentAttemptLaunchedTime": begun or ended,
        "currentAttemptCompletedTime": ended,
    }
