"""A browser's way through: package a folder of the server, submit, follow, fetch the output."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from paijupyter.client import start
from tests.documents import document

V1 = ("paijupyter", "v1")
DOCUMENT = document("python train.py", "cp train.py $PAI_OUTPUT_DIR/")


@pytest.fixture(autouse=True)
def fake_engine(monkeypatch):
    """Let the real engine start here."""
    assert start.COMMAND == ("-m", "paijupyter.engine", "--detach")


async def test_from_folder_to_output(jp_fetch, jp_root_dir):
    """P29, P31: all by REST through the Jupyter server."""
    folder = jp_root_dir / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('trained')\n")
    made = await jp_fetch(*V1, "packages", method="POST", body=json.dumps({"folder": "project"}))
    package = json.loads(made.body)
    assert package["files"] == 1
    context = {
        "folder": "project",
        "notebook": "project/n.ipynb",
        "python": sys.executable,
        "surface": "rest",
    }
    request = json.dumps({"document": DOCUMENT, "package": package["sha256"], "context": context})
    plan = json.loads((await jp_fetch(*V1, "plan", method="POST", body=request)).body)
    assert plan["ok"], plan["problems"]
    job = json.loads((await jp_fetch(*V1, "jobs", method="POST", body=request)).body)
    assert job["folder"] == str(folder)
    params = {"task": "worker-0", "follow": "1"}
    log = await asyncio.wait_for(jp_fetch(*V1, "jobs", job["id"], "logs", params=params), 60)
    assert log.body == b"trained\n"
    events = jp_fetch(*V1, "events", params={"since": "0", "follow": "0"}, raise_error=False)
    assert (await events).code == 410
    for _ in range(600):
        view = json.loads((await jp_fetch(*V1, "jobs", job["id"])).body)
        if view["state"] not in {"waiting", "running"}:
            break
        await asyncio.sleep(0.05)
    assert view["state"] == "succeeded"
    output = await jp_fetch(*V1, "jobs", job["id"], "files", "worker-0", "train.py")
    assert output.body == b"print('trained')\n"
    listed = json.loads((await jp_fetch(*V1, "jobs", params={"folder": "project"})).body)
    assert [each["id"] for each in listed["jobs"]] == [job["id"]]
