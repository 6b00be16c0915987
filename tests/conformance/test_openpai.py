"""The conformance documents on OpenPAI.

On a real server, named by ``PAIJUPYTER_TEST_OPENPAI`` (its token in ``PAIJUPYTER_TOKEN_CONFORMANCE``), they
run as everywhere. Without one they are posted to the scripted server, whose stand-in for a node runs in bash
what was posted: that shows the posted text, our boot program and the mapping of answers. What it cannot show
(containers, images, the cluster's runtime, its nodes and storages) is reported as skipped, by that name.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from conformance import CASES, Case, Conformance
from staging import make_job

from paijupyter.backends.accounts import HasAccount
from paijupyter.backends.base import Backend, Place, Profile, load_backend
from paijupyter.protocol import read, write
from tests.backends.openpai.running import Cluster, tools_without_python
from tests.openpai.server import OpenPai

REAL = os.environ.get("PAIJUPYTER_TEST_OPENPAI", "")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The scripted server with a stand-in for its nodes."""
    with OpenPai() as server, Cluster(server, tmp_path / "nodes") as cluster:
        cluster.paths["bash:5.2"] = tools_without_python(tmp_path / "bin")
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
    places = ("openpai",)

    def case(self, name: str) -> Case:
        case = super().case(name)
        text = case.text if "refused" in case.expected else ours(case.text)
        expected: dict[str, Any] = yaml.safe_load(as_it_may_be_named(yaml.safe_dump(dict(case.expected))))
        for task in (expected.get("tasks") or {}).values():
            if task.pop("signal", None):  # a signal is told as 128 and its number
                task.pop("code", None)
        return replace(case, text=as_it_may_be_named(text), expected=expected)


def as_it_may_be_named(text: str) -> str:
    """A role whose name OpenPAI converts would fail there: it is named as it comes out."""
    return text.replace("data_loader", "dataloader")


class TestStandIn(OnOpenPai):
    """All documents, run by the stand-in for a node."""

    places = ("openpai", "stand-in")

    def case(self, name: str) -> Case:
        # Outputs come home by a storage or store that both sides reach; this profile names none.
        case = super().case(name)
        return replace(case, expected={k: v for k, v in case.expected.items() if k != "outputs"})

    @pytest.fixture(autouse=True)
    def _server(self, cluster: Cluster) -> None:
        self.settings: dict[str, Any] = {
            "url": cluster.server.url,
            "pollSeconds": 0.1,
            "callsPerMinute": 1_000_000,
        }


@pytest.mark.asyncio
async def test_a_document_without_anything_of_ours_is_posted_as_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    """D1, D8: the server takes it, and bash receives the commands that the document says."""
    with OpenPai() as server:
        server.limits.submit = 1_000_000
        monkeypatch.setenv("PAIJUPYTER_TOKEN_CONFORMANCE", server.token())
        settings = {"url": server.url, "callsPerMinute": 1_000_000}
        backend = load_backend(Profile("conformance", "openpai", settings), place)
        for case in [case for case in CASES.values() if "refused" not in case.expected]:
            with subtests.test(case.name):
                secrets = case.expected.get("secrets") or {}
                data = {key: value for key, value in read(case.text).data.items() if key != "extras"}
                job = make_job(place, data)
                await backend.submit(job, secrets)
                for role, command in job.commands.items():
                    for key, value in secrets.items():
                        command = command.replace(f"<% $secrets.{key} %>", value)
                    assert server.command(job.name, role).strip() == command.strip()
        await backend.close()


@pytest.mark.asyncio
async def test_what_is_different_is_said_by_the_plan(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that would fail there is an error; outputs that do not come home are named."""
    with OpenPai() as server:
        monkeypatch.setenv("PAIJUPYTER_TOKEN_CONFORMANCE", server.token())
        settings = {"url": server.url, "callsPerMinute": 1_000_000}
        backend = load_backend(Profile("conformance", "openpai", settings), place)
        said = {}
        for name in ("environment", "outputs"):
            plan = await backend.plan(make_job(place, ours(CASES[name].text)))
            said[name] = {(problem.code, problem.severity) for problem in plan.problems}
        await backend.close()
    assert ("role-name", "error") in said["environment"]
    assert ("outputs-stay", "warning") in said["outputs"]


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    not REAL, reason="not shown without a real server: set PAIJUPYTER_TEST_OPENPAI and its token"
)
class TestRealServer(OnOpenPai):
    """All documents, on the server that the environment names."""

    seconds = 900.0
    settings: dict[str, Any] = {"url": REAL}  # noqa: RUF012 - not changed

    @pytest_asyncio.fixture
    async def backend(self, place: Place) -> AsyncIterator[Backend]:
        """The real server, and whose token is used there."""
        backend = load_backend(Profile("conformance", self.kind, self.settings), place)
        assert isinstance(backend, HasAccount)
        self.user = str((await backend.account())["user"])
        yield backend
        await backend.close()
