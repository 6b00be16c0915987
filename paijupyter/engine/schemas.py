"""JSON schemas of what travels over the API, in the words of OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def record(required: str = "", /, **properties: Schema) -> Schema:
    """Return the schema of an object that may have further members."""
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required.split()
    return schema


def strict(required: str = "", /, **properties: Schema) -> Schema:
    """Return the schema of an object without further members."""
    return {**record(required, **properties), "additionalProperties": False}


def many(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def maybe(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def named(name: str) -> Schema:
    """Return a reference to a schema of :data:`COMPONENTS`."""
    return {"$ref": f"#/components/schemas/{name}"}


ANY: Schema = {}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53}
NUMBER: Schema = {"type": "number"}
TIME: Schema = {"type": "string", "format": "date-time"}
OBJECT: Schema = {"type": "object"}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
STATE: Schema = {"enum": ["waiting", "running", "succeeded", "failed", "stopped"]}
STATE_FILTER: Schema = {
    "type": "string",
    "pattern": "^(waiting|running|succeeded|failed|stopped)(,(waiting|running|succeeded|failed|stopped))*$",
}
PLAIN: Schema = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f]*$", "maxLength": 4096}
FOLDER: Schema = {"type": "string", "pattern": "^/[^\\x00]*$", "maxLength": 4096}
REQUEST_ID: Schema = {"type": "string", "pattern": "^[^\\x00-\\x1f\\x7f]+$", "maxLength": 200}

PROBLEM: Schema = record(
    "severity code message",
    severity={"enum": ["error", "warning", "hint"]},
    code=TEXT,
    message=TEXT,
    path=TEXT,
    line=COUNT,
    column=COUNT,
    file=TEXT,
    cell=COUNT,
    hint=TEXT,
)
PROBLEM_DOCUMENT: Schema = record(
    "type title status detail code hint problems",
    type=TEXT,
    title=TEXT,
    status=COUNT,
    detail=TEXT,
    code=TEXT,
    hint=TEXT,
    problems=many(named("Problem")),
)
JOB_VIEW: Schema = record(
    "id name profile kind state",
    id=TEXT,
    name=TEXT,
    shortName=TEXT,
    profile=TEXT,
    kind=TEXT,
    state=STATE,
    reason=TEXT,
    message=TEXT,
    since=maybe(TIME),
    staleSince=maybe(TIME),
    submittedAt=maybe(TIME),
    startedAt=maybe(TIME),
    endedAt=maybe(TIME),
    mine=FLAG,
    attempt=COUNT,
    taskTotal=COUNT,
    roles={"type": "object", "additionalProperties": OBJECT},
    parameters=OBJECT,
    secretNames=many(TEXT),
    secretReferences={"type": "object", "additionalProperties": TEXT},
    outputs=many(record("path size", path=TEXT, size=COUNT)),
    metrics=OBJECT,
    progress=maybe(
        record(
            "done total unit",
            done=NUMBER,
            total=NUMBER,
            unit=TEXT,
            fraction=NUMBER,
            etaSeconds=maybe(NUMBER),
        )
    ),
    runsNotebook=maybe(TEXT),
    execution=maybe(record("cell cells line", cell=COUNT, cells=COUNT, line=TEXT, since=TIME, done=FLAG)),
    executedNotebook=maybe(TEXT),
    usage=maybe(record("tasks cpu memoryMB", tasks=COUNT, cpu=NUMBER, memoryMB=NUMBER, gpu=maybe(OBJECT))),
    ports={"type": "object", "additionalProperties": OBJECT},
    group=maybe(record("id name key", id=TEXT, name=TEXT, key=TEXT)),
    onEnd=maybe(record("state", state={"enum": ["running", "done", "failed"]}, message=TEXT, at=TIME)),
)
PLAN: Schema = record("ok problems", ok=FLAG, problems=many(named("Problem")), estimate=maybe(OBJECT))
TASK: Schema = record(
    "key role index state", key=TEXT, role=TEXT, index=COUNT, state=STATE, usage=maybe(OBJECT)
)
PORT: Schema = record("task label port path", task=TEXT, label=TEXT, port=COUNT, path=TEXT)
PROFILE: Schema = record(
    "name kind default usable settings sources",
    name=TEXT,
    kind=TEXT,
    default=FLAG,
    usable=FLAG,
    reason=TEXT,
    settings=OBJECT,
    sources={"type": "object", "additionalProperties": record("by file", by=TEXT, file=TEXT)},
)
GROUP: Schema = record(
    "id name state counts total round",
    id=TEXT,
    name=TEXT,
    state=STATE,
    message=TEXT,
    counts={"type": "object", "additionalProperties": COUNT},
    total=COUNT,
    kept=COUNT,
    profile=maybe(TEXT),
    folder=maybe(TEXT),
    submittedAt=maybe(TIME),
    endedAt=maybe(TIME),
    mine=FLAG,
    round=COUNT,
    atOnce=maybe(COUNT),
    stopAfter=maybe(COUNT),
    stoppedBy=TEXT,
    parameters=many(TEXT),
    problems=many(named("Problem")),
)
EXPERIMENT: Schema = record(
    "key values state job",
    key=TEXT,
    values=OBJECT,
    state=STATE,
    reason=TEXT,
    message=TEXT,
    job=maybe(TEXT),
    name=TEXT,
    kept=FLAG,
    startedAt=maybe(TIME),
    endedAt=maybe(TIME),
    seconds=maybe(NUMBER),
    node=TEXT,
    restarts=COUNT,
    metrics=OBJECT,
    lastLine=TEXT,
    series=OBJECT,
)
FILE: Schema = record("path size", path=TEXT, size=COUNT)

MANIFEST: Schema = record(
    "schema files",
    schema={"type": "integer", "enum": [1]},
    files=many({"type": "array", "items": {"type": ["string", "integer"]}}),
)
_SECRET: Schema = {
    "anyOf": [strict("value", value=TEXT, reference=PLAIN), strict("reference", reference=PLAIN)]
}
_SECRETS: Schema = {"type": "object", "additionalProperties": _SECRET}
_CELL: Schema = maybe(strict("", id=maybe(PLAIN), hash=maybe(PLAIN), number=maybe({"type": "integer"})))
_CONTEXT: Schema = record(
    "",
    python=maybe(PLAIN),
    folder=maybe(PLAIN),
    notebook=maybe(PLAIN),
    cell=_CELL,
    surface=maybe(PLAIN),
    kernel=maybe(PLAIN),
    user=maybe(PLAIN),
)
SUBMIT_REQUEST: Schema = record(
    "document",
    document=TEXT,
    profile=maybe(PLAIN),
    package=maybe(SHA256),
    secrets=_SECRETS,
    data={"type": "object", "additionalProperties": SHA256},
    context=_CONTEXT,
    requestId=maybe(REQUEST_ID),
    mode={"type": "string", "enum": ["normal", "again", "replace"]},
    resumeFrom=maybe(PLAIN),
)
SECRETS = _SECRETS
RETRY_REQUEST: Schema = strict("", requestId=maybe(REQUEST_ID), secrets=_SECRETS, resumeFrom=PLAIN)
SECRETS_REQUEST: Schema = strict("", secrets=_SECRETS)
CLONE_REQUEST: Schema = strict(
    "",
    requestId=maybe(REQUEST_ID),
    document=TEXT,
    profile=PLAIN,
    package=SHA256,
    secrets=_SECRETS,
    data={"type": "object", "additionalProperties": SHA256},
    resumeFrom=PLAIN,
)
PACKAGE_REQUEST: Schema = {"anyOf": [strict("manifest", manifest=MANIFEST), strict("folder", folder=FOLDER)]}
COMMIT_REQUEST: Schema = strict("manifest", manifest=MANIFEST)
EDIT_REQUEST: Schema = strict("text patch", text=TEXT, patch=many(record("op path", op=TEXT, path=TEXT)))
CHECK_REQUEST: Schema = strict(
    "text", text=TEXT, target={"type": "string", "enum": ["paijupyter", "openpai"]}
)

COMPONENTS: dict[str, Schema] = {
    "Problem": PROBLEM,
    "ProblemDocument": PROBLEM_DOCUMENT,
    "Job": JOB_VIEW,
    "Plan": PLAN,
    "Group": GROUP,
    "Experiment": EXPERIMENT,
    "Task": TASK,
    "Port": PORT,
    "File": FILE,
    "Profile": PROFILE,
    "SubmitRequest": SUBMIT_REQUEST,
    "Manifest": MANIFEST,
}
