"""Rows of the route table for storages."""

from __future__ import annotations

from paijupyter.engine import schemas as s
from paijupyter.engine.handlers import storages
from paijupyter.engine.route import Answer, Parameter, Route

_PROFILE = Parameter("profile", "name of a profile; by default the default one")
_PATH = Parameter("path", "path in the storage")
_SIZE = {"type": "integer", "minimum": 0, "maximum": 2**53}
_UPLOAD = Answer(
    "How many bytes are there, and whether that is all.", s.record("offset done", offset=s.COUNT, done=s.FLAG)
)
_ENTRY = s.record(
    "name path folder size",
    name=s.TEXT,
    path=s.TEXT,
    folder=s.FLAG,
    size=s.COUNT,
    modified={"type": "number"},
)
_STORAGE = s.record(
    "name readOnly default", name=s.TEXT, path=s.maybe(s.TEXT), readOnly=s.FLAG, default=s.FLAG
)

STORAGE_ROUTES = (
    Route(
        "GET",
        "/v1/storages",
        storages.list_storages,
        "List the storages of a profile",
        {
            200: Answer(
                "The storages.", s.record("profile storages", profile=s.TEXT, storages=s.many(_STORAGE))
            )
        },
        query=(_PROFILE,),
        problems=(422,),
    ),
    Route(
        "GET",
        "/v1/storages/{storage}/files",
        storages.list_entries,
        "List what lies in a folder of a storage",
        {200: Answer("What there is.", s.record("entries", entries=s.many(_ENTRY)))},
        query=(_PROFILE, _PATH),
        problems=(404, 409, 422),
    ),
    Route(
        "DELETE",
        "/v1/storages/{storage}/files/{path}",
        storages.remove_entry,
        "Remove a file of a storage, or with `recursive` a folder and all in it",
        {204: Answer("It is gone.")},
        query=(_PROFILE, Parameter("recursive", "folders too", s.FLAG)),
        problems=(403, 404, 409, 422),
    ),
    Route(
        "POST",
        "/v1/storages/{storage}/uploads",
        storages.begin_upload,
        "Say how much of a file is in a storage already",
        {200: _UPLOAD},
        query=(_PROFILE,),
        body=s.strict("path size sha256", path=s.PLAIN, size=_SIZE, sha256=s.SHA256),
        problems=(403, 404, 409, 422),
    ),
    Route(
        "PUT",
        "/v1/storages/{storage}/uploads/{sha}",
        storages.put_upload,
        "Send bytes of a file from an offset on; with the last one the file is there",
        {200: _UPLOAD},
        query=(
            _PROFILE,
            _PATH,
            Parameter("offset", "where these bytes begin", _SIZE),
            Parameter("size", "bytes of the whole file", _SIZE),
        ),
        upload=True,
        problems=(403, 404, 409, 413, 422),
    ),
)
