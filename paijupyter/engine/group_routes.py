"""Rows of the route table for groups of experiments."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import groups
from paijupyter.engine.route import Answer, Parameter, Route

_LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000}
_SOME = {"type": "integer", "minimum": 1, "maximum": 10_000}
_GROUP_PLAN = s.record(
    "ok name count problems",
    ok=s.FLAG,
    name=s.TEXT,
    count=s.COUNT,
    kept=s.COUNT,
    experiments=s.many(s.record("key name values", key=s.TEXT, name=s.TEXT, values=s.OBJECT)),
    estimate=s.OBJECT,
    texts={"type": "object", "additionalProperties": s.TEXT},
    problems=s.many(s.named("Problem")),
)
_REQUEST = s.record(
    "template experiments",
    template=s.TEXT,
    experiments=s.TEXT,
    placeholders=s.FLAG,
    set=s.OBJECT,
    name=s.PLAIN,
    names=s.PLAIN,
    only=s.PLAIN,
    failed=s.FLAG,
    replace=s.FLAG,
    again=s.FLAG,
    resume=s.FLAG,
    texts=s.FLAG,
    limit=_SOME,
    atOnce=s.maybe(_SOME),
    stopAfter=s.maybe(_SOME),
    **{
        name: schema
        for name, schema in s.SUBMIT_REQUEST["properties"].items()
        if name in ("profile", "package", "secrets", "data", "context", "requestId")
    },
)
_RETRY = s.strict(
    "",
    only=s.PLAIN,
    package=s.SHA256,
    resume=s.FLAG,
    requestId=s.maybe(s.REQUEST_ID),
    secrets=s.SUBMIT_REQUEST["properties"]["secrets"],
)
_GROUP = Answer("The group.", s.named("Group"))

GROUP_ROUTES = (
    Route(
        "GET",
        "/v1/groups",
        groups.list_groups,
        "List groups of experiments, latest first",
        {
            200: Answer(
                "A page of groups; `seq` is the number to follow events from.",
                s.record(
                    "groups next seq", groups=s.many(s.named("Group")), next=s.maybe(s.TEXT), seq=s.COUNT
                ),
            )
        },
        query=(
            Parameter("folder", "folder that the groups were submitted from"),
            Parameter("limit", "how many at most", _LIMIT),
            Parameter("cursor", "`next` of the page before"),
        ),
    ),
    Route(
        "POST",
        "/v1/groups/plan",
        groups.plan_group,
        "Say what running experiments would do",
        {200: Answer("The plan, with every problem of every experiment.", _GROUP_PLAN)},
        body=_REQUEST,
        problems=(404, 409, 422),
    ),
    Route(
        "POST",
        "/v1/groups",
        groups.submit_group,
        "Run experiments: one job each",
        {201: _GROUP, 200: Answer("The group of before, with a further round.", s.named("Group"))},
        body=_REQUEST,
        problems=(404, 409, 422),
    ),
    Route(
        "GET",
        "/v1/groups/{ref}",
        groups.get_group,
        "Return one group",
        {200: _GROUP},
        problems=(404,),
    ),
    Route(
        "DELETE",
        "/v1/groups/{ref}",
        groups.delete_group,
        "Delete a group that has ended, with all of its jobs",
        {204: Answer("It is gone.")},
        problems=(404, 409),
    ),
    Route(
        "GET",
        "/v1/groups/{ref}/experiments",
        groups.experiments,
        "List the experiments of a group",
        {
            200: Answer(
                "A page of experiments.",
                s.record("experiments total", experiments=s.many(s.named("Experiment")), total=s.COUNT),
            )
        },
        query=(
            Parameter("offset", "how many to pass over", s.COUNT),
            Parameter("limit", "how many at most", _LIMIT),
            Parameter("series", "with the course of every metric", s.FLAG),
        ),
        problems=(404, 409),
    ),
    Route(
        "POST",
        "/v1/groups/{ref}/stop",
        groups.stop_group,
        "Stop a group",
        {200: _GROUP},
        body=s.strict(),
        problems=(404, 409),
    ),
    Route(
        "POST",
        "/v1/groups/{ref}/retry",
        groups.retry_group,
        "Run experiments once more, by default those that failed",
        {201: _GROUP},
        body=_RETRY,
        problems=(404, 409, 422),
    ),
    Route(
        "POST",
        "/v1/groups/{ref}/remove",
        groups.remove_experiments,
        "Stop and delete experiments",
        {204: Answer("They are gone.")},
        body=s.strict("", only=s.PLAIN),
        problems=(404, 409),
    ),
)
