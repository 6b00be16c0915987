"""Packages and outputs by a real Hadoop file system: a name node and a data node (O15, P15, P24)."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
from doing import backend_on, scripted
from running import Cluster
from staging import document, log_of, make_job, role, store_package, watching

from paijupyter.backends.base import Job, Place
from paijupyter.backends.openpai import webhdfs
from paijupyter.backends.openpai.settings import WebHdfs
from paijupyter.errors import PaiJupyterError
from tests.hadoop_server import Hadoop

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]

NOISE = hashlib.shake_256(b"noise").digest(90_000)  # too large for a document
LARGE = hashlib.shake_256(b"more noise").digest(12_000_000)  # more than any buffer on the way takes
LATE = "head -c 12000000 /dev/urandom > model.bin"


def job_with(place: Place, command: str, **files: bytes) -> Job:
    ours = {"paijupyter": {"version": 1, "outputs": ["model.bin"]}}
    named = {f"{name}.bin": content for name, content in files.items()}
    return make_job(place, document({"worker": role(command)}, extras=ours), named)


def setting(hadoop: Hadoop, path: str, user: str = "alice") -> dict[str, Any]:
    return {"url": hadoop.address, "user": user, "path": path}


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/plain", "/a team/ä #1+% 语"])
async def test_packages_there_and_outputs_back(
    cluster: Cluster, place: Place, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """O15: the folder is made; the package is sent once, read by the tasks' own head and held to its hash."""
    hadoop.make_folder("/" + path.split("/")[1], "alice")
    async with (
        backend_on(cluster.server, place, monkeypatch, packageWebHdfs=setting(hadoop, path)) as backend,
        watching(backend) as watch,
    ):
        for _ in range(2):
            job = job_with(place, f"sha256sum data.bin; {LATE}; sha256sum model.bin", data=NOISE)
            await backend.submit(job, {})
            final = await watch.final(job)
            log = (await log_of(backend, job, "worker-0")).decode()
            assert (final.state, final.message) == ("succeeded", ""), log
            assert hashlib.sha256(NOISE).hexdigest() in log
            home = (job.folder / "output" / "worker-0" / "model.bin").read_bytes()
            assert hashlib.sha256(home).hexdigest() in log
            assert hadoop.address not in str(scripted(cluster.server, job).stored)
            assert hadoop.names(f"{path}/jobs/{job.name}") == ["worker-0.tar.gz"]
        endings = sorted(name.partition(".")[2] for name in hadoop.names(path))
        assert endings == ["", "json", "tar.gz"]  # `jobs`, and one package


