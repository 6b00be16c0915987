"""The scripted server held to exchanges that were recorded with the original one.

Each is asked again after a scene that brings the scripted server into the same state. Errors must be equal
word for word; of what tells of a job, keys, kinds of values, states and codes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.openpai.asking import Told, ask
from tests.openpai.jobs import ScriptedJob
from tests.openpai.records import FILES, needed
from tests.openpai.server import OpenPai

Scene = Callable[[OpenPai], Any]
# Facts that must be equal, not only of the same kind.
SAME = {
    "state", "subState", "executionType", "taskState", "attemptState", "appExitCode", "containerExitCode",
    "containerIp", "retries", "accountableRetries", "retryDetails", "retryDelayTime", "appExitType", "phrase",
    "code", "behavior", "reaction", "type", "attemptId", "appProgress", "taskIndex", "tags", "issuer",
    "appExitTriggerMessage", "appExitTriggerTaskRoleName", "appExitTriggerTaskIndex", "originUserExitCode",
    "exitCode", "matchedUserLogString", "virtualCluster", "jobPriority", "taskroleName",
}  # fmt: skip
# What the platform itself wrote there: its own lines, sentences of Kubernetes, advice.
OTHERS = {
    "appExitDiagnostics", "containerExitDiagnostics", "repro", "solution", "platform", "reason", "message",
    "launcher", "resourcesUsed", "containerPorts",
}  # fmt: skip


ADVICE = {"solution", "pattern"}  # of the exit catalogue


def document(name: str, roles: str = "worker: 1", more: str = "") -> str:
    """Return a job document with roles of so many instances."""
    text = f"protocolVersion: 2\nname: {name}\ntype: job\n{more}"
    text += "prerequisites: [{name: img, type: dockerimage, uri: python}]\ntaskRoles:\n"
    for each in roles.split(","):
        role, count = each.split(":")
        text += (
            f"  {role.strip()}:\n    instances: {count}\n    dockerImage: img\n"
            "    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}\n    commands: [echo hello]\n"
        )
    return text


def submitted(server: OpenPai, name: str, roles: str = "worker: 1", more: str = "") -> ScriptedJob:
    """Return a job as it is after its submission."""
    posted(server, document(name, roles, more))
    return server.job(name)


def posted(server: OpenPai, text: str) -> None:
    """Post a document that is accepted."""
    told = ask(server.url, "POST", "/api/v2/jobs", server.token(), text, {"Content-Type": "text/yaml"})
    assert told.status == 202, told.body


def some_jobs(server: OpenPai) -> None:
    retried(server)
    submitted(server, "r-prio", more="extras: {hivedScheduler: {jobPriorityClass: prod}}\n").stopped()
    submitted(server, "other").stopped()
    submitted(server, "demo-1").prepare().tags.append("first")
    submitted(server, "demo-sec").stopped()
    submitted(server, "demo-qsec").succeed().execution = "STOP"
    submitted(server, "demo-run").run()


def retried(server: OpenPai) -> None:
    job = submitted(server, "r-retry2").run()
    for _ in range(2):
        job.retry(code=255, origin=5, user="attempt\n").run()
    job.fail(255, origin=5, user="attempt\n")


def gang_in_vain(server: OpenPai) -> None:
    job = submitted(server, "r-gangto", "ps: 1, worker: 1").prepare()
    job.task("worker", 0).run.node = ""
    job.delay_retry(454)


def killed_twice(server: OpenPai) -> None:
    job = submitted(server, "y-kill9").run()
    for _ in range(2):
        job.retry("platform", 137, origin=137).prepare()


def tried_thrice(server: OpenPai) -> None:
    job = submitted(server, "r-tretry").run()
    for _ in range(2):
        job.retry_task("worker", 0, origin=7).run()
    job.fail(255, origin=7)


def unfinished_last(server: OpenPai) -> None:
    some_jobs(server)
    submitted(server, "r-gangto", "ps: 1, worker: 1").prepare()


def peers_stopped(server: OpenPai) -> None:
    job = submitted(server, "r-cms1", "worker: 3").run()
    job.finish("worker", 1)
    for index in (0, 2):
        job.task("worker", index).run.end("STOPPED", -220, job.submitted)
    job.succeed(by=("worker", 1))


def too_many(kind: str) -> Scene:
    def scene(server: OpenPai) -> None:
        setattr(server.limits, kind, 1)
        body, headers = (document("first"), {"Content-Type": "text/yaml"}) if kind == "submit" else (None, {})
        ask(server.url, "POST" if body else "GET", "/api/v2/jobs", server.token(), body, headers)

    return scene


def storages(server: OpenPai) -> None:
    nfs = {"type": "nfs", "data": {"server": "192.0.2.20", "path": "/data"}}
    azure = {"type": "azureFile", "share": False, "secretName": "s", "readOnly": True,
             "data": {"shareName": "home", "accountName": "a", "accountKey": "k"}}  # fmt: skip
    server.storages = {
        "confignfs": {**nfs, "readOnly": False, "mountOptions": ["nfsvers=4.1"]},
        "home": azure,
    }
    server.accounts.users["alice"].storages = ["confignfs", "home"]
    server.accounts.users["bob"].storages = ["home"]


def events(name: str, *found: tuple[str, str, bool], roles: str = "worker: 1") -> Scene:
    def scene(server: OpenPai) -> None:
        job = submitted(server, name, roles).prepare()
        for reason, kind, timed in found:
            at = "2026-11-29T18:16:46.000Z" if timed else None
            job.event(reason, "sentence", kind, at=at, count=1 if timed else None)

    return scene


def running(server: OpenPai) -> None:
    submitted(server, "demo-run").run().log("worker", 0, "err 1\nline 1\n")


NOT_FOUND = "command not found"
LONG_ROLE = "a" * 65 + ": 1"
SCENES: dict[int, Scene] = {
    13: lambda server: server.token(),
    30: lambda server: submitted(server, "demo-1"),
    **dict.fromkeys((17, 19, *range(22, 27)), storages),
    **dict.fromkeys(range(47, 54), some_jobs),
    54: unfinished_last,
    57: lambda server: submitted(server, "q-role65", LONG_ROLE),
    58: lambda server: submitted(server, "r-nopull").prepare(),
    59: lambda server: submitted(server, "r-nosched").prepare(scheduled=False),
    60: running,
    61: lambda server: submitted(server, "demo-1").run().stopping(),
    62: lambda server: submitted(server, "r-stoptrap").run().stopped(),
    63: lambda server: submitted(server, "r-env", "ps: 1, worker: 2").run().succeed(("worker", 0)),
    64: peers_stopped,
    65: lambda server: submitted(server, "r-exit3").run().fail(255, origin=3, user="before\n"),
    66: lambda server: submitted(server, "r-exit127").run().fail(220, origin=127, matched=NOT_FOUND),
    67: lambda server: submitted(server, "r-oom").run().fail(-1200, origin=137),
    68: lambda server: submitted(server, "r-cdef", "worker: 3").run().fail(255, origin=7),
    69: lambda server: submitted(server, "r-case", "PS_server: 1, Worker: 1").run(),
    70: lambda server: submitted(server, "q-role65", LONG_ROLE).prepare(),
    71: lambda server: submitted(server, "x-neg").prepare().reject("Pod is invalid"),
    72: gang_in_vain,
    73: killed_twice,
    78: events("r-nopull", ("BackOff", "Normal", True), ("Scheduled", "Normal", False)),
    79: events("r-nosched", ("FailedScheduling", "Warning", False), ("Other", "Normal", True)),
    80: events("p-store", ("FailedMount", "Warning", True), ("Scheduled", "Normal", False)),
    81: lambda server: submitted(server, "q-role65", LONG_ROLE).prepare(),
    82: lambda server: submitted(server, "demo-1"),
    83: lambda server: submitted(server, "demo-1"),
    84: lambda server: submitted(server, "demo-1").tags.append("first"),
    85: lambda server: submitted(server, "demo-1"),
    86: lambda server: submitted(server, "demo-1").run(),
    87: lambda server: submitted(server, "demo-1").run(),
    88: lambda server: submitted(server, "demo-1"),
    89: lambda server: submitted(server, "r-ok").succeed(),
    90: lambda server: submitted(server, "demo-1"),
    91: retried,
    92: retried,
    93: tried_thrice,
    94: running,
    95: running,
    96: lambda server: (submitted(server, "r-ok").succeed(), setattr(server, "log_manager", False)),
    97: lambda server: submitted(server, "r-nosched").prepare(scheduled=False),
    **dict.fromkeys(range(99, 104), running),
    104: too_many("list"),
    105: too_many("submit"),
}  # fmt: skip
# The documents that were posted come with the record.
POSTED = {
    75: document("demo-1"),
    76: document("demo-sec", more="secrets: {a: b}\n"),
    77: document("demo-qsec", more='"secrets": {"token": "b", "pw": "c"}\n'),
    107: document("u-pm1").replace("gpu: 0", "gpu: 0, ports: {a: -1}"),
}


@pytest.fixture
def server() -> Iterator[OpenPai]:
    """A scripted server with the users of the records."""
    with OpenPai() as server:
        server.add_user("bob", "password")
        yield server


@needed
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_recorded_exchange(server: OpenPai, file: Path) -> None:
    """Whatever the original answered there, the scripted server answers."""
    record = json.loads(file.read_text())
    number = int(file.name[:3])
    SCENES.get(number, lambda server: None)(server)
    if number in POSTED:
        name = POSTED[number].split("name: ")[1].split("\n")[0]
        told = ask(
            server.url, "POST", "/api/v2/jobs", server.token(), POSTED[number], {"Content-Type": "text/yaml"}
        )
        assert told.status == 202, (name, told.body)
    told = asked_again(server, number, record)
    assert told.status == record["status"], told.body
    for name in ("Content-Type", "Access-Control-Allow-Origin", "Retry-After"):
        assert told.headers.get(name) == record["responseHeaders"].get(name), name
    if "X-RateLimit-Limit" in record["responseHeaders"]:
        assert told.headers["X-Ratelimit-Limit"] == record["responseHeaders"]["X-RateLimit-Limit"]
    compare(number, told, record)


def asked_again(server: OpenPai, number: int, record: dict[str, Any]) -> Told:
    """Send the request of a record."""
    path, body, token = record["path"], record["requestBody"], server.token()
    headers = {name: text for name, text in record["requestHeaders"].items() if name != "Authorization"}
    if number in (25, 87):
        token = server.token("bob")
    if number in (7, 8, 9, 13):
        token = server.accounts.issue("alice", server.now(), server.now() + 3600)
    if number == 11:
        headers["Authorization"] = "Basic " + base64.b64encode(f"alice:{token}".encode()).decode()
    if number in (14, 15):
        server.revoke(token)
    if 3 <= number <= 6:
        body = {**body, "password": {3: "password", 4: "wrong-password", 5: "password", 6: "short"}[number]}
    if number == 46:
        body = document("e-21") + "# " + "x" * 102_400
    if 99 <= number <= 103:
        listed = ask(
            server.url,
            "GET",
            "/api/v2/jobs/alice~demo-run/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"
            + ("?tail-mode=true" if number == 102 else ""),
            token,
        ).json()["locations"]
        path = next(each["uri"] for each in listed if each["name"] == "all")
        if number != 99:
            server.job("demo-run").log("worker", 0, record["responseBody"] if number == 100 else "x" * 39)
        if number == 103:
            server.skew += 121
    if not record["requestHeaders"].get("Authorization"):
        token = None  # type: ignore[assignment]
    return ask(server.url, record["method"], path, token, body, headers)


def compare(number: int, told: Told, record: dict[str, Any]) -> None:
    """Hold an answer to the record's."""
    theirs = record["responseBody"]
    if "json" not in told.headers.get("Content-Type", "") and number not in (75, 76, 77):
        if number in (99, 100, 103):
            assert told.body.decode() == theirs
        return
    ours = told.json()
    if told.status >= 400 and isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        assert ours.get("code") == theirs.get("code")
        if number in (31, 32, 33, 34, 35, 38, 39):
            schema_errors(number, ours["message"], theirs["message"])
        elif number not in (40, 41, 42):  # words of a parser
            assert ours["message"] == theirs["message"]
        return
    alike(ours, theirs)


