"""Jobs: list, submit, look at, stop."""

from __future__ import annotations

import asyncio
import getpass
import json
from collections.abc import Iterable, Mapping
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.openpai import shapes
from paijupyter.engine.openpai.answers import Refused, in_their_words, no_job
from paijupyter.engine.openpai.cluster import profile_of
from paijupyter.engine.route import YAML, Reply
from paijupyter.errors import NotFound, PaiJupyterError

LIMIT_BYTES = 102_400  # of a body, as the original has it
_PAGE = 1000
_HIDDEN = "******"
_stops: set[asyncio.Task[Any]] = set()  # a task that nobody holds may vanish


@in_their_words
async def openpai_jobs(call: Call) -> Reply:
    """List jobs, latest first."""
    query = call.query
    found = [shapes.summary(view, name_of(call, view)) for view in _all(call)]
    chosen = [each for each in found if _matches(each, query)]
    field, _, direction = str(query.get("order", "submissionTime,DESC")).partition(",")
    key = {"jobName": "name", "vc": "virtualCluster", "completionTime": "completedTime"}.get(field, field)
    if chosen and key in chosen[0] and field != "submissionTime":
        chosen.sort(key=lambda each: _sortable(each[key]), reverse=direction == "DESC")
    page = chosen[query.get("offset", 0) :][: query.get("limit", 5000)]
    return Reply({"totalCount": len(chosen), "data": page} if query.get("withTotalCount") == "true" else page)


@in_their_words
async def openpai_submit(call: Call) -> Reply:
    """Submit a job document; its secrets are taken out before anything is written."""
    if not call.headers.get("Content-Type", "").startswith("text/"):
        raise Refused(400, "InvalidProtocolError", "The job document must be sent as text/yaml.")
    text = await asyncio.to_thread(_text, call.chunks)
    from paijupyter.protocol import edit, read

    data = read(text).data
    name = str(data.get("name"))
    _refuse_known(call, name)
    profile = profile_of(call, (data.get("defaults") or {}).get("virtualCluster"))
    if profile is None:
        raise Refused(403, "ForbiddenUserError", f"User {getpass.getuser()} is not allowed to do operation.")
    secrets = data.get("secrets") or {}
    if not isinstance(secrets, Mapping):
        # What the config shows in their place, posted back.
        raise Refused(400, "InvalidProtocolError", "The job document's `secrets` must be a mapping.")
    patch = [{"op": "replace", "path": f"/secrets/{_escaped(key)}", "value": ""} for key in secrets]
    document = edit(text, patch)[0] if patch else text
    request = {
        "document": document,
        "name": name,  # whoever posts `train-epoch2` asks for it by that name
        "profile": profile,
        "secrets": {key: {"value": str(value)} for key, value in secrets.items()},
        "context": {"surface": "rest"},
        "mode": "again",
    }
    await call.service.submit(request)
    said = f"Update job {name} for user {getpass.getuser()} successfully."
    return Reply({"status": 202, "message": said}, 202)


@in_their_words
async def openpai_job(call: Call) -> Reply:
    """Return a job with its tasks."""
    view = view_of(call)
    tasks = _tasks(call, view, None)
    return Reply(shapes.detail(view, name_of(call, view), tasks))


@in_their_words
async def openpai_attempt(call: Call) -> Reply:
    """Return a job as it was in one attempt."""
    view = view_of(call)
    latest = int(view.get("attempt") or 0)
    attempt = int(call.path["attempt"]) if call.path["attempt"].isdecimal() else latest
    if attempt > latest:
        raise no_job(call.path["framework"])
    tasks = _tasks(call, view, attempt)
    return Reply(shapes.detail(view, name_of(call, view), tasks, attempt))


@in_their_words
async def openpai_task(call: Call) -> Reply:
    """Return a task with its attempts."""
    view = view_of(call)
    return Reply(shapes.task_attempts(view, name_of(call, view), task_of(call, view)))


@in_their_words
async def openpai_config(call: Call) -> Reply:
    """Return the job document as JSON, without its secrets."""
    from paijupyter.protocol import read

    view = view_of(call)
    data = read(call.service.export(view["id"], "source")).data
    shown = {**data, "secrets": _HIDDEN} if data.get("secrets") else data
    return Reply(json.dumps(shown, default=str), media=YAML)


@in_their_words
async def openpai_events(call: Call) -> Reply:
    """Return why a job waits, as the one event that says so."""
    view = view_of(call)
    events = []
    if view["state"] == "waiting" and view.get("message"):
        at = shapes.milliseconds(view.get("since"))
        reason, message = view.get("reason") or "Waiting", view["message"]
        events.append(
            {
                "uid": f"{view['id']}-{reason}",
                "type": "Warning" if reason == "unschedulable" else "Normal",
                "reason": reason,
                "message": message,
                "firstTimestamp": at,
                "lastTimestamp": at,
                "count": 1,
            }
        )
    chosen = [each for each in events if call.query.get("type", each["type"]) == each["type"]]
    return Reply({"totalCount": len(chosen), "data": chosen})


