"""The scripted server itself: what it refuses, what it renders, how it goes wrong when told to.

Expected answers are those measured on the original server.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.openpai import faults
from tests.openpai.asking import Told, ask
from tests.openpai.server import OpenPai

TEXT = {"Content-Type": "text/yaml"}


@pytest.fixture(scope="module")
def shared() -> Iterator[OpenPai]:
    """A server for tests that only post."""
    with OpenPai() as server:
        yield server


def post(server: OpenPai, text: str, token: str | None = None) -> Told:
    return ask(server.url, "POST", "/rest-server/api/v2/jobs", token or server.token(), text, TEXT)


def minimal(name: str = "probe", **more: Any) -> dict[str, Any]:
    role = {
        "instances": 1,
        "dockerImage": "img",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
        "commands": ["echo hi"],
    }
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"name": "img", "type": "dockerimage", "uri": "python"}],
        "taskRoles": {"worker": role},
        **more,
    }


def changed(path: str, value: Any) -> str:
    """Return a minimal document with one member set, or taken out by `...`."""
    data = minimal(name=f"p{abs(hash(path + str(value)))}")
    *steps, last = path.split(".")
    at: Any = data
    for step in steps:
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
    if value is ...:
        del at[last]
    elif isinstance(at, list):
        at.append(value)
    else:
        at[last] = value
    return yaml.safe_dump(data, sort_keys=False)


ROLE = "taskRoles.worker"
DATA = {"name": "d", "type": "data"}
PROBES: list[tuple[str, Any, int, str]] = [
    ("protocolVersion", 2.0, 202, ""),
    ("protocolVersion", "2", 202, ""),
    ("protocolVersion", 3, 400, ".protocolVersion should be equal to one of the allowed values"),
    ("protocolVersion", ..., 400, " should have required property 'protocolVersion'"),
    ("type", "Job", 400, ".type should be equal to one of the allowed values"),
    ("name", "a.b", 400, '.name should match pattern "^[a-zA-Z0-9_-]+$"'),
    ("version", 1.0, 202, ""),
    ("version", True, 400, ".version should be string,number"),
    ("prerequisites", [], 400, ".prerequisites should NOT have fewer than 1 items"),
    ("parameters", None, 400, ".parameters should be object"),
    ("parameters", [1], 400, ".parameters should be object"),
    ("secrets", None, 400, ".secrets should be object"),
    ("secrets", {}, 202, ""),
    ("jobRetryCount", -1, 400, ".jobRetryCount should be >= 0"),
    ("jobRetryCount", 1.5, 400, ".jobRetryCount should be integer"),
    ("taskRoles", {}, 400, ".taskRoles should NOT have fewer than 1 properties"),
    ("taskRoles.a-b", {}, 400, ".taskRoles should NOT have additional properties"),
    ("defaults.virtualCluster", 5, 403, "User alice is not allowed to do operation in 5"),
    ("defaults.virtualCluster", None, 202, ""),
    ("defaults.virtualCluster", "", 403, "User alice is not allowed to do operation in "),
    ("defaults.other", 1, 202, ""),
    ("extras", None, 400, ".extras should be object"),
    ("extras.foo", 1, 202, ""),
    ("extras.storages", [], 202, ""),
    ("extras.storages", [{"mountPath": "/x"}], 202, ""),
    ("extras.com.microsoft.pai.runtimeplugin", [{"plugin": "x"}], 202, ""),
    (f"{ROLE}.instances", 0, 400, ".taskRoles['worker'].instances should be >= 1"),
    (f"{ROLE}.instances", "1", 400, ".taskRoles['worker'].instances should be integer"),
    (f"{ROLE}.instances", ..., 500, 'invalid input syntax for type integer: "NaN"'),
    (f"{ROLE}.completion", None, 400, ".taskRoles['worker'].completion should be object"),
    (f"{ROLE}.completion", {"x": 1}, 400,
     ".taskRoles['worker'].completion should NOT have additional properties"),
    (f"{ROLE}.completion", {"minFailedInstances": None, "minSucceededInstances": 0}, 202, ""),
    (f"{ROLE}.taskRetryCount", -5, 202, ""),
    (f"{ROLE}.prerequisites", ["x"], 400, "Prerequisite x does not exist."),
    (f"{ROLE}.prerequisites", [], 202, ""),
    (f"{ROLE}.extraContainerOptions", {"x": 1}, 202, ""),
    (f"{ROLE}.extraContainerOptions.shmMB", "1", 400,
     ".taskRoles['worker'].extraContainerOptions.shmMB should be integer"),
    (f"{ROLE}.resourcePerInstance.cpu", ..., 400,
     ".taskRoles['worker'].resourcePerInstance should have required property 'cpu'"),
    (f"{ROLE}.resourcePerInstance.gpu", -1, 202, ""),
    (f"{ROLE}.resourcePerInstance.x", 1, 400,
     ".taskRoles['worker'].resourcePerInstance should NOT have additional properties"),
    (f"{ROLE}.resourcePerInstance.ports", {}, 400,
     ".taskRoles['worker'].resourcePerInstance.ports should NOT have fewer than 1 properties"),
    (f"{ROLE}.resourcePerInstance.ports", {"a-b": 1}, 400,
     ".taskRoles['worker'].resourcePerInstance.ports should NOT have additional properties"),
    (f"{ROLE}.resourcePerInstance.ports", None, 202, ""),
    (f"{ROLE}.resourcePerInstance.ports", {"a": 0}, 202, ""),
    (f"{ROLE}.commands", [123], 400, ".taskRoles['worker'].commands[0] should be string"),
    (f"{ROLE}.commands", [], 400, ".taskRoles['worker'].commands should NOT have fewer than 1 items"),
    (f"{ROLE}.commands", [""], 202, ""),
    (f"{ROLE}.commands", "echo", 400, ".taskRoles['worker'].commands should be array"),
    (f"{ROLE}.dockerImage", None, 400, ".taskRoles['worker'].dockerImage should be string"),
    (f"{ROLE}.dockerImage", ..., 400, ".taskRoles['worker'] should have required property 'dockerImage'"),
    (f"{ROLE}.data", "x", 400, "Prerequisite x does not exist."),
    ("prerequisites.0", {**DATA, "uri": "a"}, 400,
     ".prerequisites[1].type should be equal to one of the allowed values"),
    ("prerequisites.0", {**DATA, "uri": []}, 202, ""),
    ("prerequisites.0", {"type": "data"}, 400, ".prerequisites[1] should have required property 'name'"),
    ("prerequisites.0", {"name": "img", "type": "script"}, 202, ""),
    ("prerequisites.0", {"name": "img", "type": "dockerimage", "uri": "x"}, 400, "Duplicate"),
    ("deployments", [], 400, ".deployments should NOT have fewer than 1 items"),
    ("deployments", [{"name": "d"}], 400, ".deployments[0] should have required property 'taskRoles'"),
    ("deployments", [{"name": "d", "taskRoles": {}}], 400,
     ".deployments[0].taskRoles should NOT have fewer than 1 properties"),
    ("deployments", [{"name": "d", "taskRoles": {"other": {}}}], 202, ""),
    ("deployments", [{"name": "d", "taskRoles": {"worker": {"x": 1}}}], 400,
     ".deployments[0].taskRoles['worker'] should NOT have additional properties"),
    ("deployments", [{"name": "d", "taskRoles": {"worker": {"preCommands": []}}}], 400,
     ".deployments[0].taskRoles['worker'].preCommands should NOT have fewer than 1 items"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "status", "message"), PROBES)
def test_one_thing_changed(shared: OpenPai, path: str, value: Any, status: int, message: str) -> None:
    """A minimal document with one change has the verdict that was measured."""
    told = post(shared, changed(path, value))
    assert told.status == status, told.body
    if message:
        said = told.json()["message"]
        if said.startswith("["):
            said = " ".join(str(json.loads(said)[0][key]) for key in ("dataPath", "message"))
        assert said.startswith(message)


def test_a_document_may_have_so_many_bytes(shared: OpenPai) -> None:
    """Exactly 102,400 pass, one more does not."""
    text = yaml.safe_dump(minimal("largest")) + "# "
    text += "x" * (102_400 - len(text))
    assert post(shared, text + "x").status == 413
    assert post(shared, text).status == 202


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"taskRoles": {"a" * 64: minimal()["taskRoles"]["worker"]}}, -1100),
        ({"taskRoles": {"_": minimal()["taskRoles"]["worker"]}}, -1100),
        ({"taskRoles": {"worker": {**minimal()["taskRoles"]["worker"],
                                   "completion": {"minFailedInstances": -2}}}}, -1100),
        ({"taskRoles": {"Worker": minimal()["taskRoles"]["worker"]}}, 1),
    ],
)  # fmt: skip
def test_what_is_accepted_and_fails(openpai: OpenPai, change: dict[str, Any], code: int) -> None:
    """The server says 202 to what Kubernetes refuses, or the runtime cannot start."""
    assert post(openpai, yaml.safe_dump(minimal("late", **change), sort_keys=False)).status == 202
    job = openpai.job("late").run()
    assert (job.state, job.code) == ("FAILED", code)


def test_quoted_keys_after_secrets_are_swallowed(openpai: OpenPai) -> None:
    """The mask takes them: 202, and the job then fails."""
    data = minimal("swallowed")
    lines = ["protocolVersion: 2", "name: swallowed", "type: job", "secrets: {a: b}"]
    lines += [f'"{key}": {json.dumps(data[key])}' for key in ("prerequisites", "taskRoles")]
    assert post(openpai, "\n".join(lines)).status == 202
    job = openpai.job("swallowed").run()
    assert (job.state, job.code) == ("FAILED", 1)
    assert set(job.stored) == {"protocolVersion", "name", "type", "secrets"}


@pytest.mark.parametrize(
    ("command", "bash"),
    [
        ("kill -9 $$", "kill -9 $"),
        ("kill -9 $$$$", "kill -9 $$"),
        ("echo $(FC_TASK_INDEX)", "echo 0"),
        ("echo $$(FC_TASK_INDEX)", "echo $(FC_TASK_INDEX)"),
        ("echo $(PAI_JOB_NAME) $((1+2))", "echo $(PAI_JOB_NAME) $((1+2))"),
        ("echo <% $parameters.one %>", "echo 1"),
        ("echo <%$parameters.list[1]%>", "echo 2"),
        ("echo <% $secrets.s %>", "echo a&amp;b"),
        ("echo <% $parameters.raw %>", "echo a&b"),
        ("echo <%& $secrets.s %>", "echo"),
        ("echo <% $parameters.nosuch %>", "echo"),
    ],
)
def test_what_bash_receives(openpai: OpenPai, command: str, bash: str) -> None:
    """Parameters, Kubernetes and secrets, one after the other."""
    data = minimal("shown", parameters={"one": 1.0, "list": ["a", 2], "raw": "<%& $secrets.s %>"})
    data["taskRoles"]["worker"]["commands"] = [command]
    data["secrets"] = {"s": "a&b"}
    assert post(openpai, yaml.safe_dump(data, sort_keys=False)).status == 202
    assert openpai.command("shown", "worker", FC_TASK_INDEX="0").rstrip() == bash


def test_faults_befall_what_they_name(openpai: OpenPai) -> None:
    """An answer of another's, once; a submission that is carried out and denied; half an answer; none."""
    token = openpai.token()
    openpai.fault("GET", r"/jobs$", instead=faults.portal())
    assert b"<html>" in ask(openpai.url, "GET", "/rest-server/api/v2/jobs", token).body
    assert ask(openpai.url, "GET", "/rest-server/api/v2/jobs", token).json() == []
    openpai.fault("POST", r"/jobs$", instead=faults.no_job(), after=True)
    assert post(openpai, yaml.safe_dump(minimal("flake"))).status == 404
    assert openpai.job("flake").state == "WAITING"
    openpai.fault("GET", r"/jobs$", cut=True)
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        ask(openpai.url, "GET", "/rest-server/api/v2/jobs", token)
    openpai.fault("GET", r"/jobs$", drop=True)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        ask(openpai.url, "GET", "/rest-server/api/v2/jobs", token)


