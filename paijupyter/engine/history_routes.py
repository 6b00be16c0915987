"""Rows of the route table for what jobs were made of, and for notebooks that are jobs."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import cells, history
from paijupyter.engine.route import Answer, Parameter, Route

_CHANGED = s.many(s.record("name", name=s.TEXT, before=s.ANY, after=s.ANY))
_PROVENANCE = s.record(
    "id name packageSha256 parameters environment",
    id=s.TEXT,
    name=s.TEXT,
    documentSha256=s.SHA256,
    packageSha256=s.maybe(s.SHA256),
    notebook=s.maybe(s.record("path cells", path=s.TEXT, cells=s.many(s.OBJECT))),
    parameters=s.OBJECT,
    secretReferences={"type": "object", "additionalProperties": s.TEXT},
    images={"type": "object", "additionalProperties": s.TEXT},
    data=s.many(s.OBJECT),
    versions={"type": "object", "additionalProperties": s.TEXT},
    environment=s.maybe(s.record("python packages", python=s.TEXT, packages=s.OBJECT)),
)
_DIFFERENCE = s.record(
    "jobs code parameters environment images data results",
    jobs=s.many(s.record("id name", id=s.TEXT, name=s.TEXT)),
    code=s.many(s.record("path change", path=s.TEXT, change=s.TEXT)),
    commands=_CHANGED,
    parameters=_CHANGED,
    environment=s.record("known", known=s.FLAG),
    images=_CHANGED,
    resources=_CHANGED,
    data=_CHANGED,
    secrets=_CHANGED,
    profile=_CHANGED,
    versions=_CHANGED,
    results=s.record("outcome metrics outputs", outcome=_CHANGED, metrics=_CHANGED, outputs=_CHANGED),
)
_JOBS = {**s.many(s.PLAIN), "minItems": 1, "maxItems": 100, "description": "jobs, each by its name or id"}

HISTORY_ROUTES = (
    Route(
        "GET",
        "/v1/jobs/{ref}/provenance",
        history.provenance,
        "Say what a job was made of",
        {200: Answer("Package, cells, parameters, environment, images, versions.", _PROVENANCE)},
        problems=(404,),
    ),
    Route(
        "GET",
        "/v1/jobs/{ref}/diff",
        history.diff,
        "Say what changed from this job to another one, and in the results",
        {200: Answer("All differences; lists are empty where there are none.", _DIFFERENCE)},
        query=(Parameter("with", "the other job; by default the last one"),),
        problems=(404,),
    ),
    Route(
        "POST",
        "/v1/jobs/{ref}/rerun",
        history.rerun,
        "Submit exactly the same once more",
        {201: Answer("The new job; `differs` says what may not be the same.", s.named("Job"))},
        body=s.strict("", requestId=s.maybe(s.REQUEST_ID), secrets=s.SECRETS),
        problems=(404, 409, 422),
    ),
    Route(
        "POST",
        "/v1/report",
        history.report,
        "Return a notebook that shows jobs side by side",
        {200: Answer("The notebook.", s.record("cells nbformat", cells=s.many(s.OBJECT), nbformat=s.COUNT))},
        body=s.strict("jobs", jobs=_JOBS, title=s.maybe(s.PLAIN), tag=s.maybe(s.PLAIN)),
        problems=(404, 422),
    ),
    Route(
        "POST",
        "/v1/document/notebook",
        history.notebook_document,
        "Return the job document that runs a notebook, and the parameters that it declares",
        {
            200: Answer(
                "The document, to be planned and submitted like any other.",
                s.record(
                    "document notebook parameters problems",
                    document=s.TEXT,
                    notebook=s.TEXT,
                    cells=s.COUNT,
                    parameters=s.many(s.record("name type", name=s.TEXT, type=s.TEXT)),
                    problems=s.many(s.named("Problem")),
                ),
            )
        },
        body=s.strict(
            "notebook",
            notebook=s.FOLDER,
            folder=s.FOLDER,
            name=s.PLAIN,
            parameters=s.OBJECT,
            until=s.PLAIN,
            timeout={"type": "number", "minimum": 0, "maximum": 2**31},
            roles=s.many(s.PLAIN),
            install={"type": "string", "enum": ["never", "if-missing", "always"]},
        ),
        problems=(422,),
    ),
    Route(
        "POST",
        "/v1/document/cells",
        cells.cells_document,
        "Package a notebook's folder with a script of its cells; return the job document that runs it",
        {
            200: Answer(
                "Document and package, to be planned and submitted; what is said of each cell.",
                s.record(
                    "document package cells problems",
                    document=s.TEXT,
                    package=s.SHA256,
                    files=s.COUNT,
                    bytes=s.COUNT,
                    kernelspec=s.maybe(s.TEXT),
                    cell=s.maybe(s.record("id hash number", id=s.TEXT, hash=s.SHA256, number=s.COUNT)),
                    cells=s.many(s.record("cell included why", cell=s.COUNT, included=s.FLAG, why=s.TEXT)),
                    problems=s.many(s.named("Problem")),
                ),
            )
        },
        body=s.strict(
            "notebook cells",
            notebook=s.FOLDER,
            folder=s.FOLDER,
            cells={**s.many(s.PLAIN), "minItems": 1, "maxItems": 1000, "description": "ids, numbers or tags"},
            name=s.PLAIN,
            order={"type": "string", "enum": ["page", "run"]},
        ),
        problems=(413, 422),
    ),
)
