"""A task on disk, as a backend prepares it, and the real ``boot.pyz`` run on it as its own process.

Set PAIJUPYTER_TEST_BOOT_PYTHON to boot all tasks with another interpreter, down to Python 3.6.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.boot import boot_zipapp

SMALL = 262_144


class Task:
    """One task's folder, spec and process; ``spec`` may be changed until it is started."""

    def __init__(self, home: Path, key: str = "worker-0") -> None:
        self.home = home
        self.data = home / "data"
        self.folder = home / "job" / "tasks" / key / "0"
        self.output = home / "job" / "output" / key
        self.private = home / "run" / "tasks" / "j1" / key
        self.work = self.folder / "work"
        self.folder.mkdir(parents=True)
        role, _, index = key.rpartition("-")
        self.python = os.environ.get("PAIJUPYTER_TEST_BOOT_PYTHON", sys.executable)
        self.variables = {"PATH": os.environ["PATH"], "HOME": str(home)}
        self.process: subprocess.Popen[bytes] | None = None
        self.spec: dict[str, Any] = {
            "schema": 1,
            "job": {"id": "j1", "name": "demo-abcdef", "user": "alice", "attempt": 0},
            "role": role,
            "index": int(index),
            "roles": [{"name": role, "instances": 1, "minFailed": 1, "minSucceeded": 1, "launcher": "plain"}],
            "hosts": {key: "127.0.0.1"},
            "ports": {key: {"ssh": [4001], "http": [4002]}},
            "command": "true",
            "env": {},
            "parameters": {},
            "package": None,
            "requirements": {
                "file": None,
                "policy": "never",
                "environments": str(self.data / "environments"),
            },
            "python": sys.executable,
            "output": str(self.output),
            "outputs": [],
            "folder": str(self.folder),
            "private": str(self.private),
            "secrets": None,
            "barrier": {"kind": "files", "tasks": {key: str(self.folder)}, "timeout": 60},
            "graceSeconds": 10,
            "logLimitBytes": 0,
            "timeLimit": None,
        }

    def package(self, files: Mapping[str, bytes | str | tuple[str, bytes]]) -> None:
        """Give the task a package; a value may be ``(mode, content)``."""
        entries, pack = [], b""
        for path in sorted(files, key=lambda name: name.encode()):
            value = files[path]
            mode, content = value if isinstance(value, tuple) else ("100644", value)
            content = content.encode() if isinstance(content, str) else content
            digest = hashlib.sha256(content).hexdigest()
            entries.append([path, mode, len(content), digest])
            if len(content) < SMALL:
                pack += content
            else:
                blob = self.data / "blobs" / digest[:2] / digest
                blob.parent.mkdir(parents=True, exist_ok=True)
                blob.write_bytes(content)
        folder = self.data / "package"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text(json.dumps({"schema": 1, "files": entries}))
        (folder / "pack").write_bytes(pack)
        self.spec["package"] = {
            "manifest": str(folder / "manifest.json"),
            "pack": str(folder / "pack"),
            "blobs": str(self.data / "blobs"),
        }

    def secrets(self, **values: str) -> None:
        """Give the task secrets, as the job service keeps them."""
        file = self.home / "secrets.json"
        file.write_text(json.dumps(values))
        file.chmod(0o600)
        self.spec["secrets"] = str(file)

    def prepare(self) -> list[str]:
        """Write the spec; return the command of the boot process."""
        spec = self.folder / "spec.json"
        spec.write_text(json.dumps(self.spec))
        return [self.python, "-I", "-S", str(boot_zipapp(self.data)), str(spec)]

    def start(self, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
        """Start the boot process as a backend does."""
        self.process = subprocess.Popen(
            self.prepare(),
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        return self.process

    def end(self) -> dict[str, Any]:
        """Wait for the boot process and return the exit record."""
        assert self.process is not None
        said, _ = self.process.communicate(timeout=90)
        assert (self.process.returncode, said) == (0, b"")
        return self.exit

    def run(self, command: str | None = None) -> dict[str, Any]:
        """Start it, wait for it, return the exit record."""
        if command is not None:
            self.spec["command"] = command
        self.start()
        return self.end()

    @property
    def exit(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.folder / "exit.json").read_text())
        return record

    @property
    def log(self) -> str:
        """The log so far, "" if there is none yet."""
        file = self.folder / "log"
        return file.read_bytes().decode(errors="replace") if file.exists() else ""


@pytest.fixture
def make_task(isolated_home: Path) -> Iterator[Callable[..., Task]]:
    """Return a maker of tasks; boots that still run at the end of the test are killed."""
    made: list[Task] = []

    def make(name: str = "a", key: str = "worker-0") -> Task:
        made.append(Task(isolated_home / name, key))
        return made[-1]

    yield make
    for task in made:
        if task.process is not None and task.process.poll() is None:
            os.killpg(task.process.pid, signal.SIGKILL)
        if task.process is not None:
            task.process.wait()
            task.process.stdout.close()


@pytest.fixture
def task(make_task: Callable[..., Task]) -> Task:
    """Return a task of one role with one instance."""
    return make_task()


def _other_pythons() -> dict[str, str]:
    """Return further interpreters to test with: PAIJUPYTER_TEST_PYTHONS (a search path) and python3.6."""
    found = {}
    candidates = os.environ.get("PAIJUPYTER_TEST_PYTHONS", "").split(os.pathsep)
    for candidate in [*filter(None, candidates), shutil.which("python3.6") or ""]:
        if candidate:
            probe = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            answer = subprocess.run(probe, capture_output=True, text=True)
            if answer.returncode == 0:
                found.setdefault(answer.stdout.strip(), candidate)
    return found


OTHERS = _other_pythons()


@pytest.fixture(params=["this", *sorted(set(OTHERS) | {"3.6"})])
def python(request: pytest.FixtureRequest) -> str:
    """Return an interpreter to boot with: this one, Python 3.6, and others that were named."""
    if request.param == "this":
        return sys.executable
    if request.param not in OTHERS:
        pytest.skip(f"no Python {request.param}: put it on PATH or name it in PAIJUPYTER_TEST_PYTHONS")
    return OTHERS[request.param]
