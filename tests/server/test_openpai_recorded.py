"""The 107 exchanges that were recorded with the original OpenPAI server, asked of our door.

One server and one local engine; jobs are named as in the records. What is answered otherwise on purpose and
what is not asked, each with its reason, stands in tests/openpai/exchanges.py.
"""

from __future__ import annotations

import asyncio
import getpass
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paijupyter.client import start
from paijupyter.jobs.profiles import user_file
from tests.openpai.exchanges import DIFFERENT, NOT_ASKED, OTHERWISE
from tests.openpai.records import FILES, needed

USER = getpass.getuser()
# Facts that must be equal where both have them.
SAME = frozenset(
    {
        "state", "subState", "executionType", "taskState", "attemptState", "appExitCode", "containerExitCode",
        "retries", "retryDetails", "appExitType", "phrase", "code", "attemptId", "taskIndex",
        "originUserExitCode", "exitCode", "totalTaskNumber", "totalTaskRoleNumber",
        "appExitTriggerTaskRoleName",
    }
)  # fmt: skip
LISTS = range(47, 57)  # of the jobs that were there: kinds of values, no facts
FREE = frozenset({"extension", "containerPorts", "errorLogs", "repro", "solution", "pattern"})


def role(name: str, command: str, instances: int = 1, cpu: int = 1, more: str = "") -> str:
    """Return a role of a document."""
    lines = [
        f"{name}:",
        f"  instances: {instances}",
        "  dockerImage: img",
        f"  commands: [{json.dumps(command)}]",
    ]
    lines.append(f"  resourcePerInstance: {{cpu: {cpu}, memoryMB: 64, gpu: 0}}")
    return "".join(f"  {line}\n" for line in [*lines, *([f"  {more}"] if more else [])])


def document(name: str, *roles: str, more: str = "") -> str:
    """Return a job document."""
    head = f"protocolVersion: 2\nname: {name}\ntype: job\n{more}"
    image = "prerequisites: [{name: img, type: dockerimage, uri: python}]\n"
    return f"{head}{image}taskRoles:\n{''.join(roles)}"


GREEDY = "python3 -c 'x = bytearray(600 << 20); import time; time.sleep(600)'"
FIRST, SECOND = '[ "$PAI_TASK_INDEX" = 0 ]', '[ "$PAI_TASK_INDEX" = 1 ]'
ONE_WILL_DO = "completion: {minSucceededInstances: 1}"
# The jobs of the records, and the state that is waited for. The last two fill the profile, so that one waits.
JOBS = {
    "r-exit3": ("FAILED", "", role("worker", "echo before; exit 3")),
    "r-exit127": ("FAILED", "", role("worker", "nosuchcommand")),
    "r-oom": ("FAILED", "", role("worker", GREEDY)),
    "r-cdef": ("FAILED", "", role("worker", f"{FIRST} && exit 7; sleep 600", 3)),
    "r-retry2": ("FAILED", "jobRetryCount: 2\n", role("worker", "exit 5")),
    "r-tretry": ("FAILED", "", role("worker", "exit 7")),
    "r-env": ("SUCCEEDED", "", role("ps", "true"), role("worker", "echo hi", 2)),
    "r-cms1": ("SUCCEEDED", "", role("worker", f"{SECOND} && exit 0; sleep 600", 3, more=ONE_WILL_DO)),
    "r-ok": ("SUCCEEDED", "", role("worker", "echo hi")),
    "demo-sec": ("SUCCEEDED", "secrets: {a: b}\n", role("worker", "echo hi")),
    "demo-qsec": ("SUCCEEDED", '"secrets": {"token": "b", "pw": "c"}\n', role("worker", "echo hi")),
    "r-stoptrap": ("RUNNING", "", role("worker", "trap '' TERM; sleep 600")),
    "demo-run": ("RUNNING", "", role("worker", "seq 200; sleep 600", cpu=2)),
    "q-role65": ("WAITING", "", role("worker", "true", cpu=4)),
}
# Whose words of a document are not those of the record: its body was cut, or its secrets taken out.
BODIES = {46: document("e-21", role("worker", "true")) + "# " + "x" * 102_400}
PATHS = {97: ("r-nosched", "q-role65"), 61: ("demo-1", "r-stoptrap")}
ORDER = (*(n for n in range(1, 108) if n not in (61, 62, 86, 88)), 88, 61, 62, 86)

LOG = f"/api/v2/jobs/{USER}~demo-run/attempts/0/taskRoles/worker/taskIndex/0/attempts/0/logs"


class Door:
    """The door of one Jupyter server."""

    def __init__(self, client: Any, url: str, token: str) -> None:
        self.client, self.url, self.token = client, url, token

    async def ask(self, method: str, path: str, body: str | None = None, headers: Any = None) -> Any:
        """Return the answer, of whatever status."""
        sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        return await self.client.fetch(
            self.url + path, method=method, headers=sent, body=body, allow_nonstandard_methods=True,
            request_timeout=120, raise_error=False,
        )  # fmt: skip

    async def submit(self, text: str) -> None:
        """Post a document that is accepted."""
        told = await self.ask("POST", "/api/v2/jobs", text, {"Content-Type": "text/yaml"})
        assert told.code == 202, told.body

    async def until(self, name: str, *states: str) -> None:
        """Wait for a state of a job."""
        for _ in range(1200):
            job = json.loads((await self.ask("GET", f"/api/v2/jobs/{USER}~{name}")).body)
            if job["jobStatus"]["state"] in states:
                return
            assert job["jobStatus"]["completedTime"] is None, (name, job["jobStatus"])
            await asyncio.sleep(0.1)
        raise AssertionError(f"{name} is not {states}: {job['jobStatus']}")

    async def printed(self, place: str, end: str) -> None:
        """Wait until a log ends with a text."""
        for _ in range(600):
            log = (await self.ask("GET", f"{place}/all")).body.decode()
            if log.endswith(end):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(log)


