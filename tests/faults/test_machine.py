"""Faults of the machine: disk, clock, paths, and many at once (P28)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paijupyter import paths
from paijupyter.client import JobsClient
from paijupyter.client.start import ensure_engine
from paijupyter.errors import PaiJupyterError
from paijupyter.jobs import identity
from paijupyter.jobs.events import EventBus
from paijupyter.jobs.host import this_host
from paijupyter.jobs.index import Index
from tests.documents import document

CLIENTS = 50


def request(command: str = "echo ran", **more: Any) -> dict[str, Any]:
    text = document(command, name="fault", cpu=0, memory=60)
    return {"document": text, "context": {"python": sys.executable}, **more}


def logged(client: JobsClient, job: str) -> str:
    return "".join(chunk.text for chunk in client.logs(job, "worker-0"))


# -- two engines, many clients ---------------------------------------------------------------------------


def test_two_engines_started_at_once() -> None:
    """One serves; the other says so and ends, also while jobs run."""
    command = [sys.executable, "-m", "paijupyter.engine"]
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.stdout.readline().strip() for process in pair if process.stdout]
    assert sorted(said) == ["ready", "served"]
    loser = pair[said.index("served")]
    assert loser.wait(timeout=20) == 0
    client = JobsClient.connect()
    job = client.submit(request("sleep 0.3; echo ran"))["id"]
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip() == "served"
    assert client.wait(job, timeout=60)["state"] == "succeeded"
    winner = pair[said.index("ready")]
    winner.terminate()
    winner.wait(timeout=20)
    for process in pair:
        if process.stdout:
            process.stdout.close()


@pytest.mark.slow
def test_fifty_clients_at_once() -> None:
    """Nobody started an engine yet; each of the fifty finds it, submits, follows its log and sees its end."""
    found: list[tuple[str, str, str]] = []
    failed: list[BaseException] = []

    def one(number: int) -> None:
        try:
            client = JobsClient.connect()
            job = client.submit(request(f"echo {number}"))["id"]
            text = "".join(chunk.text for chunk in client.logs(job, "worker-0", follow=True))
            found.append((job, text, client.wait(job, timeout=100)["state"]))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len({job for job, _, _ in found}) == CLIENTS
    assert sorted(int(text) for _, text, _ in found) == list(range(CLIENTS))
    assert {state for _, _, state in found} == {"succeeded"}
    assert len(JobsClient.connect().list(limit=1000)["jobs"]) == CLIENTS


# -- records -----------------------------------------------------------------------------------------------


def test_the_index_is_deleted_while_the_engine_runs(isolated_home: Path, kill: Callable[[int], None]) -> None:
    client = JobsClient.connect()
    one = client.submit(request())["id"]
    client.wait(one, timeout=60)
    for path in (isolated_home / "data").glob("index*"):
        path.unlink()
    two = client.submit(request())["id"]
    assert client.wait(two, timeout=60)["state"] == "succeeded"
    assert [job["id"] for job in client.list()["jobs"]] == [two, one]
    kill(client.version()["engine"]["pid"])
    assert [job["id"] for job in client.list()["jobs"]] == [two, one]


def test_the_index_is_overwritten_while_the_engine_runs(
    isolated_home: Path, kill: Callable[[int], None]
) -> None:
    client = JobsClient.connect()
    one = client.submit(request("sleep 0.5; echo ran"))["id"]
    for path in (isolated_home / "data").glob("index*"):
        with path.open("r+b") as file:
            file.write(b"\xff" * path.stat().st_size)
    assert client.wait(one, timeout=60)["state"] == "succeeded"
    kill(client.version()["engine"]["pid"])
    (job,) = client.list()["jobs"]
    assert (job["id"], job["state"]) == (one, "succeeded")


def test_records_of_an_older_and_of_a_later_version(isolated_home: Path, kill: Callable[[int], None]) -> None:
    """What only later versions write may be missing; what only a later version can read is left alone."""
    client = JobsClient.connect()
    old, later = (client.submit(request())["id"] for _ in range(2))
    for job in (old, later):
        client.wait(job, timeout=60)
    kill(client.version()["engine"]["pid"])
    jobs = isolated_home / "data" / "jobs"
    facts = json.loads((jobs / old / "job.json").read_text())
    needed = ("schema", "id", "name", "shortName", "profile", "host", "submittedAt", "roles")
    (jobs / old / "job.json").write_text(json.dumps({name: facts[name] for name in needed}))
    facts = json.loads((jobs / later / "job.json").read_text())
    (jobs / later / "job.json").write_text(json.dumps({**facts, "schema": 2}))
    (isolated_home / "data" / "index.sqlite").unlink()
    (shown,) = client.list()["jobs"]
    assert (shown["id"], shown["state"]) == (old, "succeeded")
    again = client.retry(old)["id"]
    assert client.wait(again, timeout=60)["state"] == "succeeded"
    client.delete(old)
    assert json.loads((jobs / later / "job.json").read_text())["schema"] == 2
    assert (jobs / later / "tasks" / "worker-0" / "0" / "log").read_text() == "ran\n"


# -- disk --------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(isolated_home: Path) -> Iterator[Path]:
    """Put the data folder on a disk of a few megabytes."""
    data = isolated_home / "data"
    data.mkdir()
    options = ["-t", "tmpfs", "-o", "size=4m", "none", str(data)]
    if os.getuid() != 0 or subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("a small disk can only be made by root")
    profiles = isolated_home / "config" / "paijupyter" / "profiles.yaml"
    profiles.parent.mkdir(parents=True)
    # Without the floor below which no job starts, so that the disk is really full.
    profiles.write_text("profiles: {local: {diskFloorMB: 0}}\n")
    yield data
    subprocess.run(["umount", "--lazy", str(data)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room on a disk."""
    stuff = disk / "stuff"
    with stuff.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return stuff


