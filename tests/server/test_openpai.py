"""OpenPAI's REST API on our jobs: what its clients call, held to recorded answers of the original server."""

from __future__ import annotations

import asyncio
import getpass
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from paijupyter import paths
from paijupyter.client import start
from tests.openpai.records import recorded
from tests.resting import holders

V2 = ("paijupyter", "openpai", "api", "v2")
USER = getpass.getuser()
DOCUMENT = """\
protocolVersion: 2
name: NAME
type: job
prerequisites:
  - name: img
    type: dockerimage
    uri: python
secrets:
  word: canary-5up3r
taskRoles:
  worker:
    instances: 2
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ["COMMAND"]
"""


@pytest.fixture(autouse=True)
def fake_engine(monkeypatch):
    """Let the real engine start here."""
    assert start.COMMAND == ("-m", "paijupyter.engine", "--detach")


@pytest.fixture
def ask(jp_fetch):
    """Return what fetches JSON, or the answer of another status."""

    async def fetch(*path: str, method: str = "GET", status: int = 200, **more: Any) -> Any:
        answer = await jp_fetch(*V2, *path, method=method, raise_error=False, **more)
        assert answer.code == status, answer.body
        return json.loads(answer.body)

    return fetch


@pytest.fixture
def submit(ask):
    """Return what submits a document as OpenPAI's clients do."""

    async def post(name: str, command: str = "echo hello", status: int = 202, text: str | None = None) -> Any:
        body = text or DOCUMENT.replace("NAME", name).replace("COMMAND", command)
        headers = {"Content-Type": "text/yaml"}
        return await ask("jobs", method="POST", status=status, body=body, headers=headers)

    return post


async def until(ask: Any, name: str, *states: str) -> Any:
    for _ in range(1200):
        found = await ask("jobs", f"{USER}~{name}")
        if found["jobStatus"]["state"] in states:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(found)


