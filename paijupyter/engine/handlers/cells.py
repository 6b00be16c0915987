"""Cells of a notebook of this host as a job: its document, and the package that has their script."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from paijupyter.engine.call import Call
from paijupyter.engine.handlers.packages import snapshot_of
from paijupyter.engine.route import Reply
from paijupyter.errors import UsageProblem


async def cells_document(call: Call) -> Reply:
    """Package the notebook's folder with a script of the chosen cells; return the document that runs it."""
    return Reply(await asyncio.to_thread(_document, call.body, call.service.packages))


def _document(body: dict[str, Any], store: Any) -> dict[str, Any]:
    from paijupyter.notebook.context import source_hash
    from paijupyter.notebook.exporting import Wanted
    from paijupyter.notebook.reading import read_notebook
    from paijupyter.notebook.running import requirements_file, run_of
    from paijupyter.protocol import JobOptions, build_document, write

    path = Path(body["notebook"])
    root = Path(body.get("folder") or path.parent)
    if not path.is_relative_to(root):
        raise UsageProblem(f"Notebook `{path}` is not in the package folder `{root}`.")
    notebook = read_notebook(path)
    wanted = Wanted(body["cells"], ["worker"], order=body.get("order") or "", folder=path.parent)
    run = run_of(notebook, wanted, ["worker"], {})
    required = requirements_file(run.requirements, root, None)
    text = write(
        build_document(
            JobOptions(
                name=body.get("name") or run.name,
                commands=run.commands,
                parameters=run.parameters,
                notebook={"path": path.relative_to(root).as_posix()},
                requirements=next(iter(required), None),
            )
        )
    )
    made = snapshot_of(root, store, {**run.files, **required})
    chosen = next((cell for cell in notebook.cells if cell.id in body["cells"]), None)
    return {
        "document": text,
        "package": made["sha256"],
        "files": made["files"],
        "bytes": made["bytes"],
        "kernelspec": notebook.kernel,
        "cell": chosen
        and {"id": chosen.id, "number": chosen.number, "hash": source_hash(text, chosen.source)},
        "cells": list(run.told),
        "problems": [*(each.to_json() for each in run.problems), *made["problems"]],
    }
