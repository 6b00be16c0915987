"""O18: sources that the engine fetches, by another package, fsspec, WebHDFS; killed, stopped, restarted."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from paijupyter import paths
from paijupyter.client.client import JobsClient
from paijupyter.data.cache import DataCache
from paijupyter.errors import InvalidDocument
from paijupyter.protocol import JobOptions, build_document, write

READ = 'cat "$PAI_DATA_W/water"'
WATER = {"name": "w", "uri": "well:water"}


def test_comes_from_another_distribution() -> None:
    (point,) = entry_points(group="paijupyter.data", name="well")
    assert point.dist is not None
    assert point.dist.name == "other-source"


@pytest.mark.asyncio
async def test_a_kind_of_another_package_is_fetched_once_for_all(bench: Any, well: Path) -> None:
    """P9: readers are pluggable. The job waits with the reason `data`; the next one fetches nothing."""
    (well / "dry").touch()
    view = await bench.submit(READ, [WATER])
    waiting = bench.service.get(view["id"])
    assert (waiting["state"], waiting["reason"]) == ("waiting", "data")
    assert waiting["data"][0]["read"] == "$PAI_DATA_W/water"
    (well / "dry").unlink()
    first = await bench.final(view["id"])
    assert first["state"] == "succeeded", first
    assert "clear water" in first["log"]
    second = await bench.final((await bench.submit(READ, [WATER]))["id"])
    assert second["state"] == "succeeded"
    assert (well / "drawn").read_text().splitlines() == ["from 0"]
    (well / "water").write_bytes(b"fresh\n")
    third = await bench.final((await bench.submit(READ, [WATER]))["id"])
    assert "fresh" in third["log"]


@pytest.mark.asyncio
async def test_what_cannot_be_had_fails_the_job_with_the_reason(bench: Any, well: Path) -> None:
    (well / "poisoned").write_text("x")
    for name, words in (
        ("nothing", "does not exist"),
        ("poisoned", "Dig another well"),
        ("broken", "the rope broke"),
    ):
        view = await bench.final((await bench.submit("true", [{"name": "w", "uri": f"well:{name}"}]))["id"])
        assert (view["state"], view["reason"]) == ("failed", "data"), view
        assert words in view["message"]


@pytest.mark.asyncio
async def test_what_is_wrong_is_in_the_plan(bench: Any, well: Path) -> None:
    items = [{"name": "a", "uri": "well:"}, {"name": "b", "uri": "moon:x"}, {"name": "c", "uri": "x.csv"}]
    plan = await bench.service.plan(bench.request("true", items))
    found = {each["path"].removeprefix("/extras/paijupyter/data/")[0]: each for each in plan["problems"]}
    assert "names no bucket" in found["0"]["message"]
    assert "no installed package has" in found["1"]["message"] and "well" in found["1"]["hint"]
    assert "did not come with the request" in found["2"]["message"]
    with pytest.raises(InvalidDocument):
        await bench.service.submit(bench.request("true", items))


@pytest.mark.asyncio
async def test_killed_in_the_middle_nothing_half_is_used(bench: Any, well: Path, kit: Any) -> None:
    """kill -9 of what fetches: the job fails and says so, no content is there; a retry has the whole."""
    (well / "dry").touch()
    view = await bench.submit(READ, [WATER])
    await kit.eventually(lambda: (well / "pid").exists() and (well / "pid").read_text())
    os.kill(int((well / "pid").read_text()), signal.SIGKILL)
    failed = await bench.final(view["id"])
    assert failed["reason"] == "data"
    assert not list((paths.data_dir() / "datasets").glob("*/content/water")) or _only_part()
    (well / "dry").unlink()
    again = await bench.service.retry(view["id"])
    assert "clear water\n" * 1000 in (await bench.final(again["id"]))["log"]


def _only_part() -> bool:
    found = list((paths.data_dir() / "datasets").glob("*/content/water"))
    return all(path.parents[1].name.endswith(".part") for path in found)


@pytest.mark.asyncio
async def test_an_engine_that_follows_goes_on(bench: Any, well: Path, kit: Any) -> None:
    (well / "dry").touch()
    view = await bench.submit(READ, [WATER])
    await kit.eventually(lambda: (well / "pid").exists() and (well / "pid").read_text())
    pid = int((well / "pid").read_text())
    await bench.restart()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    (well / "dry").unlink()
    assert (await bench.final(view["id"]))["state"] == "succeeded"


@pytest.mark.asyncio
async def test_a_job_can_be_stopped_while_its_data_comes(bench: Any, well: Path, kit: Any) -> None:
    (well / "dry").touch()
    view = await bench.submit(READ, [WATER])
    await kit.eventually(lambda: (well / "pid").exists() and (well / "pid").read_text())
    pid = int((well / "pid").read_text())
    stopped = await asyncio.wait_for(bench.service.stop(view["id"]), 8)
    assert stopped["state"] == "stopped"
    await kit.eventually(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.asyncio
async def test_webhdfs_through_fsspec(bench: Any, hdfs: Any) -> None:
    """HDFS: a folder with all in it, and one file with its checksum; the data node fails once."""
    whole = {"name": "m", "uri": f"{hdfs.uri}/pai/mnist"}
    one = {"name": "o", "uri": f"{hdfs.uri}/pai/mnist/a.bin"}
    digest = hashlib.sha256((hdfs.root / "pai/mnist/a.bin").read_bytes()).hexdigest()
    hdfs.failing = 1
    command = 'sha256sum "$PAI_DATA_M"/mnist/*.bin "$PAI_DATA_O/a.bin"; cat "$PAI_DATA_M/mnist/deep/b.bin"'
    view = await bench.final((await bench.submit(command, [whole, {**one, "sha256": digest}]))["id"])
    assert view["state"] == "succeeded", view
    assert view["log"].count(digest) == 2
    assert "b" * 10 in view["log"]
    assert "ann" in hdfs.users
    before = len(hdfs.opened)
    assert (await bench.final((await bench.submit(command, [whole, {**one, "sha256": digest}]))["id"]))["log"]
    assert len(hdfs.opened) == before, "fetched once per content"


@pytest.mark.asyncio
async def test_webhdfs_says_what_is_missing_or_different(bench: Any, hdfs: Any) -> None:
    for item, words in (
        ({"name": "m", "uri": f"{hdfs.uri}/pai/none"}, "does not exist"),
        ({"name": "m", "uri": f"{hdfs.uri}/pai/mnist/a.bin", "sha256": "0" * 64}, "has the sha256"),
    ):
        view = await bench.final((await bench.submit("true", [item]))["id"])
        assert (view["state"], view["reason"]) == ("failed", "data")
        assert words in view["message"]


@pytest.mark.asyncio
async def test_any_file_system_of_fsspec(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "sets/x").mkdir(parents=True)
    (tmp_path / "sets/x/1").write_text("one")
    (tmp_path / "sets/2").write_text("two")
    view = await bench.submit(
        'cd "$PAI_DATA_S/sets"; cat x/1 2', [{"name": "s", "uri": f"local://{tmp_path}/sets"}]
    )
    assert "onetwo" in (await bench.final(view["id"]))["log"]


@pytest.mark.asyncio
async def test_a_missing_driver_is_named_with_its_command(bench: Any) -> None:
    plan = await bench.service.plan(bench.request("true", [{"name": "s", "uri": "gs://bucket/key"}]))
    (problem,) = [each for each in plan["problems"] if each["severity"] == "error"]
    assert "gcsfs" in problem["message"] and "pip install gcsfs" in problem["hint"]


def test_a_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    from paijupyter.data.stores import WebHdfsKind
    from paijupyter.protocol.data import DataSource

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    words, hint = next(iter(WebHdfsKind(DataSource("d", "webhdfs", "webhdfs://h/x")).problems()))
    assert "extra `data`" in words and "paijupyter[data]" in hint


def test_memory_file_system_and_a_store_that_says_nothing(tmp_path: Path) -> None:
    import fsspec

    from paijupyter.data.stores import ObjectKind
    from paijupyter.protocol.data import DataSource

    fsspec.filesystem("memory").pipe({"/d/a": b"1" * 10, "/d/b/c": b"2"})
    kind = ObjectKind(DataSource("m", "object", "memory://d"))
    assert kind.stamp()
    said: list[tuple[int, int | None]] = []
    kind.fetch(tmp_path / "d", lambda done, total: said.append((done, total)))
    assert (tmp_path / "d/b/c").read_bytes() == b"2"
    assert said[-1] == (11, 11)


def test_an_engine_killed_in_the_middle(well: Path, until: Any) -> None:
    """kill -9 of a real engine while it fetches: the next one ends what was begun, and runs the job once."""
    document = build_document(JobOptions("reader", [READ]))
    document["extras"]["paijupyter"]["data"] = [WATER]
    (well / "dry").touch()
    client = JobsClient.connect()
    view = client.submit({"document": write(document), "context": {"python": sys.executable}})
    until(lambda: (well / "pid").exists())
    os.kill(client.version()["engine"]["pid"], signal.SIGKILL)
    (well / "dry").unlink()
    assert client.wait(view["id"], timeout=60)["state"] == "succeeded"
    log = "".join(chunk.text for chunk in client.logs(view["id"]))
    assert log.count("clear water") == 1000


def test_two_at_once_fetch_once(well: Path, until: Any) -> None:
    """As when an engine was killed, and what it had started still fetches for the one that follows."""
    (well / "dry").touch()
    request = {"data": str(paths.data_dir()), "job": "j", "source": WATER}
    paths.data_dir().mkdir(parents=True)
    both = [_fetcher(request) for _ in range(2)]
    until(lambda: (well / "pid").exists())
    (well / "dry").unlink()
    answers = [json.loads(process.communicate(timeout=60)[0].splitlines()[-1]) for process in both]
    assert answers[0] == answers[1]
    assert "key" in answers[0]
    assert (well / "drawn").read_text().splitlines() == ["from 0"]


def _fetcher(request: dict[str, Any]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "paijupyter.data"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(request))
    process.stdin.close()
    process.stdin = None  # communicate() would flush it
    return process


def test_the_cache_forgets_what_nobody_uses(tmp_path: Path) -> None:
    cache = DataCache(tmp_path)
    cache.provide("k", "x", {}, lambda target: _fill(target))
    cache.provide("used", "x", {}, lambda target: _fill(target))
    (cache.folder / "left.part/content").mkdir(parents=True)
    assert cache.sweep() == 0
    import fcntl

    with (cache.folder / "used.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # as a task that reads it does
        assert cache.sweep(older_than=-10) == 3 + (cache.folder / "used/entry.json").stat().st_size
    assert cache.content("k", "x") is None
    assert cache.content("used", "x") is not None
    assert not (cache.folder / "left.part").exists()


def _fill(target: Path) -> None:
    target.write_text("abc")