def same_keys(ours: Any, theirs: Any, path: str = "") -> None:
    """Require every key of the original, at every depth where both have values."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        assert ours.keys() >= theirs.keys(), f"{path}: {theirs.keys() - ours.keys()} missing"
        for key in theirs.keys() - {"containerPorts"}:  # those of an ended task are closed here
            same_keys(ours[key], theirs[key], f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and theirs and ours:
        same_keys(ours[0], theirs[0], f"{path}/0")
    elif theirs is not None and ours is not None:
        assert type(ours) is type(theirs) or {type(ours), type(theirs)} <= {int, float}, path


async def test_a_client_goes_through_its_loop(ask, submit, jp_fetch):
    """O1, O9, O28, O30: info, token, user, submit, poll, logs by range, config: openpai.md 8.6."""
    assert (await ask("info"))["version"].startswith("v1.")
    assert (await ask("tokens", "check"))["username"] == USER
    user = await ask("users", USER)
    assert user["virtualCluster"][0] == "default"
    said = await submit("demo-1", "echo hello; echo $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX")
    assert said == {"status": 202, "message": f"Update job demo-1 for user {USER} successfully."}
    job = await until(ask, "demo-1", "SUCCEEDED")
    assert (job["name"], job["jobStatus"]["appExitCode"]) == ("demo-1", 0)
    place = job["taskRoles"]["worker"]["taskStatuses"][1]["containerLog"]
    listed = await ask(*place.removeprefix("/api/v2/").split("/"))
    uri = next(each["uri"] for each in listed["locations"] if each["name"] == "all")
    log = ("paijupyter", "openpai", *uri.removeprefix("/").split("/"))
    assert (await jp_fetch(*log)).body == b"hello\n1\n"
    part = await jp_fetch(*log, headers={"Range": "bytes=6-"})
    assert (part.code, part.body, part.headers["Content-Range"]) == (206, b"1\n", "bytes 6-7/8")
    with pytest.raises(HTTPClientError) as past:
        await jp_fetch(*log, headers={"Range": "bytes=8-"})
    assert (past.value.code, past.value.response.headers["Content-Range"]) == (416, "bytes */8")
    config = json.loads((await jp_fetch(*V2, "jobs", f"{USER}~demo-1", "config")).body)
    assert config["secrets"] == "******"
    assert config["taskRoles"]["worker"]["instances"] == 2


async def test_answers_have_the_keys_of_the_original(ask, submit):
    """Held to recorded exchanges 001, 009, 017, 020, 022, 047, 048, 065, 091, 093."""
    await submit("keys", "exit 3")
    failed = await until(ask, "keys", "FAILED")
    assert failed["jobStatus"]["appExitCode"] == 255
    assert failed["jobStatus"]["appExitMessages"]["runtime"]["originUserExitCode"] == 3
    name = f"{USER}~keys"
    task = ("jobs", name, "attempts", "0", "taskRoles", "worker", "taskIndex", "0", "attempts")
    for record, path, params in (
        ("001-info", ("info",), {}),
        ("010-token-check-application", ("tokens", "check"), {}),
        ("020-virtual-clusters", ("virtual-clusters",), {}),
        ("022-storages", ("storages",), {}),
        ("047-list-limit", ("jobs",), {"limit": "3"}),
        ("048-list-total", ("jobs",), {"limit": "2", "withTotalCount": "true"}),
        ("065-job-failed-exit-3", ("jobs", name), {}),
        ("091-attempt-0", ("jobs", name, "attempts", "0"), {}),
        ("093-task-attempts", task, {}),
        ("094-logs-list", (*task, "0", "logs"), {}),
    ):
        theirs = recorded(record)
        if record.startswith(("065", "091")):  # the platform's own log lines are not ours to have
            theirs["jobStatus"]["appExitMessages"]["runtime"]["errorLogs"] = {"user": "", "platform": ""}
        same_keys(await ask(*path, params=params), theirs, record)


@pytest.mark.parametrize(
    ("record", "name", "text", "status"),
    [
        ("031-submit-400-unknown-key", "a", "protocolVersion: 2\nname: a\ntype: job\nnosuch: 1\n", 400),
        (
            "037-submit-400-no-deployment",
            "b",
            DOCUMENT.replace("NAME", "b") + "defaults: {deployment: x}\n",
            400,
        ),
        ("044-submit-403-vc", "c", DOCUMENT.replace("NAME", "c") + "defaults: {virtualCluster: x}\n", 403),
        ("046-submit-413", "d", DOCUMENT.replace("NAME", "d") + "# " + "x" * 102_400 + "\n", 413),
    ],
)
async def test_refusals_have_the_status_of_the_original(submit, record, name, text, status):
    """O27: and their code where they have one."""
    found = await submit(name, status=status, text=text)
    theirs = recorded(record)
    assert found.get("code") == theirs.get("code", "")
    assert found["message"]


async def test_a_name_stands_for_one_job(ask, submit):
    """Recorded exchange 030."""
    await submit("once", "sleep 600")
    assert (await submit("once", status=409))["code"] == "ConflictJobError"
    stopped = await ask(
        "jobs", f"{USER}~once", "executionType", method="PUT", status=202, body='{"value": "STOP"}'
    )
    assert stopped["message"] == f"Execute job {USER}~once successfully."
    job = await until(ask, "once", "STOPPED")
    assert (job["jobStatus"]["appExitCode"], job["jobStatus"]["executionType"]) == (-210, "STOP")
    tasks = job["taskRoles"]["worker"]["taskStatuses"]
    assert {each["containerExitCode"] for each in tasks} == {-220}
    again = await ask(
        "jobs", f"{USER}~once", "executionType", method="PUT", status=400, body='{"value": "START"}'
    )
    assert again["code"] == "InvalidParametersError"


async def test_lists_are_filtered_ordered_and_counted(ask, submit):
    """Recorded exchanges 048 to 056."""
    for name in ("list-b", "list-a", "other"):
        await submit(name)
        await until(ask, name, "SUCCEEDED")

    async def names(**params: str) -> list[str]:
        return [each["name"] for each in await ask("jobs", params=params)]

    assert await names() == ["other", "list-a", "list-b"]
    assert await names(keyword="list-", order="jobName,ASC") == ["list-a", "list-b"]
    assert await names(limit="1", offset="1") == ["list-a"]
    assert await names(state="FAILED,STOPPED") == []
    assert await names(username="nobody") == []
    assert await names(vc="default", state="SUCCEEDED", limit="0") == []
    total = await ask("jobs", params={"withTotalCount": "true", "limit": "1"})
    assert (total["totalCount"], len(total["data"])) == (3, 1)


async def test_a_posted_secret_rests_nowhere(ask, submit):
    """O20: it reaches the task, and is in no file, answer or log of ours."""
    await submit("secret", "test '<% $secrets.word %>' = canary-$((4 + 1))up3r && echo <% $secrets.word %>")
    job = await until(ask, "secret", "SUCCEEDED", "FAILED")
    assert job["jobStatus"]["state"] == "SUCCEEDED"
    assert not holders("canary-5up3r", paths.data_dir())


@pytest.mark.parametrize(
    "path", ["jobs/nobody~x", f"jobs/{USER}~nosuch", "jobs/x", f"jobs/{USER}~nosuch/config"]
)
async def test_unknown_jobs_are_said_so(ask, path):
    """Recorded exchange 074."""
    assert (await ask(*path.split("/"), status=404))["code"] == "NoJobError"


async def test_who_has_no_token_is_a_guest(http_server_client, jp_serverapp, jp_base_url):
    """Recorded exchange 016: 401, and nothing is done."""
    for method, path, body in (
        ("GET", "jobs", None),
        ("POST", "jobs", DOCUMENT),
        ("PUT", f"jobs/{USER}~x/executionType", "{}"),
        ("GET", "info", None),
    ):
        with pytest.raises(HTTPClientError) as refused:
            await http_server_client.fetch(
                f"{jp_base_url}paijupyter/openpai/rest-server/api/v2/{path}", method=method, body=body
            )
        assert refused.value.code in (401, 403)
        assert json.loads(refused.value.response.body)["message"]


def test_no_answer_names_a_path_of_this_machine():
    """The door's own texts are about OpenPAI's things."""
    sources = Path(paths.__file__).parent / "engine" / "openpai"
    assert not [
        each for each in sources.glob("*.py") if re.search(r"Traceback|/home/|/root/", each.read_text())
    ]
