"""What jobs were made of: provenance, repetition, difference, report; and the document of a notebook."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply
from paijupyter.errors import UsageProblem


async def provenance(call: Call) -> Reply:
    """Return what a job was made of."""
    return Reply(await call.service.history.provenance(call.path["ref"]))


async def diff(call: Call) -> Reply:
    """Return what changed from one job to another."""
    return Reply(await call.service.history.diff(call.path["ref"], call.query.get("with", "last")))


async def rerun(call: Call) -> Reply:
    """Submit exactly the same once more."""
    found = await call.service.history.rerun(
        call.path["ref"], call.body.get("secrets"), call.body.get("requestId")
    )
    return Reply(found, 201)


async def report(call: Call) -> Reply:
    """Return a notebook that shows jobs side by side."""
    body = call.body
    return Reply(await call.service.history.report(body["jobs"], body.get("title"), body.get("tag")))


async def notebook_document(call: Call) -> Reply:
    """Return the job document that runs a notebook, and the parameters that it declares."""
    return Reply(await asyncio.to_thread(_document, call.body))


def _document(body: dict[str, Any]) -> dict[str, Any]:
    from paijupyter.notebook import whole
    from paijupyter.notebook.declared import declared, fitted
    from paijupyter.notebook.reading import read_notebook
    from paijupyter.protocol import JobOptions, build_document, write
    from paijupyter.protocol.roles import parse_role

    path = Path(body["notebook"])
    root = Path(body.get("folder") or path.parent)
    if not path.is_relative_to(root):
        raise UsageProblem(f"Notebook `{path}` is not in the package folder `{root}`.")
    notebook = read_notebook(path)
    if body.get("until"):
        whole.check_until(notebook, body["until"])
    inside = path.relative_to(root).as_posix()
    parameters = fitted(notebook, body.get("parameters") or {})
    options = JobOptions(
        name=body.get("name") or path.stem,
        commands=[whole.command(inside, body.get("until"), body.get("timeout"))],
        roles=[parse_role(text) for text in body.get("roles") or ()],
        parameters=parameters,
        install=body.get("install"),
        notebook={"path": inside, "run": True},
    )
    return {
        "document": write(build_document(options)),
        "notebook": inside,
        "cells": len(notebook.cells),
        "parameters": [each.to_json() for each in declared(notebook)],
        "problems": [each.to_json() for each in whole.problems(notebook, parameters)],
    }
