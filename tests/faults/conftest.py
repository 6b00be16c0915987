"""Jobs that can be held at each step of their life, and what must be true of them after any fault."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paijupyter.client import JobsClient
from paijupyter.jobs.folders import DRAFT
from paijupyter.package import snapshot
from tests.documents import document

# The steps of a job's life at which something is killed; `before` is before submit has answered.
STEPS = ("before", "queued", "starting", "running", "ending", "ended")
ENDS = {"ending": "stopped"}
_COMMANDS = {
    "running": "echo begin\nuntil [ -e {go} ]; do sleep 0.02; done\necho end",
    "ending": "trap 'touch {go}.told; until [ -e {go} ]; do sleep 0.02; done; echo end; exit 0' TERM\n"
    "echo begin\nwhile :; do sleep 0.02 || true; done",
}
_PLAIN = "echo begin\necho end"


class Life:
    """One job, held at one step of its life, with all that must be true of it in the end.

    Attributes:
        step: where it is held.
        job: its id, "" until somebody has submitted it.
        go: the file whose appearance lets it go on.
    """

    def __init__(self, step: str, home: Path, until: Callable[..., Any]) -> None:
        self.step = step
        self.home = home
        self.job = ""
        self.go = home / f"go-{step}"
        self._until = until
        self._stopper: threading.Thread | None = None
        self.all_cpus = 4 * len(os.sched_getaffinity(0))

    def request(self, client: JobsClient, **more: Any) -> dict[str, Any]:
        """Return the submission; what it needs beside is there when this returns."""
        command = 'echo run >> "$PAI_OUTPUT_DIR/runs"\n' + _COMMANDS.get(self.step, _PLAIN)
        request = self._request(command.format(go=self.go), requestId=f"request-{self.step}", **more)
        if self.step == "queued":
            blocker = self._request(_COMMANDS["running"].format(go=self.go), cpu=self.all_cpus)
            client.submit(blocker)
            request["document"] = request["document"].replace("cpu: 0", f"cpu: {self.all_cpus}")
        if self.step == "starting":
            request["package"] = snapshot(self._folder(), client.store).sha256
            request["context"]["python"] = str(self._slow_python())
        return request

    def hold(self, client: JobsClient, job: str) -> None:
        """Bring a submitted job to its step."""
        self.job = job
        if self.step == "queued":
            self._until(lambda: client.get(job)["reason"] == "queued", why="the queue")
        elif self.step == "starting":
            self._until((self.home / "asked").exists, why="the look for requirements")
        elif self.step in ("running", "ending"):
            self._until(lambda: b"begin" in self.log(), why="the first line")
        if self.step == "ending":
            self._stopper = threading.Thread(target=self._stop)
            self._stopper.start()
            self._until(Path(f"{self.go}.told").exists, why="the wish to stop")
            assert client.get(job)["reason"] == "stopping"
        if self.step == "ended":
            client.wait(job, timeout=60)

    def folder(self) -> Path:
        """Return the job's folder."""
        return self.home / "data" / "jobs" / self.job

    def task_folder(self) -> Path:
        """Return the folder of its one task."""
        return self.folder() / "tasks" / "worker-0" / "0"

    def log(self) -> bytes:
        """Return what the task has said so far."""
        path = self.task_folder() / "log"
        return path.read_bytes() if path.exists() else b""

    def check(self, client: JobsClient) -> dict[str, Any]:
        """Let the job go on; it ends as if nothing had happened: once, whole, and nothing of it is left."""
        self.go.touch()
        view = client.wait(self.job, timeout=60)
        if self._stopper is not None:
            self._stopper.join()
        assert view["state"] == ENDS.get(self.step, "succeeded"), view["message"]
        said = self.log().replace(b"Terminated\n", b"")  # which bash says of its `sleep`
        assert said.startswith(b"begin\nend\n"), said
        text = "".join(chunk.text for chunk in client.logs(self.job, "worker-0"))
        assert text.encode() == self.log()
        assert (self.folder() / "output" / "worker-0" / "runs").read_text() == "run\n"
        assert view["attempt"] == 0
        self.check_clean(client)
        return view

    def check_clean(self, client: JobsClient) -> None:
        """Nothing runs on, nothing is doubled, nothing is half there."""
        self._until(lambda: not processes_of(self.job), why="the job's processes to end")
        jobs = client.list()["jobs"]
        assert len([job for job in jobs if job["shortName"] == "fault"]) == (
            2 if self.step == "queued" else 1
        )
        for job in jobs:
            client.wait(job["id"], timeout=60)
        # A draft of an engine killed in the middle of writing it is hidden, and swept later.
        folders = (self.home / "data" / "jobs").iterdir()
        names = sorted(path.name for path in folders if not path.name.startswith(DRAFT))
        assert names == sorted(job["id"] for job in jobs)
        engine = client.version()["engine"]["pid"]
        # Another one may just be finding out that it is not needed.
        self._until(lambda: engines() == [engine], why="one engine, and one only")

    def _request(self, command: str, cpu: int = 0, **more: Any) -> dict[str, Any]:
        text = document(command, name="fault", cpu=cpu, memory=50)
        return {"document": text, "context": {"python": sys.executable}, **more}

    def _folder(self) -> Path:
        folder = self.home / "package"
        folder.mkdir()
        (folder / "requirements.txt").write_text("pip\n")
        return folder

    def _slow_python(self) -> Path:
        """Return an interpreter that waits, so that the task is held before it is ready."""
        python = self.home / "bin" / "python"
        python.parent.mkdir()
        wait = f"touch {self.home / 'asked'}; until [ -e {self.go} ]; do sleep 0.02; done"
        python.write_text(f'#!/bin/bash\n{wait}\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        return python

    def _stop(self) -> None:
        JobsClient.connect().stop(self.job)


def processes_of(job: str) -> list[int]:
    """Return every living process whose environment has the job's id."""
    mark = f"PAI_JOB_ID={job}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def engines() -> list[int]:
    """Return the engines of this test's home."""
    mark = f"PAIJUPYTER_RUNTIME_DIR={os.environ['PAIJUPYTER_RUNTIME_DIR']}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"paijupyter.engine" not in path.read_bytes():
                continue
            if mark in path.with_name("environ").read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def kill(pid: int) -> None:
    """End a process as nothing can be prepared for, and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}").exists():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        time.sleep(0.005)


class JupyterServer:
    """A Jupyter server with our extension, in a process of its own."""

    def __init__(self, home: Path, until: Callable[..., Any]) -> None:
        quiet = dict.fromkeys(
            ("jupyterlab", "jupyter_lsp", "notebook_shim", "jupyter_server_terminals"), False
        )
        command = [
            sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--port=0",
            "--IdentityProvider.token=t", f"--ServerApp.root_dir={home}",
            f"--ServerApp.jpserver_extensions={ {**quiet, 'paijupyter': True} !r}",
        ]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        facts = home / "jrun" / f"jpserver-{self.process.pid}.json"
        self.url = until(lambda: _url(facts), why="the Jupyter server")

    def client(self) -> JobsClient:
        """Return a client that goes through it."""
        return JobsClient.over_http(self.url, "t")

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


def _url(facts: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return str(json.loads(facts.read_text())["url"])
    return ""


@pytest.fixture
def server(isolated_home: Path, until: Callable[..., Any]) -> Iterator[JupyterServer]:
    """Start a Jupyter server."""
    started = JupyterServer(isolated_home, until)
    yield started
    started.kill()


@pytest.fixture
def life(request: pytest.FixtureRequest, isolated_home: Path, until: Callable[..., Any]) -> Iterator[Life]:
    """Hand a test the job of its parameter `step`."""
    made = Life(request.getfixturevalue("step"), isolated_home, until)
    yield made
    made.go.touch()


@pytest.fixture(name="kill")
def kill_fixture() -> Callable[[int], None]:
    """Hand :func:`kill` to tests."""
    return kill


@pytest.fixture(name="processes_of")
def processes_fixture() -> Callable[[str], list[int]]:
    """Hand :func:`processes_of` to tests."""
    return processes_of
