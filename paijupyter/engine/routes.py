"""The table of routes: everything the API has is a row here."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.account_routes import ACCOUNT_ROUTES
from paijupyter.engine.entering_routes import ENTERING_ROUTES
from paijupyter.engine.group_routes import GROUP_ROUTES
from paijupyter.engine.handlers import about, documents, events, jobs, packages
from paijupyter.engine.history_routes import HISTORY_ROUTES
from paijupyter.engine.log_routes import LOG_ROUTES
from paijupyter.engine.openpai.routes import OPENPAI_ROUTES
from paijupyter.engine.output_routes import OUTPUT_ROUTES
from paijupyter.engine.paddle_routes import PADDLE_ROUTES
from paijupyter.engine.route import LINES, YAML, Answer, Parameter, Route
from paijupyter.engine.settings_routes import SETTINGS_ROUTES
from paijupyter.engine.storage_routes import STORAGE_ROUTES

_FOLLOW = Parameter("follow", "go on with what is still to come", s.FLAG)
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000}
_JOB = Answer("The job.", s.named("Job"))
_PROBLEMS = Answer("All findings.", s.record("problems", problems=s.many(s.named("Problem"))))

_ABOUT = (
    Route(
        "GET",
        "/v1/version",
        about.version,
        "Say who answers",
        {
            200: Answer(
                "Versions.",
                s.record(
                    "version api engine backends",
                    version=s.TEXT,
                    api=s.COUNT,
                    engine=s.record("pid startedAt host", pid=s.COUNT, startedAt=s.TIME, host=s.TEXT),
                    backends=s.many(s.TEXT),
                    unfinished=s.COUNT,
                ),
            )
        },
        wakes=False,
    ),
    Route(
        "GET",
        "/v1/schema",
        about.schema,
        "Return the table of fields, the same with the type of each value, and the job document's schema",
        {
            200: Answer(
                "All three.",
                s.record(
                    "fields form document",
                    fields=s.many(s.OBJECT),
                    form=s.many(s.OBJECT),
                    document=s.OBJECT,
                ),
            )
        },
    ),
    Route("GET", "/v1/openapi.json", about.openapi, "Describe this API", {200: Answer("OpenAPI.", s.OBJECT)}),
    Route(
        "POST",
        "/v1/engine/handover",
        about.handover,
        "End for a newer engine",
        {200: Answer("It ends now.", s.record("version engine", version=s.TEXT, engine=s.OBJECT))},
        body=s.strict("", version=s.PLAIN),
        problems=(409,),
    ),
)

_DOCUMENTS = (
    Route(
        "POST",
        "/v1/plan",
        documents.plan,
        "Say what a submission would do",
        {200: Answer("The plan, with every problem.", s.named("Plan"))},
        body=s.SUBMIT_REQUEST,
        problems=(404, 409, 422),
    ),
    Route(
        "POST",
        "/v1/document/edit",
        documents.edit,
        "Change nodes of a document by JSON Patch; an empty patch only reads it",
        {
            200: Answer(
                "The new text, and its values as they stand there.",
                s.record(
                    "text values problems",
                    text=s.TEXT,
                    values=s.OBJECT,
                    problems=s.many(s.named("Problem")),
                ),
            )
        },
        body=s.EDIT_REQUEST,
        problems=(409, 422),
    ),
    Route(
        "POST",
        "/v1/document/start",
        documents.start,
        "Return a document to begin with: one role, and nothing yet that it runs",
        {200: Answer("The document.", s.record("document", document=s.TEXT))},
        body=s.strict("name", name=s.PLAIN),
        problems=(422,),
    ),
    Route(
        "POST",
        "/v1/document/check",
        documents.check,
        "Check a document",
        {200: _PROBLEMS},
        body=s.CHECK_REQUEST,
        problems=(422,),
    ),
)

_PACKAGES = (
    Route(
        "POST",
        "/v1/packages",
        packages.begin,
        "Say what is missing of a package, or package a folder",
        {200: Answer("What is missing, or what was packaged.", s.record("sha256", sha256=s.SHA256))},
        body=s.PACKAGE_REQUEST,
        problems=(404, 409, 413, 422),
    ),
    Route(
        "POST",
        "/v1/packages/data",
        packages.take_data,
        "Package the files of a folder of this host that a document names as its data",
        {
            200: Answer(
                "Their packages by name, and what cannot travel and why.",
                s.record(
                    "data problems",
                    data={"type": "object", "additionalProperties": s.SHA256},
                    problems=s.many(s.named("Problem")),
                ),
            )
        },
        body=s.strict("document folder", document=s.TEXT, folder=s.FOLDER),
        problems=(404, 413, 422),
    ),
    Route(
        "GET",
        "/v1/packages/{sha}",
        packages.show,
        "Return a package's manifest",
        {200: Answer("The manifest.", s.named("Manifest"))},
        problems=(404,),
    ),
    Route(
        "PUT",
        "/v1/packages/{sha}/pack",
        packages.put_pack,
        "Send the small files of a package",
        {204: Answer("They are stored.")},
        upload=True,
        problems=(404, 409, 413, 422),
    ),
    Route(
        "PUT",
        "/v1/packages/blobs/{sha}",
        packages.put_blob,
        "Send one large file",
        {204: Answer("It is stored.")},
        upload=True,
        problems=(404, 409, 413, 422),
    ),
    Route(
        "POST",
        "/v1/packages/{sha}/commit",
        packages.commit,
        "Make a complete package visible",
        {200: Answer("It is visible.", s.record("sha256", sha256=s.SHA256))},
        body=s.COMMIT_REQUEST,
        problems=(404, 409, 422),
    ),
)

_JOBS = (
    Route(
        "GET",
        "/v1/jobs",
        jobs.list_jobs,
        "List jobs, latest first",
        {
            200: Answer(
                "A page of jobs; `seq` is the number to follow events from.",
                s.record("jobs next seq", jobs=s.many(s.named("Job")), next=s.maybe(s.TEXT), seq=s.COUNT),
            )
        },
        query=(
            Parameter("state", "states, separated by commas", s.STATE_FILTER),
            Parameter("profile", "name of a profile"),
            Parameter("folder", "folder that the jobs were submitted from"),
            Parameter("limit", "how many at most", _LIMIT),
            Parameter("cursor", "`next` of the page before"),
            Parameter("group", "a group whose jobs are meant; `-`: only jobs of no group"),
        ),
        problems=(404,),
    ),
    Route(
        "POST",
        "/v1/jobs",
        jobs.submit,
        "Submit a job",
        {201: _JOB, 200: Answer("The job that there is already.", s.named("Job"))},
        body=s.SUBMIT_REQUEST,
        problems=(404, 409, 422),
    ),
    Route(
        "GET",
        "/v1/jobs/{ref}",
        jobs.get_job,
        "Return one job",
        {200: _JOB},
        query=(
            Parameter("folder", "scope of `last`: a folder"),
            Parameter("kernel", "scope of `last`: a kernel's id"),
        ),
        problems=(404,),
    ),
    Route(
        "DELETE",
        "/v1/jobs/{ref}",
        jobs.delete,
        "Forget a final job",
        {204: Answer("It is gone.")},
        problems=(404, 409),
    ),
    Route(
        "POST",
        "/v1/jobs/{ref}/stop",
        jobs.stop,
        "Stop a job",
        {200: _JOB},
        body=s.strict(),
        problems=(404, 409),
    ),
    Route(
        "POST",
        "/v1/jobs/{ref}/retry",
        jobs.retry,
        "Submit the same again",
        {201: _JOB},
        body=s.RETRY_REQUEST,
        problems=(404, 409, 422),
    ),
    Route(
        "POST",
        "/v1/jobs/{ref}/clone",
        jobs.clone,
        "Submit a changed copy",
        {201: _JOB},
        body=s.CLONE_REQUEST,
        problems=(404, 409, 422),
    ),
    Route(
        "GET",
        "/v1/jobs/{ref}/export",
        jobs.export,
        "Return the job document",
        {200: Answer("YAML.", s.TEXT, YAML)},
        query=(Parameter("what", "which one", {"type": "string", "enum": ["source", "submitted"]}),),
        problems=(404,),
    ),
    Route(
        "GET",
        "/v1/jobs/{ref}/tasks",
        jobs.tasks,
        "List tasks",
        {
            200: Answer(
                "A page of tasks.", s.record("tasks total", tasks=s.many(s.named("Task")), total=s.COUNT)
            )
        },
        query=(
            Parameter("attempt", "number of the attempt", s.COUNT),
            Parameter("offset", "how many to pass over", s.COUNT),
            Parameter("limit", "how many at most", _LIMIT),
        ),
        problems=(404,),
    ),
    Route(
        "GET",
        "/v1/jobs/{ref}/ports",
        jobs.ports,
        "List the ports of the tasks that run",
        {
            200: Answer(
                "The ports; below `base_url` a Jupyter server passes on to one at its `path`.",
                s.record("ports", ports=s.many(s.named("Port"))),
            )
        },
        problems=(404, 409),
    ),
)

_EVENTS = (
    Route(
        "GET",
        "/v1/events",
        events.events,
        "Read changes, one JSON object a line",
        {200: Answer("NDJSON; a blank line keeps the connection alive.", s.TEXT, LINES)},
        query=(Parameter("since", "number of the last event read", s.COUNT), _FOLLOW),
        problems=(410,),
    ),
)

ROUTES: tuple[Route, ...] = (
    *_ABOUT,
    *_DOCUMENTS,
    *_PACKAGES,
    *_JOBS,
    *OUTPUT_ROUTES,
    *GROUP_ROUTES,
    *SETTINGS_ROUTES,
    *ACCOUNT_ROUTES,
    *STORAGE_ROUTES,
    *ENTERING_ROUTES,
    *HISTORY_ROUTES,
    *LOG_ROUTES,
    *_EVENTS,
    *PADDLE_ROUTES,
    *OPENPAI_ROUTES,
)