def schema_errors(number: int, ours: str, theirs: str) -> None:
    """Require the same errors at the same places; of an alternative's noise, the first."""

    def facts(text: str) -> list[tuple[Any, ...]]:
        return [(each["keyword"], each["dataPath"], each["message"]) for each in json.loads(text)]

    if number == 35:
        assert facts(ours)[0] == facts(theirs)[0]
        assert len(json.loads(ours)) == len(json.loads(theirs))
    else:
        assert facts(ours) == facts(theirs)


def alike(ours: Any, theirs: Any, path: str = "") -> None:
    """Require the same keys and kinds of values, and the same facts."""
    key = path.rpartition("/")[2]
    if key in SAME:
        assert ours == theirs, path
    elif key in OTHERS:
        assert (ours is None) == (theirs is None), path
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict), path
        assert ours.keys() - ADVICE == theirs.keys() - ADVICE, path
        for name in theirs.keys() & ours.keys():
            alike(ours[name], theirs[name], f"{path}/{name}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), path
        assert bool(ours) == bool(theirs), path
        for mine, other in zip(ours, theirs):  # noqa: B905 - a record may have more of the same
            alike(mine, other, path)
    else:
        number = (int, float)
        same = type(ours) is type(theirs) or (isinstance(ours, number) and isinstance(theirs, number))
        assert same, f"{path}: {ours!r} and {theirs!r}"
