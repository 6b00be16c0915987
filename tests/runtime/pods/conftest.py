"""A job whose pods are processes on loopback addresses: the real archive, the real board.

Set PAIJUPYTER_TEST_BOOT_PYTHON to boot all pods with another interpreter, down to Python 3.6.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.boot import boot_zipapp

KEY = "5e" * 32


class Pod:
    """One pod: its folder, the process in it, and what Kubernetes would know of it."""

    def __init__(self, job: PodJob, key: str) -> None:
        self.key = key
        self.role, _, self.index = key.rpartition("-")
        self.home = job.home / key
        self.run_folder = self.home / "run"
        self.run_folder.mkdir(parents=True)
        self.python = os.environ.get("PAIJUPYTER_TEST_BOOT_PYTHON", sys.executable)
        self._job = job
        self.variables = {"PATH": os.environ["PATH"], "PAIJUPYTER_ROLE": self.role}
        self.variables["JOB_COMPLETION_INDEX"] = self.index
        self.changes: dict[str, Any] = {}  # of the spec, for this pod only
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        return [self.python, "-I", "-S", str(boot_zipapp(self._job.home / "data"))]

    @property
    def spec_file(self) -> Path:
        return self.home / "spec.json"

    def start(self) -> Pod:
        """Start the pod's first process, as the kubelet does."""
        own = {"run": str(self.run_folder), "terminationLog": str(self.home / "termination-log")}
        self.spec_file.write_text(json.dumps({**self._job.spec, **own, **self.changes}))
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "pod", str(self.spec_file)],
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def outputs(self, word: str) -> bytes:
        """Run what the engine runs beside the task to fetch its outputs."""
        command = [*self.command, "outputs", word, str(self.spec_file)]
        return subprocess.run(command, env=self.variables, stdout=subprocess.PIPE, check=True).stdout

    def stop(self) -> None:
        """Delete the pod, as far as its first process notices."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGTERM)

    def end(self) -> dict[str, Any]:
        """Wait for the pod's end; return the record of it and, as ``status``, the exit status."""
        assert self.process is not None
        return {"status": self.process.wait(60), **self.record}

    @property
    def ended(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    @property
    def record(self) -> dict[str, Any]:
        text = (self.home / "termination-log").read_bytes()
        assert len(text) <= 4096
        record: dict[str, Any] = json.loads(text)
        return record

    @property
    def log(self) -> str:
        """The log so far."""
        file = self.home / "log"
        return file.read_bytes().decode(errors="replace") if file.exists() else ""


class PodJob:
    """A job; ``spec`` may be changed until its pods are started.

    Args:
        home: where everything is.
        roles: instances by role, in document order.
    """

    def __init__(self, home: Path, **roles: int) -> None:
        self.home = home
        home.mkdir()
        keys = [f"{role}-{index}" for role, count in roles.items() for index in range(count)]
        (home / "board-key").write_text(KEY)
        self.spec: dict[str, Any] = {
            "schema": 1,
            "job": {"id": "j1", "name": "demo-abcdef", "user": "alice", "attempt": 0},
            "roles": [
                {
                    "name": role,
                    "instances": count,
                    "minFailed": 1,
                    "minSucceeded": -1 if role == "ps" else count,
                    "launcher": "plain",
                }
                for role, count in roles.items()
            ],
            # Addresses of their own, as pods have, where the system gives all of 127.0.0.0/8 to loopback.
            "hosts": {key: f"127.0.0.{number}" for number, key in enumerate(keys, 1)},
            "ports": {key: {"ssh": [4001], "http": [4002]} for key in keys},
            "commands": {role: "true" for role in roles},
            "board": {"task": keys[0], "port": _free_port()} if len(keys) > 1 else None,
            "barrier": {"timeout": 60} if len(keys) > 1 else None,
            "env": {},
            "parameters": {},
            "package": None,
            "parcels": [],
            "requirements": {"file": None, "policy": "never", "environments": str(home / "environments")},
            "python": None,
            "data": None,
            "storages": [],
            "outputs": [],
            "secrets": None,
            "keyFile": str(home / "board-key"),
            "kept": None,
            "outputsSeconds": 30.0,
            "fetchSeconds": 10.0,
            "graceSeconds": 10.0,
            "logLimitBytes": 0,
            "memoryLimit": "none",
            "timeLimit": None,
        }
        self.pods = {key: Pod(self, key) for key in keys}

    def role(self, name: str) -> dict[str, Any]:
        """Return what the spec says of a role."""
        (found,) = [each for each in self.spec["roles"] if each["name"] == name]
        return found

    def secrets(self, **values: str) -> None:
        """Give the job secrets, as its Secret is mounted."""
        (self.home / "secrets.json").write_text(json.dumps(values))
        self.spec["secrets"] = str(self.home / "secrets.json")

    def run(self, **commands: str) -> dict[str, dict[str, Any]]:
        """Start all pods with a command per role, and return how each ended."""
        self.spec["commands"].update(commands)
        for pod in self.pods.values():
            pod.start()
        return {key: pod.end() for key, pod in self.pods.items()}

    def logs(self) -> dict[str, str]:
        return {key: pod.log for key, pod in self.pods.items()}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def make_job(isolated_home: Path) -> Iterator[Callable[..., PodJob]]:
    """Return a maker of jobs; what still runs of their pods at the end of the test is killed."""
    made: list[PodJob] = []

    def make(**roles: int) -> PodJob:
        made.append(PodJob(isolated_home / f"job{len(made)}", **roles))
        return made[-1]

    yield make
    for pod in [pod for job in made for pod in job.pods.values()]:
        if pod.process is not None and pod.process.poll() is None:
            _kill_tree(pod.process.pid)
            pod.process.wait()


def _kill_tree(pid: int) -> None:
    """Kill a pod: its boot process and the user's command lead groups of their own."""
    pids = [pid]
    for each in pids:
        children = Path(f"/proc/{each}/task/{each}/children")
        pids += [int(child) for child in children.read_text().split()] if children.exists() else []
    for each in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
