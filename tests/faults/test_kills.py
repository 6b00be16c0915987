"""kill -9 of each process of the product at each step of a job's life (P28; decisions 3 to 5).

What is true afterwards is the same everywhere (``Life.check``): the job is there once, ran once, ended as if
nothing had happened, its log is whole, and nothing of it is left running.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from paijupyter.client import JobsClient

STEPS = ("before", "queued", "starting", "running", "ending", "ended")


def engine_of(client: JobsClient) -> int:
    pid: int = client.version()["engine"]["pid"]
    return pid


@pytest.mark.parametrize("step", STEPS[1:])
def test_the_engine(step: str, life: Any, kill: Callable[[int], None]) -> None:
    client = JobsClient.connect()
    life.hold(client, client.submit(life.request(client))["id"])
    kill(engine_of(client))
    life.check(client)


@pytest.mark.parametrize("step", ["before"])
@pytest.mark.parametrize("milliseconds", [0, 3, 8, 15, 30, 60])
def test_the_engine_while_it_submits(
    step: str, milliseconds: int, life: Any, kill: Callable[[int], None]
) -> None:
    """The client asks again with the same request id; also twice is once."""
    client = JobsClient.connect()
    request = life.request(client)
    found: list[str] = []
    submitting = threading.Thread(target=lambda: found.append(client.submit(request)["id"]))
    engine = engine_of(client)
    submitting.start()
    time.sleep(milliseconds / 1000)  # the very thing under test: any instant
    kill(engine)
    submitting.join()
    life.job = client.submit(request)["id"]
    assert found == [life.job]
    life.check(client)


@pytest.mark.parametrize("step", STEPS)
def test_the_jupyter_server(step: str, life: Any, server: Any) -> None:
    """A browser loses its server; its jobs lose nothing, and the next server shows them."""
    client, through = JobsClient.connect(), server.client()
    request = life.request(client)
    if step == "before":
        _ask_and_leave(server.url, request)
        server.kill()
        life.job = client.submit(request)["id"]
    else:
        life.hold(client, through.ask("POST", "/v1/jobs", body=request)["id"])
        server.kill()
    life.check(client)


def _ask_and_leave(url: str, request: dict[str, Any]) -> None:
    """Post a submission, and do not wait for its answer."""
    headers = {"Authorization": "token t", "Content-Type": "application/json"}
    post = urllib.request.Request(f"{url}paijupyter/v1/jobs", json.dumps(request).encode(), headers)
    with contextlib.suppress(TimeoutError, urllib.error.URLError):
        urllib.request.urlopen(post, timeout=0.02)


CELL = """\
import json, pathlib, threading
from paijupyter.client import JobsClient
request = json.loads(pathlib.Path({path!r}).read_text())
job = JobsClient.connect().submit(request)
pathlib.Path({path!r} + ".job").write_text(job["id"])
"""


@pytest.fixture
def kernel(isolated_home: Path) -> Iterator[Any]:
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(isolated_home))
    yield manager.provisioner, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_kernel(
    step: str, life: Any, kernel: Any, isolated_home: Path, until: Callable[..., Any]
) -> None:
    """What submitted a job is not needed for it."""
    provisioner, cells = kernel
    client = JobsClient.connect()
    told = isolated_home / "request.json"
    told.write_text(json.dumps(life.request(client)))
    cells.execute(CELL.format(path=str(told)))
    if step == "before":
        until(lambda: client.list()["jobs"], why="the job's first sign")
        life.job = client.list()["jobs"][0]["id"]
    else:
        done = told.with_suffix(".json.job")
        until(lambda: done.exists() and done.read_text(), why="the submission")
        life.hold(client, done.read_text())
    os.kill(provisioner.pid, signal.SIGKILL)
    life.check(client)


@pytest.mark.parametrize("step", ["starting", "running", "ending"])
def test_the_boot_process(
    step: str, life: Any, kill: Callable[[int], None], processes_of: Callable[[str], list[int]], until: Any
) -> None:
    """Who could tell how the task ended is gone: it was lost and is tried again, or stopped as told."""
    client = JobsClient.connect()
    life.hold(client, client.submit(life.request(client))["id"])
    kill(json.loads((life.task_folder() / "started.json").read_text())["pid"])
    if step != "ending":
        # A failure of the platform, so another attempt comes; nothing of the first one is left by then.
        until(lambda: client.get(life.job)["attempt"] == 1, seconds=60, why="the second attempt")
        life.go.touch()
    view = client.wait(life.job, timeout=60)
    assert view["state"] == ("stopped" if step == "ending" else "succeeded"), view["message"]
    first = client.tasks(life.job, attempt=0)["tasks"][0]
    assert (first["state"], first["reason"]) == (("stopped", "") if step == "ending" else ("failed", "lost"))
    assert step == "starting" or life.log().startswith(b"begin\n")
    life.check_clean(client)


@pytest.mark.parametrize("step", ["running", "ending"])
def test_the_task(step: str, life: Any, kill: Callable[[int], None], processes_of: Any, until: Any) -> None:
    """The user's command: its end is its own failure, or the stop it was told."""
    client = JobsClient.connect()
    life.hold(client, client.submit(life.request(client))["id"])
    boot = json.loads((life.task_folder() / "started.json").read_text())["pid"]
    shell = next(pid for pid in processes_of(life.job) if pid != boot and _parent(pid) == boot)
    kill(shell)
    view = client.wait(life.job, timeout=60)
    if step == "ending":
        assert view["state"] == "stopped", view["message"]
    else:
        assert (view["state"], view["reason"], view["failedTask"]["signal"]) == ("failed", "user", "SIGKILL")
    life.check_clean(client)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0
