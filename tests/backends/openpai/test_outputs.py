"""Outputs come home by the same ladder as packages: a bucket, a Hadoop file system, a storage (P24, O15)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doing import backend_on, scripted
from hdfs import Hdfs
from running import Cluster
from staging import document, log_of, make_job, role, watching

from paijupyter.backends.base import Job, Place
from paijupyter.errors import PaiJupyterError
from tests.s3_server import ID, KEY, S3Server
from tests.services import rclone

MAKE = (
    'mkdir -p deep; echo "of $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" > deep/model.txt; '
    "ln -s /etc/passwd deep/link"
)


@pytest.fixture
def s3(
    tmp_path: Path, until: Any, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[S3Server]:
    tool = rclone()
    if tool is None:
        pytest.skip("there is no rclone, and none was built: make test-services")
    (tmp_path / "s3/jobs").mkdir(parents=True)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    server = S3Server(tool, tmp_path / "s3", unused_tcp_port, tmp_path / "rclone.log")
    server.start(until)
    yield server
    server.stop()


def job_of(place: Place, command: str = MAKE, instances: int = 2, **more: Any) -> Job:
    ours = {"paijupyter": {"version": 1, "outputs": ["deep/"]}}
    roles = {"worker": role(command, instances=instances)}
    return make_job(place, document(roles, extras=ours, **more), {"a.txt": "a\n"})


async def brought(cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch, **setting: Any) -> Job:
    """Run a job of two tasks to its end, and look at what came home before that was told."""
    async with (
        backend_on(cluster.server, place, monkeypatch, **setting) as backend,
        watching(backend) as watch,
    ):
        job = job_of(place)
        (said,) = (each for each in (await backend.plan(job)).problems if each.code.startswith("outputs-"))
        assert said.code == "outputs-way"
        await backend.submit(job, {})
        final = await watch.final(job)
        assert final.state == "succeeded", await log_of(backend, job, "worker-0")
        assert final.message == ""
        for index in (0, 1):
            folder = job.folder / "output" / f"worker-{index}"
            assert (folder / "deep/model.txt").read_text() == f"of {index}\n"
            assert b"Outputs are on their way: 1 files." in await log_of(backend, job, f"worker-{index}")
            assert [path.name for path in folder.rglob("*") if path.is_symlink()] == []
    return job


@pytest.mark.asyncio
async def test_what_nothing_brings_home_is_said(
    cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written to the outputs' folder, not declared: the log says what becomes of it."""
    command = 'echo weights > "$PAI_OUTPUT_DIR/model"'
    job = make_job(place, document({"worker": role(command)}), {"a.txt": "a\n"})
    async with backend_on(cluster.server, place, monkeypatch) as backend, watching(backend) as watch:
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded"
        assert b"Outputs end with this task: 1 file." in await log_of(backend, job, "worker-0")


