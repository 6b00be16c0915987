"""Servers from 1.0 to 1.8: what one of them has not is said, never silence (openpai.md 8.8)."""

from __future__ import annotations

import pytest
from doing import backend_on, scripted, simple
from running import Cluster
from staging import document, log_of, make_job, role, watching

from paijupyter.backends.base import Place
from paijupyter.errors import PaiJupyterError
from tests.openpai.server import OpenPai


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["v1.0.1", "v1.2.0", "v1.3.2"])
async def test_a_log_that_the_server_does_not_give(
    cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """A sentence stands in its place, in the log and in the plan; the job is followed all the same."""
    cluster.server.version = version
    async with (
        backend_on(cluster.server, place, monkeypatch, user="alice") as backend,
        watching(backend) as watch,
    ):
        job = simple(place, "echo hello")
        (said,) = (each for each in (await backend.plan(job)).problems if each.code == "no-logs")
        assert version in said.message
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded"
        log = (await log_of(backend, job, "worker-0")).decode()
        assert log.startswith(f"[paijupyter] No log can be read here: OpenPAI {version} has no call for logs")
        assert log.count("\n") == 1
        assert await log_of(backend, job, "worker-0") == log.encode()


@pytest.mark.asyncio
@pytest.mark.parametrize("version", ["v1.4.0", "v1.5.2", "v1.6.0", "v1.8.1", "master"])
async def test_a_job_from_its_begin_to_its_log(
    cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Addresses of logs are absolute before 1.6; a version that is no number counts as the newest."""
    cluster.server.version = version
    if version == "master":
        monkeypatch.setattr(OpenPai, "release", 1.8)
    async with (
        backend_on(cluster.server, place, monkeypatch, user="alice") as backend,
        watching(backend) as watch,
    ):
        job = simple(place, "echo hello")
        assert "no-logs" not in {each.code for each in (await backend.plan(job)).problems}
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded"
        assert await log_of(backend, job, "worker-0") == b"hello\n"


@pytest.mark.asyncio
async def test_no_events_before_1_3(openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan says that nobody will know why it waits; none of those calls is made."""
    openpai.version = "v1.2.0"
    openpai.on_submit = lambda remote: remote.prepare(scheduled=False)
    async with backend_on(openpai, place, monkeypatch, user="alice") as backend, watching(backend) as watch:
        job = simple(place, jobRetryCount=1)
        assert "no-events" in {each.code for each in (await backend.plan(job)).problems}
        await backend.submit(job, {})
        await watch.until(job, lambda change: change.reason == "queued" and bool(change.tasks))
        with openpai.lock:
            scripted(openpai, job).run().retry("user", origin=5, user="first\n")
            scripted(openpai, job).run().succeed()
        final = await watch.final(job)
        assert (final.state, final.attempt) == ("succeeded", 1)
        calls = [path.partition("?")[0] for _, path in openpai.requests]
        assert not [
            path for path in calls if path.endswith("/events") or path.rpartition("/")[0].endswith("attempts")
        ]


@pytest.mark.asyncio
async def test_whose_a_token_is_before_1_6(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpai.version = "v1.5.2"
    async with backend_on(openpai, place, monkeypatch) as backend:
        with pytest.raises(PaiJupyterError, match="set `user` in the profile"):
            await anext(backend.watch([]))
        assert "set `user`" in (await backend.capabilities()).unreachable


@pytest.mark.asyncio
async def test_what_a_document_names_and_the_server_does_not_know(
    openpai: OpenPai, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prerequisites of roles came with 1.6, mails with 1.8: the first is refused, the second said."""
    openpai.version = "v1.5.2"
    source = document(
        {"worker": role("true", prerequisites=["image"])},
        extras={"jobStatusChangeNotification": {"succeeded": True}},
    )
    async with backend_on(openpai, place, monkeypatch, user="alice") as backend:
        found = {each.code: each for each in (await backend.plan(make_job(place, source))).problems}
        assert (found["too-old"].severity, found["too-old"].path) == (
            "error",
            "/taskRoles/worker/prerequisites",
        )
        assert "from 1.8 on" in found["no-mail"].message
    openpai.version = "v1.8.1"
    async with backend_on(openpai, place, monkeypatch) as backend:
        codes = {each.code for each in (await backend.plan(make_job(place, source))).problems}
        assert not codes & {"too-old", "no-mail", "no-logs", "no-events"}
