"""Stop, clone, retry and adoption through the engine, on a profile of kind openpai (O21, O28, O32, P37)."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest

from paijupyter.client import verbs
from paijupyter.client.client import JobsClient
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.errors import PaiJupyterError
from tests.openpai.server import OpenPai

POSTED = """\
protocolVersion: 2
name: of-the-portal
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "python:3.11-slim"}
secrets:
  token: "canary-abc&1"
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
      - echo <% $secrets.token %> | wc -c
"""
OURS = POSTED.replace('"canary-abc&1"', '""')


def run(*words: str) -> verbs.Reply:
    return verbs.run(
        JobsClient.connect, parse_verb(words[0], words[1:], "cli"), Origin("cli", Path.cwd()), None
    )


@pytest.fixture
def client(openpai: OpenPai, monkeypatch: pytest.MonkeyPatch) -> JobsClient:
    """Of an engine that has the profile `pai`, where alice is logged in."""
    monkeypatch.setenv("PAIJUPYTER_TOKEN_PAI", openpai.token())
    setting = ("--set", "pollSeconds=0.1", "--set", "callsPerMinute=100000")
    run("profile", "add", "pai", "--kind", "openpai", "--set", f"url={openpai.url}", *setting)
    openpai.limits.list = openpai.limits.all = 1_000_000
    return JobsClient.connect()


def ended(client: JobsClient, view: dict[str, Any]) -> dict[str, Any]:
    return client.wait(str(view["id"]), 60)


def post(server: OpenPai, text: str) -> None:
    """Submit as the portal does."""
    headers = {"Content-Type": "text/yaml", "Authorization": f"Bearer {server.token()}"}
    request = urllib.request.Request(f"{server.url}/api/v2/jobs", text.encode(), headers, method="POST")
    urllib.request.urlopen(request).close()


def test_stop_retry_and_clone_are_new_jobs_of_the_server(openpai: OpenPai, client: JobsClient) -> None:
    """Each has a name of its own there, for names are never free again; the first keeps its end."""
    openpai.on_submit = lambda job: job.run()
    secrets = {"token": {"value": "canary-abc&1", "reference": "ask"}}
    first = client.submit({"document": OURS, "profile": "pai", "secrets": secrets})
    client.stop(str(first["id"]))
    assert ended(client, first)["state"] == "stopped"
    again = client.retry(str(first["id"]), secrets)
    changed = OURS.replace("wc -c", "wc -l").replace("instances: 2", "instances: 1")
    copy = client.clone(str(first["id"]), {"document": changed, "secrets": secrets})
    with openpai.lock:
        names = [each.name for each in openpai.jobs.values()]
        assert len(set(names)) == 3
        for view in (again, copy):
            openpai.job(str(view["name"])).succeed()
        assert openpai.job(str(copy["name"])).data["taskRoles"]["worker"]["instances"] == 1
    assert {ended(client, view)["state"] for view in (again, copy)} == {"succeeded"}
    assert client.get(str(first["id"]))["state"] == "stopped"


def test_a_job_of_the_portal_is_taken_over_and_its_secrets_are_asked_for_again(
    openpai: OpenPai, client: JobsClient, until: Any
) -> None:
    """The server masks them, so nothing of ours knows a value: a retry names what is missing.

    Its record has an id of ours, so it stays in the list after its end.
    """
    openpai.on_submit = lambda job: job.run()
    post(openpai, POSTED)
    assert run("adopt", "--profile", "pai").text == "taken over from pai: of-the-portal"
    view = client.get("of-the-portal")
    until(lambda: client.get("of-the-portal")["state"] == "running")
    assert "canary" not in client.export(str(view["id"]))
    with openpai.lock:
        openpai.job("of-the-portal").fail(255, origin=3, user="no such file\n")
    last = ended(client, view)
    assert (last["state"], "3" in last["message"]) == ("failed", True)
    with pytest.raises(PaiJupyterError) as refused:
        client.retry(str(view["id"]))
    assert "token" in refused.value.message
    assert len(openpai.jobs) == 1
    given = {"token": {"value": "canary-abc&1", "reference": "ask"}}
    again = client.retry(str(view["id"]), given)
    with openpai.lock:
        remote = openpai.job(str(again["name"]))
        assert remote.data["secrets"] == {"token": "canary-abc&1"}
        assert "canary" not in str(remote.stored)
        assert "canary-abc&1" in openpai.command(remote.name, "worker")
        remote.succeed()
    assert ended(client, again)["state"] == "succeeded"
    assert run("adopt", "--profile", "pai").text == "no job to take over"


def test_a_login_that_is_revoked_is_said_by_every_command(openpai: OpenPai, client: JobsClient) -> None:
    """O3: what to do stands beside it, and no job has changed."""
    openpai.on_submit = lambda job: job.run()
    secrets = {"token": {"value": "canary-abc&1", "reference": "ask"}}
    view = client.submit({"document": OURS, "profile": "pai", "secrets": secrets})
    for token in list(openpai.accounts.tokens):
        openpai.revoke(token)
    with pytest.raises(PaiJupyterError) as refused:
        client.submit({"document": OURS, "profile": "pai", "secrets": secrets})
    assert refused.value.code == "cluster-login"
    assert "paijob login" in refused.value.hint
    checks = {each["name"]: each for each in client.settings.doctor()}
    assert not checks["pai: login"]["ok"]
    assert "expired or was revoked" in checks["pai: login"]["message"]
    assert checks["pai: login"]["fix"] == "paijob login pai"
    assert client.get(str(view["id"]))["state"] in ("waiting", "running")