@pytest.mark.asyncio
@pytest.mark.parametrize("old", [False, True], ids=["hadoop 3", "hadoop 2"])
async def test_by_webhdfs(
    cluster: Cluster, place: Place, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    hdfs.old, hdfs.users = old, {"alice"}
    setting = {"url": hdfs.url, "user": "alice", "path": "/user/alice"}
    job = await brought(cluster, place, monkeypatch, packageWebHdfs=setting)
    assert f"/user/alice/jobs/{job.name}/worker-1.tar.gz" in hdfs.files


@pytest.mark.services
@pytest.mark.asyncio
async def test_by_a_bucket(
    cluster: Cluster, place: Place, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real one. Tasks get an address for each task's own object, never the key (T5)."""
    job = await brought(cluster, place, monkeypatch, packageObject={"bucket": "jobs", "endpoint": s3.address})
    assert list((s3.root / "jobs").rglob("worker-1.tar.gz"))
    posted = scripted(cluster.server, job).posted
    assert "X-Amz-Signature" in posted
    assert KEY not in posted
    assert "X-Amz-Signature" not in str(scripted(cluster.server, job).stored)


@pytest.mark.services
@pytest.mark.asyncio
async def test_packages_by_a_bucket(
    cluster: Cluster, place: Place, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent once for any number of jobs."""
    setting = {"packageObject": {"bucket": "jobs", "endpoint": s3.address}, "packageWays": ["object"]}
    async with (
        backend_on(cluster.server, place, monkeypatch, **setting) as backend,
        watching(backend) as watch,
    ):
        for _ in range(2):
            job = job_of(place, "cat a.txt; true", 1)
            await backend.submit(job, {})
            assert (await watch.final(job)).state == "succeeded"
            assert (await log_of(backend, job, "worker-0")).startswith(b"a\n")
        assert (
            len([path for path in (s3.root / "jobs").rglob("*.tar.gz") if "jobs/jobs" not in str(path)]) == 1
        )


@pytest.mark.asyncio
async def test_a_store_that_refuses_is_said_and_the_job_ends_as_it_did(
    cluster: Cluster, place: Place, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    hdfs.users = {"alice"}
    setting = {"packageWebHdfs": {"url": hdfs.url, "user": "bob"}, "packageWays": ["document", "webhdfs"]}
    async with (
        backend_on(cluster.server, place, monkeypatch, **setting) as backend,
        watching(backend) as watch,
    ):
        job = job_of(place, instances=1)
        await backend.submit(job, {})
        assert (await watch.final(job)).state == "succeeded"
        log = await log_of(backend, job, "worker-0")
        assert b"did not get out of the task: the server answered 403 (AccessControlException)." in log
        assert hdfs.url.encode() not in log


@pytest.mark.asyncio
async def test_a_task_waits_for_the_end_of_safe_mode(
    cluster: Cluster, place: Place, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large file, too, which is refused before it is read; seen of a real one (test_hadoop.py)."""
    hdfs.refusals = ["SafeModeException", "RetriableException"]
    setting = {"packageWebHdfs": {"url": hdfs.url, "path": "/ä b"}, "packageWays": ["document", "webhdfs"]}
    async with (
        backend_on(cluster.server, place, monkeypatch, **setting) as backend,
        watching(backend) as watch,
    ):
        job = job_of(place, "mkdir deep; head -c 9000000 /dev/urandom > deep/model.bin", 1)
        await backend.submit(job, {})
        final = await watch.final(job)
        assert (final.state, final.message) == ("succeeded", "")
        assert (job.folder / "output/worker-0/deep/model.bin").stat().st_size == 9_000_000
        assert hdfs.refusals == []


@pytest.mark.asyncio
@pytest.mark.parametrize("trouble", ["denied", "cut"])
async def test_what_cannot_be_fetched_is_said(
    cluster: Cluster, place: Place, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """A refusal is not taken for outputs that are not there, nor half of a file for the whole."""
    async with (
        backend_on(cluster.server, place, monkeypatch, packageWebHdfs={"url": hdfs.url}) as backend,
        watching(backend) as watch,
    ):
        job = job_of(place, "kill -STOP $$; true", 1)
        await backend.submit(job, {})
        await watch.running(job)
        hdfs.files[f"/paijupyter-packages/jobs/{job.name}/worker-0.tar.gz"] = os.urandom(100_000)
        if trouble == "denied":
            hdfs.users = {"alice"}
        else:
            hdfs.cut = 1
        scripted(cluster.server, job).fail(255, origin=9)
        message = (await watch.final(job)).message
        why = {"denied": "Permission denied: user=dr.who", "cut": "the connection ended early"}[trouble]
        assert "Outputs of worker-0 could not be brought by WebHDFS" in message
        assert why in message


@pytest.mark.asyncio
async def test_what_arrived_broken_is_said(
    cluster: Cluster, place: Place, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's end stands; the message says what of its outputs is missing."""
    async with (
        backend_on(cluster.server, place, monkeypatch, packageWebHdfs={"url": hdfs.url}) as backend,
        watching(backend) as watch,
    ):
        job = job_of(place, "kill -STOP $$; true", 1)
        await backend.submit(job, {})
        await watch.running(job)
        hdfs.files[f"/paijupyter-packages/jobs/{job.name}/worker-0.tar.gz"] = b"no archive"
        with cluster.server.lock:
            remote = scripted(cluster.server, job)
        remote.fail(255, origin=9)
        final = await watch.final(job)
        assert final.state == "failed"
        assert "Outputs of worker-0 could not be brought by WebHDFS" in final.message


@pytest.mark.asyncio
async def test_nowhere_to_go(cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan warns, and says what can be set up; a bucket without credentials is refused at once."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    async with backend_on(cluster.server, place, monkeypatch) as backend:
        (said,) = (
            each for each in (await backend.plan(job_of(place))).problems if each.code == "outputs-stay"
        )
        assert said.severity == "warning"
        assert "packageObject" in said.hint
    async with backend_on(cluster.server, place, monkeypatch, packageObject={"bucket": "b"}) as backend:
        with pytest.raises(PaiJupyterError, match="no credentials"):
            await backend.submit(job_of(place), {})
        assert not cluster.server.jobs
