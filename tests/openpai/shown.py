"""How the API shows a scripted job: the keys and holes of the original's answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.openpai.exits import diagnostics, messages, spec
from tests.openpai.jobs import Attempt, ScriptedJob, Task

NODE_IP = "192.0.2.10"
Json = dict[str, Any]


def summary(job: ScriptedJob) -> Json:
    """Return its row in the list."""
    roles: Mapping[str, Json] = job.data["taskRoles"]
    hived = ((job.data.get("extras") or {}).get("hivedScheduler") or {}).get("jobPriorityClass")
    return {
        "debugId": job.debug_id,
        "name": job.name,
        **_status(job),
        "tags": list(job.tags),
        "appExitCode": job.code,
        "virtualCluster": job.virtual_cluster,
        "totalGpuNumber": sum(r["resourcePerInstance"]["gpu"] * r["instances"] for r in roles.values()),
        "totalTaskNumber": sum(role["instances"] for role in roles.values()),
        "totalTaskRoleNumber": len(roles),
        "jobPriority": hived,
    }


def detail(job: ScriptedJob, number: int | None = None) -> Json:
    """Return it with its tasks, as an attempt of it was."""
    attempt = job.attempts[-1 if number is None else number] if job.attempts else None
    status = {**_status(job), **_attempt(job, attempt)}
    roles: Json = {}
    for task in attempt.tasks if attempt else ():
        role = roles.setdefault(task.role, {"taskRoleStatus": {"name": task.role}, "taskStatuses": []})
        role["taskStatuses"].append(_task(job, attempt, task))
    return {
        "debugId": job.debug_id,
        "name": job.name,
        "tags": list(job.tags),
        "jobStatus": {
            **status,
            "virtualCluster": job.virtual_cluster,
            "submissionTime": job.submitted,
        },
        "taskRoles": roles,
    }


def task_attempts(job: ScriptedJob, attempt: int, role: str, index: int) -> Json:
    """Return a task with its attempts, the latest first."""
    task = job.task(role, index, attempt)
    shown = _task(job, job.attempts[attempt], task)
    kept = ("taskIndex", "taskUid", "taskState", "retries", "accountableRetries")
    times = ("createdTime", "launchedTime", "completedTime")
    runs = [_run(job, attempt, task, number) for number in range(len(task.runs))]
    return {
        "username": job.user,
        "jobName": job.name,
        "jobAttemptId": attempt,
        "taskRoleName": role,
        **{key: shown[key] for key in (*kept, *times)},
        "attempts": runs[::-1],
    }


def _status(job: ScriptedJob) -> Json:
    created = job.submitted if job.attempts else None
    return {
        "username": job.user,
        "state": job.state,
        "subState": job.sub_state,
        "executionType": job.execution,
        "retries": sum(job.retries.values()),
        "retryDetails": dict(job.retries),
        "retryDelayTime": job.retry_delay,
        "submissionTime": job.submitted,
        "createdTime": created,
        "launchedTime": job.launched if job.attempts else job.completed,
        "completedTime": job.completed,
    }


def _attempt(job: ScriptedJob, attempt: Attempt | None) -> Json:
    code = attempt.code if attempt else job.code
    said = attempt.said if attempt else {}
    message, role, index = (attempt and attempt.trigger) or (None, None, None)
    known: Json = {"attemptId": attempt.number, "appId": attempt.app} if attempt else {}
    state = attempt.state if attempt else job.state
    return {
        **known,
        "attemptState": state,
        "appProgress": 0 if code is None else 1,
        "appTrackingUrl": "",
        "appCreatedTime": attempt.created if attempt else None,
        "appLaunchedTime": attempt.launched if attempt else None,
        "appCompletedTime": attempt.completed if attempt else None,
        "appExitCode": code,
        "appExitSpec": spec(code),
        "appExitDiagnostics": diagnostics(code, said),
        "appExitMessages": messages(code, said),
        "appExitTriggerMessage": message,
        "appExitTriggerTaskRoleName": role,
        "appExitTriggerTaskIndex": index,
        "appExitType": None if code is None else "Succeeded" if code == 0 else "Failed",
    }


def _task(job: ScriptedJob, attempt: Attempt, task: Task) -> Json:
    run = _run(job, attempt.number, task, len(task.runs) - 1)
    return {
        "taskIndex": task.index,
        "taskUid": task.uid,
        "taskState": task.run.state,
        **{key: value for key, value in run.items() if key.startswith("container")},
        "retries": len(task.runs) - 1,
        "accountableRetries": len(task.runs) - 1,
        "createdTime": task.runs[0].created,
        "launchedTime": task.runs[0].launched,
        "completedTime": task.run.completed,
        **{key: value for key, value in run.items() if not key.startswith("container")},
    }


def _run(job: ScriptedJob, attempt: int, task: Task, number: int) -> Json:
    run = task.runs[number]
    path = f"/api/v2/jobs/{job.framework}/attempts/{attempt}/taskRoles/{task.role}"
    return {
        "attemptId": number,
        "attemptState": run.state,
        "currentAttemptCreatedTime": run.created,
        "currentAttemptLaunchedTime": run.launched,
        "currentAttemptCompletedTime": run.completed,
        "containerId": run.pod,
        "containerIp": None if run.pod is None else NODE_IP if run.node else "",
        "containerNodeName": None if run.pod is None else run.node,
        "containerPorts": dict(run.ports),
        "containerGpus": None,
        "containerLog": f"{path}/taskIndex/{task.index}/attempts/{number}/logs",
        "containerExitCode": run.code,
        "containerExitSpec": spec(run.code),
        "containerExitDiagnostics": diagnostics(run.code, run.said),
    }


def chosen(jobs: Sequence[ScriptedJob], query: Mapping[str, str]) -> Iterator[ScriptedJob]:
    """Yield the jobs that the filters of a list let through."""
    lists = {
        "username": lambda job: job.user,
        "vc": lambda job: job.virtual_cluster,
        "state": lambda job: job.state,
        "jobPriority": lambda job: summary(job)["jobPriority"] or "default",
    }
    for job in jobs:
        names = [job.name, job.user, job.virtual_cluster]
        if not all(value(job) in query[key].split(",") for key, value in lists.items() if key in query):
            continue
        if "keyword" in query and not any(query["keyword"] in name for name in names):
            continue
        if "tagsContain" in query and not set(query["tagsContain"].split(",")) & set(job.tags):
            continue
        if "tagsNotContain" in query and set(query["tagsNotContain"].split(",")) & set(job.tags):
            continue
        yield job