def test_an_answer_can_be_held(openpai: OpenPai) -> None:
    """And others go on meanwhile."""
    held = openpai.fault("GET", r"v2/info$", held=threading.Event())
    told: list[Told] = []
    thread = threading.Thread(target=lambda: told.append(ask(openpai.url, "GET", "/api/v2/info")))
    thread.start()
    assert ask(openpai.url, "GET", "/api/v2/authn/info").status == 200
    assert not told
    openpai.lift(held)
    thread.join()
    assert told[0].status == 200


def test_stops_can_be_lost(openpai: OpenPai) -> None:
    """Accepted, shown as STOP, and the job goes on; the next one works."""
    post(openpai, yaml.safe_dump(minimal("goes-on")))
    job = openpai.job("goes-on").run()
    openpai.lost_stops = 1
    path = f"/api/v2/jobs/{job.framework}/executionType"
    for state in ("RUNNING", "STOPPED"):
        assert ask(openpai.url, "PUT", path, openpai.token(), {"value": "STOP"}).status == 202
        assert (job.state, job.execution) == (state, "STOP")


@pytest.mark.parametrize(
    ("version", "missing"),
    [("v1.2.0", ("events", "tokens/check")), ("v1.5.0", ("tokens/check",)), ("v1.8.1", ())],
)
def test_older_versions_have_less(version: str, missing: tuple[str, ...]) -> None:
    """Features by version."""
    with OpenPai(version=version) as server:
        token = server.token()
        post(server, yaml.safe_dump(minimal("old")))
        for path in ("tokens/check", "jobs/alice~old/events"):
            status = ask(server.url, "GET", f"/api/v2/{path}", token).status
            assert status == (404 if path.endswith(missing or ("!",)) else 200), path


def test_logs_rotate(openpai: OpenPai) -> None:
    """One older file is kept; what was before that is gone."""
    post(openpai, yaml.safe_dump(minimal("rotating")))
    job = openpai.job("rotating").run()
    for text in ("one\n", "two\n"):
        job.log("worker", 0, text).rotate("worker", 0)
    job.log("worker", 0, "three\n")
    path = job.framework + "/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
    listed = ask(openpai.url, "GET", f"/api/v2/jobs/{path}", openpai.token()).json()["locations"]
    uris = {each["name"]: each["uri"] for each in listed}
    assert ask(openpai.url, "GET", uris["all"]).body == b"three\n"
    assert ask(openpai.url, "GET", uris["all.1"]).body == b"two\n"
    openpai.expire_logs()
    assert ask(openpai.url, "GET", uris["all"]).status == 403
