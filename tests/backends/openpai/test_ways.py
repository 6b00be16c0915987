"""Packages by each way of the ladder, all the way into a running task, and outputs back (P15, P18)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from doing import backend_on, scripted
from hdfs import Hdfs
from running import Cluster, tools_without_python
from staging import document, log_of, make_job, role, watching

from paijupyter.backends.base import Job, Place

NOISE = hashlib.shake_256(b"noise").digest(90_000)  # too large for a document
DIGEST = hashlib.sha256(NOISE).hexdigest()


def job_with(place: Place, **extras: Any) -> Job:
    """A job whose task proves that it has what was sent."""
    command = 'sha256sum data.bin; echo "it was $PAI_CURRENT_TASK_ROLE_NAME" > model.txt'
    source = document({"worker": role(command)}, extras={"paijupyter": {"version": 1, **extras}})
    return make_job(place, source, {"data.bin": NOISE})


@pytest.mark.asyncio
async def test_by_a_storage_and_outputs_back(
    cluster: Cluster, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O25, P24: what a task leaves in the storage is in the job's folder when its end is told."""
    team = tmp_path / "team"
    team.mkdir()
    cluster.server.storages = {"team": {}}
    cluster.server.accounts.users["alice"].storages = ["team"]
    profile = {"storages": {"team": {"path": str(team), "mount": str(team)}}, "storage": "team"}
    job = job_with(place, outputs=["model.txt"])
    async with (
        backend_on(cluster.server, place, monkeypatch, **profile) as backend,
        watching(backend) as watch,
    ):
        plan = await backend.plan(job)
        assert [each["way"] for each in plan.objects if each["kind"] == "package"] == ["storage"]
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded"
        assert DIGEST.encode() in await log_of(backend, job, "worker-0")
        assert (job.folder / "output" / "worker-0" / "model.txt").read_text() == "it was worker\n"


@pytest.mark.asyncio
async def test_by_webhdfs(
    cluster: Cluster, place: Place, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address stands among the secrets; the package is sent once for any number of jobs."""
    hdfs.users = {"alice"}
    async with backend_on(
        cluster.server, place, monkeypatch, packageWebHdfs={"url": hdfs.url, "user": "alice"}
    ) as backend, watching(backend) as watch:  # fmt: skip
        first, second = job_with(place), job_with(place)
        for job in (first, second):
            await backend.submit(job, {})
            final = await watch.final(job)
            assert final.state == "succeeded", await log_of(backend, job, "worker-0")
        assert DIGEST.encode() in await log_of(backend, second, "worker-0")
        assert len([path for path in hdfs.files if path.endswith(".tar.gz")]) == 1
        assert hdfs.url not in str(scripted(cluster.server, first).stored)


@pytest.mark.asyncio
async def test_a_damaged_package_is_found_in_the_task(
    cluster: Cluster, place: Place, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its hash."""
    async with backend_on(
        cluster.server, place, monkeypatch, packageWebHdfs={"url": hdfs.url}
    ) as backend, watching(backend) as watch:  # fmt: skip
        await backend.submit(first := job_with(place), {})
        await watch.final(first)
        (name,) = (path for path in hdfs.files if path.endswith(".tar.gz"))
        hdfs.files[name] = hdfs.files[name][:-9] + b"different"
        await backend.submit(job := job_with(place), {})
        final = await watch.final(job)
        assert (final.state, final.reason) == ("failed", "package")
        assert b"checksum" in await log_of(backend, job, "worker-0")


@pytest.mark.asyncio
async def test_an_image_without_python(
    cluster: Cluster, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that needs none runs by the shell alone; one with a package says what it misses."""
    cluster.path = tools_without_python(tmp_path / "bin")
    async with backend_on(cluster.server, place, monkeypatch) as backend, watching(backend) as watch:
        ours = {"extras": {"paijupyter": {"version": 1}}}
        bare = make_job(place, document({"worker": role('echo "got $KEY"')}, secrets={"KEY": ""}, **ours))
        await backend.submit(bare, {"KEY": "a&b"})
        assert (await watch.final(bare)).state == "succeeded"
        assert await log_of(backend, bare, "worker-0") == b"got a&b\n"
        packed = make_job(place, document({"worker": role("cat a.txt")}, **ours), {"a.txt": "a\n"})
        await backend.submit(packed, {})
        assert (await watch.final(packed)).state == "failed"
        assert b"The image has no Python" in await log_of(backend, packed, "worker-0")