@in_their_words
async def openpai_ssh(call: Call) -> Reply:
    """Say, as the original does of jobs without the ssh plug-in, that there is no way in."""
    view_of(call)
    message = f"SSH info of job {call.path['framework']} is not found."
    raise Refused(404, "NoJobSshInfoError", message)


@in_their_words
async def openpai_execution(call: Call) -> Reply:
    """Stop a job. The answer does not wait for its end: the state tells it."""
    if call.body["value"] != "STOP":
        raise Refused(
            400, "InvalidParametersError", '"value" must be STOP: a stopped job cannot start again.'
        )
    view = view_of(call)
    stop = asyncio.ensure_future(call.service.stop(view["id"]))
    _stops.add(stop)
    stop.add_done_callback(_stops.discard)
    done, _ = await asyncio.wait([stop], timeout=1.0)
    if done and isinstance(stop.exception(), PaiJupyterError):
        await stop
    framework = call.path["framework"]
    return Reply({"status": 202, "message": f"Execute job {framework} successfully."}, 202)


def view_of(call: Call) -> Mapping[str, Any]:
    """Return the job that the path names as ``user~name``."""
    framework = call.path["framework"]
    user, tilde, name = framework.partition("~")
    if not tilde:
        raise no_job(framework)
    view = _named(call, name)
    if view is None:
        raise no_job(framework)
    if view.get("user") != user:
        raise no_job(framework)
    return view


def name_of(call: Call, view: Mapping[str, Any]) -> str:
    """Return what a job is called here: its short name, unless a later job has taken it over."""
    short = str(view.get("shortName") or view["name"])
    try:
        return short if call.service.get(short)["id"] == view["id"] else str(view["name"])
    except NotFound:
        return str(view["name"])


def task_of(call: Call, view: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the task that the path names."""
    for task in _tasks(call, view, int(call.path["attempt"]) if call.path["attempt"].isdecimal() else None):
        if (task["role"], str(task["index"])) == (call.path["role"], call.path["index"]):
            return task
    raise Refused(404, "NoTaskError", f"Task {call.path['role']}-{call.path['index']} is not found.")


def _tasks(call: Call, view: Mapping[str, Any], attempt: int | None) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    while True:
        page = call.service.tasks(view["id"], attempt=attempt, offset=len(found), limit=_PAGE)
        found += page["tasks"]
        if len(found) >= page["total"] or not page["tasks"]:
            return found


def _all(call: Call) -> Iterable[Mapping[str, Any]]:
    cursor = None
    while True:
        page = call.service.list(limit=_PAGE, cursor=cursor)
        yield from page["jobs"]
        cursor = page["next"]
        if cursor is None:
            return


def _matches(job: Mapping[str, Any], query: Mapping[str, Any]) -> bool:
    """Say whether a job is one of those that the query asks for."""
    for parameter, key in (("username", "username"), ("vc", "virtualCluster"), ("state", "state")):
        if parameter in query and job[key] not in query[parameter].split(","):
            return False
    if "tagsContain" in query:
        return False  # our jobs have no tags
    if "jobPriority" in query and "default" not in query["jobPriority"].split(","):
        return False
    keyword = query.get("keyword", "")
    return any(keyword in str(job[key]) for key in ("username", "name", "virtualCluster"))


def _sortable(value: Any) -> tuple[bool, str, float]:
    """Order values of one kind; those that are not there yet come last, first when the order is turned."""
    return (value is None, value if isinstance(value, str) else "", value if isinstance(value, int) else 0)


def _text(chunks: Iterable[bytes]) -> str:
    body = b""
    for chunk in chunks:
        body += chunk
        if len(body) > LIMIT_BYTES:
            raise Refused(413, "", "request entity too large")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(400, "InvalidProtocolError", "The job document is not UTF-8 text.") from None


def _refuse_known(call: Call, name: str) -> None:
    """Refuse a name that a job has: here a name stands for one job for ever."""
    if _named(call, name) is not None:
        raise Refused(409, "ConflictJobError", f"Job {getpass.getuser()}~{name} already exists.")


def _named(call: Call, name: str) -> Mapping[str, Any] | None:
    """Return the job of a name as it was posted; ours are at most 100 characters long."""
    from paijupyter.protocol import short_name

    for ref in (name, short_name(name)):
        try:
            return call.service.get(ref)
        except NotFound:
            continue
    return None


def _escaped(key: str) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
