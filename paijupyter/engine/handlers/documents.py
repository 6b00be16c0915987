"""Job documents as text: plan, check, edit."""

from __future__ import annotations

import asyncio
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply
from paijupyter.errors import InvalidDocument, PaiJupyterError, UsageProblem


async def plan(call: Call) -> Reply:
    """Say what a submission would do."""
    return Reply(await call.service.plan(call.body))


async def edit(call: Call) -> Reply:
    """Change nodes of a document, leaving all other bytes alone."""
    return Reply(await asyncio.to_thread(_edit, call.body["text"], call.body["patch"]))


async def start(call: Call) -> Reply:
    """Return a document to begin with."""
    return Reply({"document": await asyncio.to_thread(_start, call.body["name"])})


async def check(call: Call) -> Reply:
    """Find everything that is wrong with a document."""
    return Reply(await asyncio.to_thread(_check, call.body["text"], call.body.get("target", "paijupyter")))


def _start(name: str) -> str:
    """Write one role without commands: what it runs is what the person has to say."""
    from paijupyter.protocol import JobOptions, build_document, write

    document = build_document(JobOptions(name=name, commands=["true"]))
    for role in document["taskRoles"].values():
        role["commands"] = []
    return write(document)


def _edit(text: str, patch: list[dict[str, Any]]) -> dict[str, Any]:
    from paijupyter import protocol
    from paijupyter.jobs.view import json_safe
    from paijupyter.protocol.document import parse_values
    from paijupyter.protocol.old import modernised

    modern, changes = modernised(text)
    try:
        changed, found = protocol.edit(modern, patch)
    except UsageProblem as error:  # a request of the right form; it does not fit this document
        raise PaiJupyterError(error.code, error.message, error.hint, 422, error.problems) from error
    values, _, _ = parse_values(changed)
    return {
        "text": changed,
        "values": json_safe(values),
        "problems": [problem.to_json() for problem in (*changes, *found)],
    }


def _check(text: str, target: Any) -> dict[str, Any]:
    from paijupyter import protocol

    try:
        document = protocol.read(text)
        found = [*document.corrections, *protocol.check(document, target)]
    except InvalidDocument as error:
        found = error.problems
    return {"problems": [problem.to_json() for problem in found]}