def test_a_submission_on_a_full_disk(small_disk: Path) -> None:
    """It is refused in words, nothing is half there, and with room it works."""
    client = JobsClient.connect()
    client.wait(client.submit(request())["id"], timeout=60)
    before = sorted(path.name for path in (small_disk / "jobs").iterdir())
    stuff = fill(small_disk)
    with pytest.raises(PaiJupyterError) as caught:
        client.submit(request())
    assert caught.value.status in (503, 507), caught.value
    assert "disk" in str(caught.value).lower() or "space" in str(caught.value).lower()
    assert sorted(path.name for path in (small_disk / "jobs").iterdir()) == before
    assert len(client.list()["jobs"]) == 1
    stuff.unlink()
    assert client.wait(client.submit(request())["id"], timeout=60)["state"] == "succeeded"


def test_the_disk_fills_up_while_a_job_runs(small_disk: Path, isolated_home: Path, until: Any) -> None:
    """Training goes on, its end is not lost, and the engine tells it once there is room."""
    client = JobsClient.connect()
    go = isolated_home / "go"
    job = client.submit(request(f"echo begin; until [ -e {go} ]; do sleep 0.02; done; echo end; exit 3"))[
        "id"
    ]
    until(lambda: logged(client, job), why="the first line")
    stuff = fill(small_disk)
    go.touch()
    time.sleep(0.5)  # it ends with no room for its last words, which is the very thing under test
    assert client.get(job)["state"] in ("running", "failed")
    stuff.unlink()
    view = client.wait(job, timeout=60)
    assert (view["state"], view["failedTask"]["code"]) == ("failed", 3)
    assert logged(client, job).startswith("begin\n")
    assert client.wait(client.submit(request())["id"], timeout=60)["state"] == "succeeded"


def test_a_job_that_filled_the_disk_can_be_stopped(small_disk: Path, processes_of: Any, until: Any) -> None:
    client = JobsClient.connect()
    flood = "head -c 20000000 /dev/zero > $PAI_OUTPUT_DIR/flood || true; echo full; sleep 300"
    job = client.submit(request(flood))["id"]
    flooded = small_disk / "jobs" / job / "output" / "worker-0" / "flood"
    until(lambda: flooded.exists() and flooded.stat().st_size > 1_000_000, why="the flood")
    fill(small_disk)
    stopping = threading.Thread(target=lambda: client.stop(job))
    stopping.start()
    until(lambda: not processes_of(job), why="its processes to end")
    flooded.unlink()
    (small_disk / "stuff").unlink()
    stopping.join()
    assert client.wait(job, timeout=60)["state"] == "stopped"


