"""Storages: list, look into, put, remove."""

from __future__ import annotations

import re

from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply
from paijupyter.errors import NotFound

_SHA256 = re.compile(r"[0-9a-f]{64}")


async def list_storages(call: Call) -> Reply:
    """List the storages of a profile."""
    return Reply(await call.service.storages.list(call.query.get("profile")))


async def list_entries(call: Call) -> Reply:
    """List what lies in a folder."""
    path = call.query.get("path", "")
    return Reply(await call.service.storages.entries(call.path["storage"], path, call.query.get("profile")))


async def remove_entry(call: Call) -> Reply:
    """Remove a file or folder."""
    await call.service.storages.remove(
        call.path["storage"],
        call.path["path"],
        recursive=bool(call.query.get("recursive")),
        profile=call.query.get("profile"),
    )
    return Reply(None, 204)


async def begin_upload(call: Call) -> Reply:
    """Say how much of a file is there."""
    body = call.body
    found = await call.service.storages.begin(
        call.path["storage"], body["path"], int(body["size"]), body["sha256"], call.query.get("profile")
    )
    return Reply(found)


async def put_upload(call: Call) -> Reply:
    """Take bytes of a file."""
    sha256 = call.path["sha"]
    if not _SHA256.fullmatch(sha256):
        raise NotFound("Upload", sha256, "An upload is named by 64 hexadecimal digits.")
    found = await call.service.storages.receive(
        call.path["storage"],
        call.query.get("path", ""),
        sha256,
        call.query.get("offset", 0),
        call.query.get("size", 0),
        call.chunks,
        call.query.get("profile"),
    )
    return Reply(found)
