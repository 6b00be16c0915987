"""Rows of the route table for OpenPAI's calls; the shapes are those of its own description.

Like the original's, they ignore parameters that they do not know: clients of several versions send some.
"""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.openpai import cluster, jobs, logs
from paijupyter.engine.openpai.answers import BASE
from paijupyter.engine.route import BYTES, YAML, Answer, Handler, Parameter, Route

_V2 = f"{BASE}/api/v2"
_ERROR = Answer("What is wrong, in OpenPAI's words.", s.record("code message", code=s.TEXT, message=s.TEXT))
_DONE = Answer("It is accepted.", s.record("status message", status=s.COUNT, message=s.TEXT))
_NATURAL = {"type": "integer", "minimum": 0, "maximum": 50_000}
_YES = {"type": "string", "enum": ["true", "false"]}
_JOB = "/jobs/{framework}"
_TASK = _JOB + "/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts"


def _get(path: str, handler: Handler, summary: str, answer: Answer, *query: Parameter) -> Route:
    answers = {200: answer, 400: _ERROR, 404: _ERROR}
    return Route("GET", _V2 + path, handler, summary, answers, query=query, others="ignored")


def _any(description: str) -> Answer:
    return Answer(description, s.OBJECT)


_TAIL = Parameter("tail-mode", "only the last 16,384 bytes", _YES)

OPENPAI_ROUTES = (
    _get("/info", cluster.openpai_info, "Say what this is", _any("Name and version.")),
    _get("/authn/info", cluster.openpai_authn, "Say how to log in", _any("How.")),
    _get("/tokens/check", cluster.openpai_token, "Say whose token this is", _any("The user.")),
    _get("/users/{user}", cluster.openpai_user, "Return the user", _any("The user.")),
    _get(
        "/virtual-clusters",
        cluster.openpai_virtual_clusters,
        "Return the profiles",
        _any("Each by its name."),
    ),
    _get("/virtual-clusters/{name}", cluster.openpai_virtual_cluster, "Return a profile", _any("It.")),
    _get(
        "/storages",
        cluster.openpai_storages,
        "List the storages",
        _any("The storages."),
        Parameter("default", "only the default ones", _YES),
    ),
    _get("/storages/{name}", cluster.openpai_storage, "Return a storage", _any("It.")),
    _get(
        "/cluster/sku-types",
        cluster.openpai_sku_types,
        "List the SKU types",
        _any("None."),
        Parameter("vc", "a virtual cluster"),
    ),
    _get(
        "/jobs",
        jobs.openpai_jobs,
        "List jobs",
        Answer("The jobs, with `withTotalCount` below `data`.", {"type": ["array", "object"]}),
        *(
            Parameter(name, f"{name}, separated by commas")
            for name in ("username", "vc", "state", "jobPriority")
        ),
        *(Parameter(name, "a text") for name in ("keyword", "tagsContain", "tagsNotContain", "order")),
        *(Parameter(name, "a number", _NATURAL) for name in ("offset", "limit")),
        Parameter("withTotalCount", "say how many there are", _YES),
    ),
    Route(
        "POST",
        _V2 + "/jobs",
        jobs.openpai_submit,
        "Submit a job document (text/yaml)",
        {202: _DONE, **dict.fromkeys((400, 403, 404, 409, 413), _ERROR)},
        upload=True,
        others="ignored",
    ),
    _get(_JOB, jobs.openpai_job, "Return a job with its tasks", _any("The job.")),
    _get(_JOB + "/attempts/{attempt}", jobs.openpai_attempt, "Return one attempt", _any("The job.")),
    _get(
        _JOB + "/config",
        jobs.openpai_config,
        "Return the job document as JSON, secrets masked",
        Answer("JSON.", s.TEXT, YAML),
    ),
    _get(_JOB + "/ssh", jobs.openpai_ssh, "Say that no job has ssh here", _any("Nothing.")),
    _get(
        _JOB + "/events",
        jobs.openpai_events,
        "Say why a job waits",
        _any("The events."),
        Parameter("type", "kind of event", {"type": "string", "enum": ["Warning", "Normal"]}),
    ),
    Route(
        "PUT",
        _V2 + _JOB + "/executionType",
        jobs.openpai_execution,
        "Stop a job",
        {202: _DONE, **dict.fromkeys((400, 404, 409), _ERROR)},
        body=s.record("value", value=s.PLAIN),
        others="ignored",
    ),
    _get(_TASK, jobs.openpai_task, "Return a task with its attempts", _any("The task.")),
    _get(_TASK + "/{once}/logs", logs.openpai_logs, "List a task's logs", _any("Their addresses."), _TAIL),
    Route(
        "GET",
        _V2 + _TASK + "/{once}/logs/{file}",
        logs.openpai_log,
        "Read a log, whole or by Range",
        {
            200: Answer("The log.", None, BYTES),
            206: Answer("A part.", None, BYTES),
            416: Answer("Outside.", None, BYTES),
            400: _ERROR,
            404: _ERROR,
        },
        query=(_TAIL,),
        others="ignored",
    ),
)