@pytest.fixture(autouse=True)
def fake_engine() -> None:
    """Let the real engine start here."""
    assert start.COMMAND == ("-m", "paijupyter.engine", "--detach")


@pytest.fixture
def door(jp_serverapp: Any, http_server_client: Any, tmp_path: Path) -> Door:
    """The door, with the storages of the records and four cores."""
    for name in ("confignfs", "home"):
        (tmp_path / "stores" / name).mkdir(parents=True)
    file = user_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    places = {name: {"path": str(tmp_path / "stores" / name)} for name in ("confignfs", "home")}
    profile = {"kind": "local", "cpu": 4, "memoryMB": 4000, "storages": places}
    file.write_text(json.dumps({"profiles": {"local": profile}}))  # which is YAML
    base = f"{jp_serverapp.base_url}paijupyter/openpai"
    return Door(http_server_client, base, jp_serverapp.identity_provider.token)


@needed
@pytest.mark.timeout(600)
async def test_the_door_answers_as_the_original_did(door: Door) -> None:
    """O27-O32: each exchange that our door has something to say to."""
    files = {int(file.name[:3]): file for file in FILES}
    assert files.keys() == set(ORDER)
    for name, (state, more, *roles) in JOBS.items():
        await door.submit(document(name, *roles, more=more))
        await door.until(name, state)
    await door.printed(LOG, "200\n")
    problems = []
    for number in ORDER:
        if number in NOT_ASKED:
            continue
        record = json.loads(files[number].read_text())
        try:
            await exchange(door, number, record)
        except AssertionError as problem:
            first = str(problem).partition("\n")[0]
            problems.append(f"{number:03} {record['method']} {record['path']}: {first}")
    assert not problems, "\n".join(problems)


async def exchange(door: Door, number: int, record: dict[str, Any]) -> None:
    """Ask again, and hold the answer to the record's, or to what it is on purpose."""
    path, headers = request_of(number, record)
    if number == 62:
        await door.until("r-stoptrap", "STOPPED")
    if number == 61:
        await door.ask("PUT", f"/api/v2/jobs/{USER}~r-stoptrap/executionType", '{"value": "STOP"}')
    if 99 <= number <= 102:
        tail = "?tail-mode=true" if number == 102 else ""
        listed = json.loads((await door.ask("GET", LOG + tail)).body)["locations"]
        path = next(each["uri"] for each in listed if each["name"] == "all")
    body = BODIES.get(number, record["requestBody"])
    if body is not None and not isinstance(body, str):
        body = json.dumps(body)
    told = await door.ask(record["method"], path, body, headers)
    code = said(told).get("code", "") if told.code >= 400 and number not in (101,) else ""
    if number in DIFFERENT:
        assert (told.code, code) == DIFFERENT[number][:2], told.body
        return
    assert told.code == record["status"], told.body
    theirs = record["responseBody"]
    if number in (99, 100, 101, 102):
        assert ("Content-Range" in told.headers) == (number != 99)
    elif told.code >= 400:
        assert code == theirs.get("code", ""), told.body
        assert said(told)["message"]
    else:
        skipped = OTHERWISE.get(number, (frozenset(), ""))[0] | FREE
        facts = frozenset() if number in LISTS else SAME
        same = theirs if not isinstance(theirs, str) else json.loads(theirs)
        Likeness(skipped, facts - skipped).require(json.loads(told.body), same)


def request_of(number: int, record: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Return path and headers of a record, for the user who is here."""
    theirs, ours = PATHS.get(number, ("", ""))
    path = record["path"].replace("alice", USER).replace("REDACTED", "x")
    path = path.replace(f"~{theirs}", f"~{ours}") if theirs else path
    headers = {name: text for name, text in record["requestHeaders"].items() if name != "Authorization"}
    given = {11: "Basic YWxpY2U6eA==", 14: "Bearer x", 15: "Bearer x", 16: ""}
    if number in given:
        headers["Authorization"] = given[number]
    return path, headers


def said(told: Any) -> dict[str, Any]:
    """Return the body of an error, which must be OpenPAI's."""
    assert told.headers["Content-Type"].startswith("application/json"), (told.code, told.body)
    error: dict[str, Any] = json.loads(told.body)
    assert error.keys() == {"code", "message"}, error
    return error


@dataclass(frozen=True, slots=True)
class Likeness:
    """What is held to the original: every key, kinds of values, some facts.

    Attributes:
        skipped: keys that are not looked at.
        facts: keys whose values must be equal.
    """

    skipped: frozenset[str]
    facts: frozenset[str]

    def require(self, ours: Any, theirs: Any, path: str = "") -> None:
        """Hold one value to another."""
        key = path.rpartition("/")[2]
        if key in self.skipped:
            return
        if isinstance(theirs, dict) and isinstance(ours, dict):
            missing = theirs.keys() - ours.keys() - self.skipped
            assert not missing, f"{path}: {missing} missing"
            for name in theirs.keys() & ours.keys():
                self.require(ours[name], theirs[name], f"{path}/{name}")
        elif isinstance(theirs, list) and isinstance(ours, list):
            assert bool(ours) == bool(theirs), path
            for mine, other in zip(ours, theirs):  # noqa: B905 - a record may have more of the same
                self.require(mine, other, path)
        elif key in self.facts:
            assert ours == theirs, f"{path}: {ours!r}, not {theirs!r}"
        elif theirs is not None and ours is not None:
            numbers = isinstance(ours, (int, float)) and isinstance(theirs, (int, float))
            assert numbers or type(ours) is type(theirs), path
