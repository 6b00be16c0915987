"""One cell of a notebook as a job, as the button of a cell's toolbar asks for it."""

from __future__ import annotations

import asyncio
import json
import sys

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager

from paijupyter.client import start
from paijupyter.server.contents import interpreter_of

V1 = ("paijupyter", "v1")


@pytest.fixture
def fake_engine(monkeypatch):
    """Let the real engine start here."""
    assert start.COMMAND == ("-m", "paijupyter.engine", "--detach")


def write_notebook(folder, *cells: str) -> list[str]:
    """Write a notebook; return the ids of its cells."""
    folder.mkdir(exist_ok=True)
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(made, folder / "n.ipynb")
    return [cell.id for cell in made.cells]


async def ask(jp_fetch, *path: str, **body):
    """Post and return the answer."""
    answer = await jp_fetch(*V1, *path, method="POST", body=json.dumps(body), raise_error=False)
    return answer.code, json.loads(answer.body)


async def test_a_cell_runs_with_those_that_it_needs(jp_fetch, jp_root_dir):
    """P12, P20: the script has the cell and what it needs; a traceback in the card knows cell and line."""
    _, _, last = write_notebook(
        jp_root_dir / "project", "def half(x):\n    return x / 2", "unused = 1", "print(half(8))\nhalf('a')"
    )
    code, made = await ask(
        jp_fetch, "document", "cells", notebook="project/n.ipynb", folder="project", cells=[last]
    )
    assert code == 200, made
    assert [(each["cell"], each["included"]) for each in made["cells"]] == [(1, True), (2, False), (3, True)]
    assert made["cell"]["id"] == last and made["cell"]["number"] == 3 and made["kernelspec"] == "python3"
    assert not made["problems"]
    context = {
        "folder": "project",
        "notebook": "project/n.ipynb",
        "kernelspec": made["kernelspec"],
        "cell": made["cell"],
        "surface": "form",
    }
    request = {"document": made["document"], "package": made["package"], "context": context}
    _, plan = await ask(jp_fetch, "plan", **request)
    assert plan["ok"], plan["problems"]
    code, job = await ask(jp_fetch, "jobs", **request)
    assert code == 201 and job["cell"]["id"] == last and job["notebook"].endswith("/project/n.ipynb")
    params = {"task": "worker-0", "follow": "1"}
    log = await asyncio.wait_for(jp_fetch(*V1, "jobs", job["id"], "logs", params=params), 60)
    assert log.body.startswith(b"4.0\n")
    for _ in range(600):
        view = json.loads((await jp_fetch(*V1, "jobs", job["id"])).body)
        if view["state"] not in {"waiting", "running"}:
            break
        await asyncio.sleep(0.05)
    assert view["state"] == "failed"
    # The innermost place of the traceback: where `half` divides.
    assert view["failedTask"]["place"] == {"notebook": "n.ipynb", "cell": 1, "line": 2}


async def test_what_cannot_be_run_is_said(jp_fetch, jp_root_dir):
    """Bad input: a cell that does not exist, a notebook outside of the root, one without code."""
    write_notebook(jp_root_dir / "project", "")
    asked = {"notebook": "project/n.ipynb", "folder": "project", "cells": ["1"]}
    code, problem = await ask(jp_fetch, "document", "cells", **asked)
    assert code == 400 and "no code" in problem["title"]
    code, _ = await ask(jp_fetch, "document", "cells", **{**asked, "notebook": "../n.ipynb"})
    assert code == 404
    write_notebook(jp_root_dir / "project", "1")
    code, problem = await ask(jp_fetch, "document", "cells", **{**asked, "cells": ["7"]})
    assert code == 400 and "Cell 7" in problem["title"]


def test_the_interpreter_is_that_of_the_kernel():
    """Forms and buttons run a job of this host with the kernelspec's interpreter."""
    manager = KernelSpecManager()
    assert interpreter_of(manager, "python3") == sys.executable
    assert interpreter_of(manager, "no-such-kernel") is None
