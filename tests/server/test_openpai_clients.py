"""Clients of OpenPAI through our door, onto the local backend: Microsoft's own, as its users install it.

``@microsoft/openpai-js-sdk`` is OpenPAI's SDK, with the command ``pai``; ``make test-services`` installs it.
OpenPAI's client in Python is on no package index; what one in Python does stands in test_openpai.py.
"""

from __future__ import annotations

import asyncio
import getpass
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from paijupyter.client import start
from tests.services import node, sdk

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]
USER = getpass.getuser()
MODULES, NODE = sdk(), node()  # looked for in the real home, which tests do not have


@pytest.fixture(autouse=True)
def fake_engine() -> None:
    """Let the real engine start here."""
    assert start.COMMAND == ("-m", "paijupyter.engine", "--detach")


@pytest.fixture
def modules() -> Path:
    """Where the SDK is."""
    if MODULES is None or NODE is None:
        pytest.skip("@microsoft/openpai-js-sdk or Node is not installed: make test-services")
    return MODULES


@pytest.fixture
def portal(jp_serverapp: Any, http_server: Any, http_server_port: Any) -> str:
    """Address of the door, which is to clients the portal's."""
    return f"http://127.0.0.1:{http_server_port[-1]}{jp_serverapp.base_url}paijupyter/openpai"


@pytest.fixture
def token(jp_serverapp: Any) -> str:
    """The Jupyter server's."""
    return str(jp_serverapp.identity_provider.token)


async def said(*words: str, environment: Mapping[str, str]) -> str:
    """Run a program to its end beside the server, which runs in this loop; return what it printed."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *words, stdout=pipe, stderr=pipe, env={**os.environ, **environment}
    )
    out, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()
    return out.decode()


async def test_a_program_with_the_sdk(modules: Path, portal: str, token: str) -> None:
    """O1, O9, O28, O30, O31: submit, poll, list, detail, attempts, config, logs, stop; refusals."""
    script = str(Path(__file__).with_name("openpai_client.js"))
    words = (str(NODE), script, portal, USER, token)
    told = json.loads(await said(*words, environment={"NODE_PATH": str(modules)}))
    assert told["info"]["version"].startswith("v1.")
    assert (told["user"]["username"], told["clusters"][0]) == (USER, "default")
    assert told["cluster"]["resourcesTotal"]["cpu"] > 0
    assert told["storages"] == {"storages": []}
    assert told["submitted"]["message"] == f"Update job train-epoch2 for user {USER} successfully."
    assert told["again"] == {"kind": "PAIBaseError", "code": "ConflictJobError"}
    assert told["wrong"] == {"kind": "PAIBaseError", "code": "InvalidProtocolError"}
    assert (told["ended"]["name"], told["ended"]["jobStatus"]["state"]) == ("train-epoch2", "SUCCEEDED")
    assert told["attempt"]["jobStatus"]["attemptId"] == 0
    assert told["config"]["taskRoles"]["worker"]["instances"] == 2
    assert (told["task"]["taskState"], len(told["task"]["attempts"])) == ("SUCCEEDED", 1)
    assert told["events"] == {"totalCount": 0, "data": []}
    assert told["logs"] == told["tail"] == "task 1\n"
    assert told["stop"]["status"] == 202
    assert told["stopped"]["jobStatus"]["appExitCode"] == -210
    assert told["list"] == [["endless", "STOPPED"], ["train-epoch2", "SUCCEEDED"]]
    assert (told["page"]["totalCount"], told["page"]["data"][0]["name"]) == (1, "train-epoch2")
    assert told["nobody"] == {"kind": "NoJobError", "code": "NoJobError"}
    assert told["tag"] == told["history"] == {"kind": "PAIBaseError", "code": "NoApiError"}
    assert told["stranger"] == {"kind": "UnauthorizedUserError", "code": "UnauthorizedUserError"}


async def test_the_command_pai(modules: Path, portal: str, token: str, tmp_path: Path) -> None:
    """O1: its list of clusters keeps an address's host only; the guide says how the rest comes in."""
    home = Path(os.environ["HOME"])

    async def pai(*words: str) -> str:
        return await said(str(NODE), str(modules / ".bin" / "pai"), *words, environment={})

    document = {
        "protocolVersion": 2, "name": "by-pai", "type": "job",
        "prerequisites": [{"name": "img", "type": "dockerimage", "uri": "python"}],
        "taskRoles": {
            "worker": {
                "instances": 1, "dockerImage": "img", "commands": ["echo hello"],
                "resourcePerInstance": {"cpu": 1, "memoryMB": 100, "gpu": 0},
            }
        },
    }  # fmt: skip
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(document))
    (home / ".openpai").mkdir(exist_ok=True)
    await pai("addc", portal, USER, token, "--alias", "here")
    clusters = home / ".openpai" / "clusters.json"
    known = json.loads(clusters.read_text())
    known[0]["cluster"]["rest_server_uri"] = f"{portal}/rest-server"
    clusters.write_text(json.dumps(known))
    assert "successfully" in await pai("subj", "here", str(file))
    for _ in range(600):
        job = json.loads(await pai("getj", "here", "by-pai"))
        if job["jobStatus"]["state"] == "SUCCEEDED":
            break
    assert job["jobStatus"]["state"] == "SUCCEEDED"
    assert "by-pai" in await pai("listj", "here")
    assert json.loads(await pai("lists", "here")) == {"storages": []}
