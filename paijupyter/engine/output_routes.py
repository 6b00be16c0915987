"""The rows of the table of routes for what jobs have left."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import files
from paijupyter.engine.route import BYTES, LINES, Answer, Route

OUTPUT_ROUTES = (
    Route(
        "GET",
        "/v1/jobs/{ref}/files",
        files.list_files,
        "List the outputs",
        {200: Answer("The outputs.", s.record("files", files=s.many(s.named("File"))))},
        problems=(404,),
    ),
    Route(
        "GET",
        "/v1/jobs/{ref}/files/{path}",
        files.get_file,
        "Read one output, whole or by Range",
        {200: Answer("The file.", None, BYTES), 206: Answer("The range.", None, BYTES)},
        problems=(404, 416),
    ),
    Route(
        "POST",
        "/v1/jobs/{ref}/pull",
        files.pull,
        "Copy outputs into a folder of this host; other files of their names there stay unless `replace`",
        {
            200: Answer(
                "Lines {done, files, bytes, size} while it copies; last {folder, brought, unchanged, size}.",
                s.OBJECT,
                LINES,
            )
        },
        body=s.strict("folder", folder=s.FOLDER, paths=s.many(s.PLAIN), replace=s.FLAG),
        problems=(404, 409, 422),
    ),
    Route(
        "POST",
        "/v1/jobs/{ref}/tensorboard",
        files.tensorboard,
        "Start TensorBoard on the outputs, or find it; below `base_url` a Jupyter server passes on to it",
        {200: Answer("The port it serves on.", s.named("Port"))},
        body=s.strict("", python=s.PLAIN),
        problems=(404, 409),
    ),
)
