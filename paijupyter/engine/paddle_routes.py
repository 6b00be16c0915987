"""Rows of the route table for the job server of PaddlePaddle's design."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import paddle
from paijupyter.engine.route import Answer, Parameter, Route

_VIEW = s.record(
    "name state trainers pservers job",
    job_name=s.maybe(s.TEXT),
    name=s.TEXT,
    id=s.TEXT,
    state=s.STATE,
    trainers=s.COUNT,
    pservers=s.COUNT,
    size=s.TEXT,
    job=s.named("Job"),
)
_JOB = Answer("The job.", _VIEW)
_PACKAGE = Answer(
    "It is stored.", s.record("sha256 files bytes", sha256=s.SHA256, files=s.COUNT, bytes=s.COUNT)
)
_SHA_HINT = "Take a trainer package as a tar archive; its `sha256` is the job's `trainer_package`"

PADDLE_ROUTES = (
    Route(
        "GET",
        "/paddle/v1/version",
        paddle.paddle_version,
        "Say who answers",
        {200: Answer("Versions.", s.record("version api", version=s.TEXT, api=s.COUNT))},
    ),
    Route(
        "POST",
        "/paddle/v1/package",
        paddle.put_paddle_package,
        _SHA_HINT,
        {201: _PACKAGE},
        upload=True,
        problems=(413, 422, 507),
    ),
    Route(
        "POST",
        "/paddle/v1/packages",
        paddle.put_paddle_packages,
        _SHA_HINT,
        {201: _PACKAGE},
        upload=True,
        problems=(413, 422, 507),
    ),
    Route(
        "POST",
        "/paddle/v1/trainer/job",
        paddle.submit_paddle_job,
        "Submit a PaddleJob, in the design's names of fields or those of its implementation",
        {201: _JOB},
        body=s.OBJECT,
        problems=(404, 409, 422),
    ),
    Route(
        "GET",
        "/paddle/v1/jobs",
        paddle.list_paddle_jobs,
        "List jobs, latest first",
        {200: Answer("A page of jobs.", s.record("jobs next", jobs=s.many(_VIEW), next=s.maybe(s.TEXT)))},
        query=(
            Parameter("limit", "how many at most", {"type": "integer", "minimum": 1, "maximum": 1000}),
            Parameter("cursor", "`next` of the page before"),
        ),
    ),
    Route(
        "GET", "/paddle/v1/jobs/{ref}", paddle.get_paddle_job, "Return one job", {200: _JOB}, problems=(404,)
    ),
    Route(
        "DELETE",
        "/paddle/v1/jobs/{ref}",
        paddle.stop_paddle_job,
        "Stop a job; its record and logs stay",
        {200: _JOB},
        problems=(404, 409),
    ),
)
