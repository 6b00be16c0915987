"""The conformance documents on OpenPAI.

On a real server, named by ``PAIJUPYTER_TEST_OPENPAI`` (its token in ``PAIJUPYTER_TOKEN_CONFORMANCE``), they
run as everywhere. Without one they are posted to the scripted server, whose stand-in for a node runs in bash
what was posted: that shows the posted text, our boot program and the mapping of answers. What it cannot show
(containers, images, the cluster's runtime, its nodes and storages) is reported as skipped, by that name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from conformance import DOCUMENTS, EXPECTED, HERE, Conformance
from staging import make_job

from paijupyter.backends.base import Place, Profile, load_backend
from paijupyter.protocol import read, write
from tests.backends.openpai.running import Cluster
from tests.openpai.server import OpenPai

REAL = os.environ.get("PAIJUPYTER_TEST_OPENPAI", "")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The scripted server with a stand-in for its nodes."""
    with OpenPai() as server, Cluster(server, tmp_path / "nodes") as cluster:
        server.limits.list = server.limits.submit = server.limits.all = 1_000_000
        server.add_user("tester", "password")  # for whom the expected lines are
        monkeypatch.setenv("PAIJUPYTER_TOKEN_CONFORMANCE", server.token("tester"))
        yield cluster


def ours(text: str) -> str:
    """Return a document as our own surfaces write it: it says that our boot program runs it."""
    data = read(text).data
    extras = data.setdefault("extras", {})
    extras.setdefault("paijupyter", {"version": 1})
    return write(data)


class OnOpenPai(Conformance):
    """What is different on OpenPAI, whatever server it is (docs/differences.md)."""

    kind = "openpai"

    def text_of(self, name: str) -> str:
        return as_it_may_be_named(ours(super().text_of(name)))

    def expected_of(self, name: str) -> dict[str, Any]:
        text = as_it_may_be_named(yaml.safe_dump(super().expected_of(name)))
        expected: dict[str, Any] = yaml.safe_load(text)
        for task in expected["tasks"].values():
            if task.pop("signal", None):  # a signal is told as 128 and its number
                task.pop("code", None)
        return expected


def as_it_may_be_named(text: str) -> str:
    """A role whose name OpenPAI converts would fail there: it is named as it comes out."""
    return text.replace("data_loader", "dataloader")


class TestStandIn(OnOpenPai):
    """All documents, run by the stand-in for a node."""

    def expected_of(self, name: str) -> dict[str, Any]:
        # Outputs come home over a storage that both sides mount; the stand-in mounts none.
        return {key: each for key, each in super().expected_of(name).items() if key != "outputs"}

    @pytest.fixture(autouse=True)
    def _server(self, cluster: Cluster) -> None:
        self.settings: dict[str, Any] = {
            "url": cluster.server.url,
            "pollSeconds": 0.1,
            "callsPerMinute": 1_000_000,
        }


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.asyncio
async def test_a_document_without_anything_of_ours_is_posted_as_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """D1, D8: the server takes it, and bash receives the commands that the document says."""
    with OpenPai() as server:
        monkeypatch.setenv("PAIJUPYTER_TOKEN_CONFORMANCE", server.token())
        settings = {"url": server.url, "callsPerMinute": 1_000_000}
        backend = load_backend(Profile("conformance", "openpai", settings), place)
        secrets = EXPECTED[name].get("secrets") or {}
        data = {key: value for key, value in read((HERE / f"{name}.yaml").read_text()).data.items()}
        data.pop("extras", None)
        job = make_job(place, data)
        await backend.submit(job, secrets)
        await backend.close()
        for role, command in job.commands.items():
            for key, value in secrets.items():
                command = command.replace(f"<% $secrets.{key} %>", value)
            assert server.command(job.name, role).strip() == command.strip()


@pytest.mark.asyncio
async def test_what_is_different_is_said_by_the_plan(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that would fail there is an error; outputs that do not come home are named."""
    with OpenPai() as server:
        monkeypatch.setenv("PAIJUPYTER_TOKEN_CONFORMANCE", server.token())
        settings = {"url": server.url, "callsPerMinute": 1_000_000}
        backend = load_backend(Profile("conformance", "openpai", settings), place)
        said = {}
        for name in ("environment", "outputs"):
            plan = await backend.plan(make_job(place, ours((HERE / f"{name}.yaml").read_text())))
            said[name] = {(problem.code, problem.severity) for problem in plan.problems}
        await backend.close()
    assert ("role-name", "error") in said["environment"]
    assert any("output" in code for code, _ in said["outputs"]), said["outputs"]


@pytest.mark.skipif(
    not REAL, reason="not shown without a real server: set PAIJUPYTER_TEST_OPENPAI and its token"
)
class TestRealServer(OnOpenPai):
    """All documents, on the server that the environment names."""

    seconds = 600.0
    settings: dict[str, Any] = {"url": REAL}  # noqa: RUF012 - not changed