@pytest.mark.asyncio
async def test_a_package_that_was_cut_short_is_found_in_the_task(
    cluster: Cluster, place: Place, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    hadoop.make_folder("/cut", "alice")
    async with (
        backend_on(cluster.server, place, monkeypatch, packageWebHdfs=setting(hadoop, "/cut")) as backend,
        watching(backend) as watch,
    ):
        await backend.submit(first := job_with(place, "true", data=NOISE), {})
        assert (await watch.final(first)).state == "succeeded"
        (name,) = (each for each in hadoop.names("/cut") if each.endswith(".tar.gz"))
        hadoop.write(f"/cut/{name}", hadoop.read(f"/cut/{name}")[:50_000])
        await backend.submit(second := job_with(place, "true", data=NOISE), {})
        final = await watch.final(second)
        assert (final.state, final.reason) == ("failed", "package")


@pytest.mark.asyncio
@pytest.mark.parametrize("content", [NOISE, LARGE], ids=["small", "large"])
async def test_who_may_not_write_is_told_so(
    cluster: Cluster, place: Place, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    """O15: a data node refuses, and closes before it has read a large file; its reason is read."""
    hadoop.make_folder("/of-alice", "alice")
    theirs = setting(hadoop, "/of-alice", "bob")
    async with backend_on(cluster.server, place, monkeypatch, packageWebHdfs=theirs) as backend:
        with pytest.raises(PaiJupyterError, match="Permission denied: user=bob, access=WRITE") as caught:
            await backend.submit(job_with(place, "true", data=content), {})
        assert caught.value.code == "package-not-sent"
        assert "`user` who may write" in caught.value.hint
        assert not cluster.server.jobs


@pytest.mark.asyncio
async def test_a_task_that_may_not_write_says_so(
    cluster: Cluster, place: Place, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one word: a log can be read by every user of the cluster."""
    hadoop.make_folder("/of-alice-too", "alice")
    theirs = setting(hadoop, "/of-alice-too", "bob")
    async with (
        backend_on(cluster.server, place, monkeypatch, packageWebHdfs=theirs) as backend,
        watching(backend) as watch,
    ):
        await backend.submit(job := job_with(place, LATE, small=b"small"), {})
        assert (await watch.final(job)).state == "succeeded"
        log = await log_of(backend, job, "worker-0")
        assert (
            b"Outputs did not get out of the task: the server answered 403 (AccessControlException)." in log
        )
        assert b"of-alice-too" not in log


def test_safe_mode(place: Place, hadoop: Hadoop, tmp_path: Path) -> None:
    """It is said, and a package that is there already can be used."""
    hadoop.make_folder("/safe", "alice")
    store = WebHdfs(**setting(hadoop, "/safe"))
    old, new = (store_package(place, {"a.bin": content}) for content in (NOISE, LARGE))
    webhdfs.put(old, store, tmp_path)
    hadoop.safe_mode(on=True)
    try:
        webhdfs.put(old, store, tmp_path)
        with pytest.raises(PaiJupyterError, match="safe mode") as caught:
            webhdfs.put(new, store, tmp_path)
        assert caught.value.hint.startswith("Try again")
    finally:
        hadoop.safe_mode(on=False)
    webhdfs.put(new, store, tmp_path)


class Deadly(io.BytesIO):
    """A content while which is read the data node is killed."""

    def __init__(self, content: bytes, hadoop: Hadoop) -> None:
        super().__init__(content)
        self._hadoop: Hadoop | None = hadoop

    def read(self, size: int | None = -1) -> bytes:
        if self._hadoop and self.tell() > 4_000_000:
            self._hadoop.stop_data_node()
            self._hadoop = None
        return super().read(size)


def test_a_data_node_dies_while_it_takes_a_package(
    place: Place, hadoop: Hadoop, tmp_path: Path, until: Any
) -> None:
    """Another one is asked for, of which there is none; later it goes, over what was left of the first."""
    hadoop.make_folder("/dying", "alice")
    store = WebHdfs(**setting(hadoop, "/dying"))
    package = store_package(place, {"a.bin": LARGE})
    name = f"{package.sha256}.tar.gz"
    try:
        with pytest.raises(webhdfs.Refused, match="Failed to find datanode"):
            webhdfs._create(store, name, Deadly(LARGE, hadoop), len(LARGE))
        with pytest.raises(PaiJupyterError, match="Failed to find datanode"):  # it is named still
            webhdfs.put(package, store, tmp_path)
        assert f"{package.sha256}.json" not in hadoop.names("/dying")
    finally:
        hadoop.start_data_node(until)
    facts, _ = webhdfs.put(package, store, tmp_path)
    assert hashlib.sha256(hadoop.read(f"/dying/{name}")).hexdigest() == facts.sha256


def test_what_is_not_there(hadoop: Hadoop) -> None:
    """A file or a folder in between; a folder is no file."""
    hadoop.make_folder("/deep", "alice")
    hadoop.make_folder("/deep/empty", "alice")
    for path, name in (("/deep", "none"), ("/nowhere", "none"), ("/deep", "empty")):
        with pytest.raises(FileNotFoundError):
            webhdfs.reading(WebHdfs(**setting(hadoop, path)), name)
