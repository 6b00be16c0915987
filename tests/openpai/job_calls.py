"""The calls about jobs and their logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tornado.httputil import HTTPServerRequest

from tests.openpai import validating
from tests.openpai.answers import Answer, Refused, html, of_json
from tests.openpai.calls import Call
from tests.openpai.jobs import ScriptedJob, converted
from tests.openpai.logs import TOKEN_SECONDS, file_of, read
from tests.openpai.rendering import on_the_server
from tests.openpai.shown import chosen, detail, summary, task_attempts

if TYPE_CHECKING:
    from tests.openpai.server import OpenPai

_LIMIT = 50_000
_ORDERS = {
    "jobName": "name",
    "submissionTime": "submissionTime",
    "username": "username",
    "vc": "virtualCluster",
    "retries": "retries",
    "totalTaskNumber": "totalTaskNumber",
    "totalGpuNumber": "totalGpuNumber",
    "state": "state",
    "completionTime": "completedTime",
    "jobPriority": "jobPriority",
}


class JobCalls:
    """Handlers of these calls; their arguments are the parts of the path.

    Args:
        server: whose jobs they are.
    """

    def __init__(self, server: OpenPai) -> None:
        self._server = server

    def jobs(self, call: Call) -> Answer:
        query = dict(call.query)
        if self._server.release < 1.8:
            query.pop("jobPriority", None)
        limit, offset = _number(query, "limit", 5000), _number(query, "offset", 0)
        if limit > _LIMIT:
            raise Refused(400, "InvalidParametersError", f"Limit exceeds max number {_LIMIT}.")
        # The latest first; jobs of one second in the order of their coming.
        jobs = list(chosen(list(self._server.jobs.values())[::-1], query))
        rows = [summary(job) for job in jobs]
        field, _, direction = query.get("order", "submissionTime,DESC").partition(",")
        key = _ORDERS.get(field)
        if key and key != "submissionTime":
            # Nulls come first going down, last going up.
            rows.sort(key=lambda row: (row[key] is None, row[key] or 0), reverse=direction == "DESC")
        page = rows[offset : offset + limit]
        counted = query.get("withTotalCount") == "true" and self._server.release >= 1.3
        return of_json({"totalCount": len(rows), "data": page} if counted else page)

    def submit(self, call: Call) -> Answer:
        server, request = self._server, call.request
        if not request.headers.get("Content-Type", "").startswith("text/"):
            raise validating.nothing_read()
        text = request.body.decode()
        server.received.append(text)
        data = validating.values(text)
        validating.check_schema(data)
        validating.check_references(data)
        for role in data["taskRoles"]:
            on_the_server(data, role)
        job = ScriptedJob(call.user, text, data, {}, lambda: int(server.now()) * 1000)
        if job.framework in server.jobs:
            raise Refused(409, "ConflictJobError", f"Job {job.framework} already exists.")
        user = server.accounts.users[call.user]
        if job.virtual_cluster not in user.virtual_clusters:
            message = f"User {call.user} is not allowed to do operation in {job.virtual_cluster}"
            raise Refused(403, "ForbiddenUserError", message)
        for name in validating.storages(data):
            if name not in user.storages:
                raise Refused(404, "NoStorageError", f"Storage {name} is not found.")
        validating.check_counts(data)
        job.stored = validating.values(validating.masked(text))
        job.unreadable = validating.unreadable(data)
        job.refusal = validating.refused_later(data)
        job.broken = validating.fails_at_start(job.stored)
        server.jobs[job.framework] = job
        server.on_submit(job)
        message = f"Update job {job.name} for user {call.user} successfully."
        return of_json({"status": 202, "message": message}, 202)

    def _known(self, framework: str) -> ScriptedJob:
        job = self._server.jobs.get(framework)
        if job is None:
            raise Refused(404, "NoJobError", f"Job {framework} is not found.")
        return job

    def _readable(self, framework: str) -> ScriptedJob:
        job = self._known(framework)
        if job.unreadable:
            raise Refused(500, None, job.unreadable)
        return job

    def job(self, call: Call, framework: str) -> Answer:
        return of_json(detail(self._readable(framework)))

    def attempt(self, call: Call, framework: str, number: str) -> Answer:
        job = self._readable(framework)
        if not number.isdecimal():
            return of_json(detail(job))
        if int(number) >= len(job.attempts):
            raise Refused(404, "NoJobError", f"JobAttemptId {number} is not found in {framework}.")
        return of_json(detail(job, int(number)))

    def config(self, call: Call, framework: str) -> Answer:
        answer = of_json(self._known(framework).stored)
        answer.headers["Content-Type"] = "text/yaml; charset=utf-8"
        return answer

    def ssh(self, call: Call, framework: str) -> Answer:
        raise Refused(404, "NoJobSshInfoError", f"SSH info of job {framework} is not found.")

    def events(self, call: Call, framework: str) -> Answer:
        found = [e for e in self._known(framework).events if e["type"] == call.query.get("type", e["type"])]
        timed = sorted(
            (e for e in found if e["lastTimestamp"]), key=lambda e: e["lastTimestamp"], reverse=True
        )
        data = [*(e for e in found if not e["lastTimestamp"]), *timed]
        return of_json({"totalCount": len(data), "data": data})

    def execute(self, call: Call, framework: str) -> Answer:
        value = call.json().get("value")
        if value not in ("STOP", "START"):
            message = 'child "value" fails because ["value" must be one of [STOP, START]]'
            raise Refused(400, "InvalidParametersError", message)
        job = self._owned(call, framework)
        if job.unreadable:
            raise Refused(500, None, job.unreadable)
        if job.final:
            raise Refused(500, "UnknownError", "Unexpected end of JSON input")
        if value == "STOP":
            self._stop(job)
        return of_json({"status": 202, "message": f"Execute job {framework} successfully."}, 202)

    def _stop(self, job: ScriptedJob) -> None:
        job.execution = "STOP"
        if self._server.lost_stops > 0:
            self._server.lost_stops -= 1
        elif job.state == "WAITING" or self._server.stops_at_once:
            job.stopped()
        else:
            job.stopping()

    def _owned(self, call: Call, framework: str) -> ScriptedJob:
        job = self._known(framework)
        if job.user != call.user and not self._server.accounts.users[call.user].admin:
            message = f"User {call.user} is not allowed to execute job {framework}."
            raise Refused(403, "ForbiddenUserError", message)
        return job

    def tag(self, call: Call, framework: str) -> Answer:
        job, tag = self._owned(call, framework), str(call.json().get("value", ""))
        if not tag or "," in tag:
            said = "is not allowed to be empty" if not tag else (
                f'with value "{tag}" fails to match the value pattern'
            )  # fmt: skip
            raise Refused(400, "InvalidParametersError", f'child "value" fails because ["value" {said}]')
        if tag not in job.tags:
            job.tags.append(tag)
        return of_json({"status": 200, "message": f"Add tag {tag} for job {framework} successfully."})

    def untag(self, call: Call, framework: str) -> Answer:
        job, tag = self._owned(call, framework), str(call.json().get("value", ""))
        if tag not in job.tags:
            raise Refused(404, "NoTagError", f"Tag {tag} is not found for job {framework}.")
        job.tags.remove(tag)
        return of_json({"status": 200, "message": f"Delete tag {tag} from job {framework} successfully."})

    def task(self, call: Call, framework: str, attempt: str, role: str, index: str) -> Answer:
        job = self._readable(framework)
        try:
            return of_json(task_attempts(job, int(attempt), role, int(index)))
        except (IndexError, KeyError, ValueError):
            raise Refused(404, "NoJobError", f"Task {role} {index} is not found in {framework}.") from None

    def logs(self, call: Call, framework: str, attempt: str, role: str, index: str, number: str) -> Answer:
        job = self._server.jobs.get(framework)
        known = job is not None and role in map(converted, job.data["taskRoles"])
        if not known or job is None or not self._server.log_manager:
            raise Refused(500, "UnknownError", "Failed to get log list")
        try:
            run = job.task(role, int(index), int(attempt)).runs[int(number)]
        except (IndexError, KeyError):
            raise Refused(404, "NoTaskLogError", "Log of task is not found.") from None
        if not run.node:
            raise Refused(404, "NoTaskLogError", "Log of task is not found.")
        tail = "&tail-mode=true" if call.query.get("tail-mode") == "true" else ""
        root = "" if self._server.release >= 1.6 else self._server.url
        token = f"{self._server.log_epoch}-{int(self._server.now())}"
        uri = (
            f"{root}/log-manager/192.0.2.10:9103/api/v1/logs/{{}}?username={job.user}"
            f"&framework-name={job.debug_id}&pod-uid={run.pod}&taskrole={role}&token={token}{tail}"
        )
        names = list(run.logs.files)
        return of_json({"locations": [{"name": name, "uri": uri.format(file_of(name))} for name in names]})

    def log(self, request: HTTPServerRequest) -> Answer:
        query = {key: values[-1].decode() for key, values in request.arguments.items()}
        epoch, _, issued = query.get("token", "").partition("-")
        late = not issued.isdecimal() or self._server.now() - int(issued) > TOKEN_SECONDS
        if late or int(epoch) != self._server.log_epoch:
            return Answer(403, b"", {"Content-Type": "text/plain", "Access-Control-Allow-Origin": "*"})
        if not self._server.log_manager:
            return html(502, "502 Bad Gateway")
        wanted = request.path.rpartition("/")[2]
        for job in self._server.jobs.values():
            runs = [run for each in job.attempts for task in each.tasks for run in task.runs]
            for run in runs:
                if run.pod == query.get("pod-uid"):
                    for name, content in run.logs.files.items():
                        if file_of(name) == wanted:
                            tail = query.get("tail-mode") == "true"
                            return read(content, wanted, request.headers, tail)
        return Answer(404, b"", {})


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, str(default))
    if not text.isdecimal():
        raise Refused(500, None, 'column "nan" does not exist')
    return int(text)
