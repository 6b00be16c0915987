"""Import and export (O27): files that the portal exports open here, and what we export opens there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paijupyter.errors import has_errors
from paijupyter.protocol import check, edit, read, write
from tests.openpai import validating
from tests.openpai.answers import Refused
from tests.openpai.asking import ask
from tests.openpai.server import OpenPai

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "openpai"
PORTAL = """\
# as the portal exports it: secrets in clear, a type as it was typed, keys in its order
protocolVersion: 2
name: cifar10_78a1b2c3
type: job
jobRetryCount: 0
prerequisites:
  - type: dockerimage
    uri: 'openpai/standard:python_3.6-pytorch_1.2.0-gpu'
    name: docker_image_0
taskRoles:
  taskrole:
    instances: 1
    completion:
      minFailedInstances: 1
    taskRetryCount: 0
    dockerImage: docker_image_0
    resourcePerInstance:
      gpu: 1
      cpu: 4
      memoryMB: 8192
    commands:
      - echo <% $parameters.lr %>  # kept
      - 'python train.py --token <% $secrets.token %>'
defaults:
  virtualCluster: default
parameters:
  lr: '0.1'
secrets:
  token: s3cret-value
extras:
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters:
        jobssh: true
  hivedScheduler:
    taskRoles:
      taskrole:
        skuNum: 1
        skuType: null
  submitFrom: submit-job-v2
"""


def documents() -> list[Path]:
    """Return the files of the corpus that the index calls valid."""
    if not CORPUS.is_dir():
        return []
    rows = re.findall(r"^\| (\S+\.ya?ml) \| (.*) \|$", (CORPUS / "INDEX.md").read_text(), re.MULTILINE)
    return [CORPUS / name for name, note in rows if "valid;" in note and "invalid" not in note]


@pytest.fixture(scope="module")
def server() -> Iterator[OpenPai]:
    """A server that grants what the documents of the corpus ask for."""
    with OpenPai() as server:
        server.storages = {name: {} for name in ("confignfs", "home")}
        server.accounts.users["alice"].storages = list(server.storages)
        server.accounts.users["alice"].virtual_clusters = ["default", "vc1", "cpu"]
        yield server


def posted(server: OpenPai, text: str) -> tuple[int, Any]:
    told = ask(server.url, "POST", "/api/v2/jobs", server.token(), text, {"Content-Type": "text/yaml"})
    return told.status, told.json()


def test_what_the_portal_exports_opens(server):
    """O27: read without an error, edited without touching another byte, and it opens there again."""
    document = read(PORTAL)
    assert not has_errors(check(document, "openpai"))
    text, _ = edit(PORTAL, [{"op": "replace", "path": "/taskRoles/taskrole/instances", "value": 2}])
    assert text == PORTAL.replace("instances: 1", "instances: 2")
    for each in (PORTAL, text.replace("78a1b2c3", "1")):
        assert posted(server, each)[0] == 202


def test_its_clone_comes_back_without_its_secrets(server):
    """O20, O27: the server's text has a mask for secrets, which opens and says what to fill in again."""
    name = "cloned"
    assert posted(server, PORTAL.replace("cifar10_78a1b2c3", name))[0] == 202
    told = ask(server.url, "GET", f"/api/v2/jobs/alice~{name}/config", server.token())
    assert b"s3cret-value" not in told.body
    problems = check(read(told.body.decode()), "openpai")
    assert "masked-secrets" in {each.code for each in problems if each.severity == "error"}


@pytest.mark.skipif(not documents(), reason="the corpus of public job documents is not here")
def test_every_public_document_goes_home(server, tmp_path, monkeypatch):
    """O27, D1: byte for byte as the user's, and as we write it anew; marketplace documents among them."""
    count = 0
    for path in documents():
        text = path.read_bytes().decode()
        try:
            validating.values(text)
        except Refused:
            continue  # several documents in one file, which the server refuses as well
        name = f"c{count}-{re.sub(r'[^A-Za-z0-9]', '-', path.stem)}"
        renamed, _ = edit(text, [{"op": "replace", "path": "/name", "value": name}])
        lines = zip(text.splitlines(), renamed.splitlines(), strict=True)
        assert sum(before != after for before, after in lines) == 1, path
        status, said = posted(server, renamed)
        assert status == 202, (path, said)
        anew = write({**read(text).data, "name": f"{name}-anew"})
        status, said = posted(server, anew)
        assert status == 202, (path, said)
        assert not re.search(r'^"', anew, re.MULTILINE), "a quoted key at the top would be lost"
        ours = server.job(f"{name}-anew").stored
        theirs = read(renamed).data
        for key in theirs.keys() - {"name", "secrets"}:
            assert json.dumps(ours[key], default=str) == json.dumps(theirs[key], default=str), (path, key)
        count += 1
    assert count > 40
