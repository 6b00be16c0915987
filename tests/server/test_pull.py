"""Outputs pulled through the Jupyter server (O15): below its root, and only by who may write files there."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from jupyter_server.auth.authorizer import Authorizer
from tornado.httpclient import HTTPClientError

from paijupyter.client import start
from tests.documents import document

V1 = ("paijupyter", "v1")
DOCUMENT = document("echo trained > $PAI_OUTPUT_DIR/model.txt", name="left")


@pytest.fixture
def real_engine(monkeypatch):
    """Let the real engine start here, whatever the other tests of this folder have."""
    monkeypatch.setattr(start, "COMMAND", ("-m", "paijupyter.engine", "--detach"))


@pytest.fixture
def post(jp_fetch):
    """Post JSON; return the status and the lines of the answer."""

    async def send(*path, **body):
        try:
            answer = await jp_fetch(*V1, *path, method="POST", body=json.dumps(body), request_timeout=120)
        except HTTPClientError as refused:
            return refused.code, [json.loads(refused.response.body)]
        return answer.code, [json.loads(line) for line in answer.body.splitlines() if line.strip()]

    return send


async def finished(jp_fetch, post):
    """Run a job to its end; return it."""
    _, [job] = await post("jobs", document=DOCUMENT, context={"python": sys.executable, "surface": "rest"})
    for _ in range(2400):
        view = json.loads((await jp_fetch(*V1, "jobs", job["id"])).body)
        if view["state"] not in {"waiting", "running"}:
            break
        await asyncio.sleep(0.05)
    assert view["state"] == "succeeded"
    return view


async def test_outputs_come_below_the_root_and_nowhere_else(real_engine, jp_fetch, jp_root_dir, post):
    """Paths are those of the file browser; what differs is refused; links and dots lead nowhere."""
    job = await finished(jp_fetch, post)
    pull = ("jobs", job["id"], "pull")
    code, lines = await post(*pull, folder="home/left")
    folder = jp_root_dir / "home" / "left"
    assert (code, lines[-1]["folder"], lines[-1]["brought"]) == (200, str(folder), 1)
    model = folder / "worker-0" / "model.txt"
    assert model.read_text() == "trained\n"

    model.write_text("mine")
    code, [problem] = await post(*pull, folder="/home/left")
    assert (code, problem["code"], model.read_text()) == (409, "files-differ", "mine")
    code, lines = await post(*pull, folder="home/left", replace=True)
    assert (code, model.read_text()) == (200, "trained\n")

    outside = jp_root_dir.parent / "outside"
    outside.mkdir()
    (jp_root_dir / "link").symlink_to(outside)
    for escape in ("..", "../outside", "home/../../outside", "link", "link/deeper", ".hidden", "a\0b"):
        code, [problem] = await post(*pull, folder=escape)
        assert (code, problem["code"]) == (404, "not-found"), escape
    for nonsense in ({}, {"folder": 1}, {"folder": ["/tmp"]}, {"folder": "x", "to": "/tmp"}):
        assert (await post(*pull, **nonsense))[0] == 400
    (jp_root_dir / "inner").mkdir()
    (jp_root_dir / "inner" / "worker-0").symlink_to(outside)
    code, [problem] = await post(*pull, folder="inner", replace=True)
    assert (code, problem["code"]) == (422, "unsafe-path")
    assert list(outside.iterdir()) == [] and not list(jp_root_dir.rglob("*.part"))


async def test_a_board_needs_events(real_engine, jp_fetch, post):
    """TensorBoard is not started on nothing."""
    job = await finished(jp_fetch, post)
    code, [problem] = await post("jobs", job["id"], "tensorboard")
    assert (code, problem["code"]) == (409, "no-events")


async def test_the_board_is_of_this_server(put_job, jp_fetch, post):
    """Which interpreter runs is not for the page to say."""
    put_job("job0", "succeeded")
    code, [board] = await post("jobs", "job0", "tensorboard", python="/bin/echo")
    assert (code, board["python"]) == (200, sys.executable)


class NoFiles(Authorizer):
    """Lets everything be done but files be written."""

    def is_authorized(self, handler, user, action, resource):
        return (action, resource) != ("write", "contents")


class TestWithoutTheRightToWriteFiles:
    @pytest.fixture
    def jp_server_config(self, jp_server_config):
        jp_server_config["ServerApp"]["authorizer_class"] = NoFiles
        return jp_server_config

    async def test_nothing_is_pulled(self, put_job, post):
        put_job("job0", "succeeded")
        code, [problem] = await post("jobs", "job0", "pull", folder="home")
        assert code == 403 and "right to write files" in problem["title"]