# -- clock -------------------------------------------------------------------------------------------------


def test_the_clock_is_set_back_an_hour_between_two_jobs(
    isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later job is the later one in ids, lists and `last`, whatever its time of day."""
    client = JobsClient.connect()
    first = client.submit(request())["id"]
    assert client.wait(first, timeout=60)["state"] == "succeeded"
    facts = json.loads((isolated_home / "data" / "jobs" / first / "job.json").read_text())
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    identity.not_before(first)
    assert identity.new_id() > first
    index = Index(isolated_home / "elsewhere", this_host())
    row = index_row(first, facts["submittedAt"])
    later = index_row(identity.new_id(), "2000-01-01T00:00:00.000Z")
    index.put([later, row])
    latest = index.latest("all")
    assert latest is not None and latest.id == later.id
    page, cursor = index.page((), None, None, 1, None)
    assert [each.id for each in page] == [later.id]
    page, cursor = index.page((), None, None, 1, cursor)
    assert ([each.id for each in page], cursor) == ([first], None)
    index.close()


def index_row(job: str, at: str) -> Any:
    from paijupyter.jobs.index import Row

    return Row(
        id=job, name=f"n-{job}", short_name="n", profile="local", state="waiting", reason="", host="h",
        submitted_at=at, folder=None, kernel=None, cell=None, request_id=None, package=None,
        events_size=0, view={},
    )  # fmt: skip


def test_the_clock_is_set_back_between_two_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who follows events of the former engine is told to list again; it is not left waiting for ever."""
    now = time.time()
    seen = EventBus().publish({"type": "job"})
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    bus = EventBus()
    bus.publish({"type": "job"})
    with pytest.raises(PaiJupyterError, match="no longer kept"):
        bus.since(seen)


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_is_set_while_a_job_runs(hours: int, isolated_home: Path, until: Any) -> None:
    """Its log has every line and its end is the right one, whatever the times in them."""
    client = JobsClient.connect()
    go = isolated_home / "go"
    asked = request(f"echo begin; until [ -e {go} ]; do sleep 0.02; done; echo end")
    asked["document"] += "extras: {paijupyter: {version: 1, timeLimit: 60}}\n"
    job = client.submit(asked)["id"]
    until(lambda: logged(client, job), why="the first line")
    folder = isolated_home / "data" / "jobs" / job / "tasks" / "worker-0" / "0"
    index = folder / "log.index"
    offset, at = index.read_text().split()
    index.write_text(f"{offset} {int(at) - hours * 3_600_000}\n")  # as if it had been written before the step
    go.touch()
    assert client.wait(job, timeout=60)["state"] == "succeeded"
    assert "".join(chunk.text for chunk in client.logs(job)) == "begin\nend\n"


# -- paths -------------------------------------------------------------------------------------------------


def test_a_runtime_folder_whose_name_is_too_long_for_a_socket(
    isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAIJUPYTER_RUNTIME_DIR", str(isolated_home / ("r" * 100)))
    with pytest.raises(PaiJupyterError) as caught:
        ensure_engine()
    assert caught.value.code == "runtime-dir-too-long"
    assert "PAIJUPYTER_RUNTIME_DIR" in caught.value.hint


def test_a_long_folder_of_the_system_is_passed_over(
    isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody chose that folder for us, so a shorter one is taken, and all clients take the same."""
    long = isolated_home / ("x" * 100)
    long.mkdir()
    monkeypatch.delenv("PAIJUPYTER_RUNTIME_DIR")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    monkeypatch.setattr(paths, "SHORT_PLACE", isolated_home / "tmp")
    (isolated_home / "tmp").mkdir()
    found = paths.engine_socket()
    assert found.parent.parent.parent == isolated_home / "tmp"
    assert found == paths.engine_socket()
    assert not list(long.iterdir())
