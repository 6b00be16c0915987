"""Runs the jobs of a scripted OpenPAI server: their commands in bash, as the cluster's runtime starts them.

What bash gets is what the server, Kubernetes and the runtime make of the posted text. The environment has the
variables of openpai.md 5.1 to 5.3 that we use; completion and retries are those of 1.5 and 6.3. There are no
containers: a task's place for our own files is named by ``PAIJUPYTER_RUN``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.openpai.jobs import FINAL, ScriptedJob, Task, converted
from tests.openpai.server import OpenPai

_BASH = ("bash", "-o", "errexit", "-o", "nounset", "-o", "pipefail")
_PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
_NOT_FOUND, _SEGFAULT = 127, 139
_TICK = 0.02  # seconds between two looks at a job


def tools_without_python(folder: Path) -> str:
    """Return a ``PATH`` with what an image with bash has, and no Python; it is made in a folder."""
    folder.mkdir()
    for name in ("bash", "base64", "cat", "rm", "mkdir", "tar", "gzip", "sha256sum", "mktemp"):
        (folder / name).symlink_to(shutil.which(name, path="/usr/bin:/bin") or name)
    return str(folder)


class Cluster:
    """The nodes of a scripted server.

    Args:
        server: whose jobs run.
        folder: for the files of tasks.
        path: ``PATH`` of the tasks.

    Attributes:
        paths: ``PATH`` of the tasks of an image, by its address, where it is another one.
    """

    def __init__(self, server: OpenPai, folder: Path, path: str = _PATH) -> None:
        self.server = server
        self.path = path
        self.paths: dict[str, str] = {}
        self._folder = folder
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Cluster:
        self.server.on_submit = self._take
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _take(self, job: ScriptedJob) -> None:
        thread = threading.Thread(target=self._run, args=(job,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _run(self, job: ScriptedJob) -> None:
        left = int(job.data.get("jobRetryCount") or 0)
        while not self._ends.is_set():
            with self.server.lock:
                if job.final:
                    return
                job.prepare().run()
            attempt = _Attempt(self, job, self._folder / job.name / str(len(job.attempts)))
            if not attempt.carry(self._ends, last=left == 0):
                return
            left -= 1


class _Attempt:
    """The tasks of one attempt."""

    def __init__(self, cluster: Cluster, job: ScriptedJob, folder: Path) -> None:
        self._cluster, self._server, self._job, self._folder = cluster, cluster.server, job, folder
        self._number = len(job.attempts) - 1
        self._processes: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self._readers: dict[tuple[str, int], threading.Thread] = {}
        self._said: dict[tuple[str, int], bytearray] = {}

    def carry(self, ends: threading.Event, *, last: bool) -> bool:
        """Run it to its end; return whether another one follows, which it does unless this is the last."""
        for task in self._job.tasks():
            self._start(task)
        try:
            while not ends.wait(_TICK):
                with self._server.lock:
                    if self._job.final or self._job.framework not in self._server.jobs:
                        return False
                    code = self._judge()
                    if code and not last:  # in one step: nobody may see it as failed
                        self._job.retry("user", origin=code)
                if code is not None:
                    return bool(code) and not last
            return False
        finally:
            for process in self._processes.values():
                _kill(process)

    def _start(self, task: Task) -> None:
        key = (task.role, task.index)
        raw = next(name for name in self._job.data["taskRoles"] if converted(name) == task.role)
        fc = {"FC_TASK_INDEX": str(task.index), "FC_FRAMEWORK_ATTEMPT_ID": str(self._number)}
        place = self._folder / f"{task.role}-{task.index}"
        place.mkdir(parents=True)
        script = place / "user.sh"
        script.write_text(self._server.command(self._job.name, raw, **fc))
        variables = {**self._variables(task, raw), **fc, "PAIJUPYTER_RUN": str(place / "run")}
        self._processes[key] = subprocess.Popen(
            [*_BASH, str(script)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=place,
            env={"PATH": self._path(raw), "HOME": str(place), "LANG": "C.UTF-8", **variables},
            start_new_session=True,
        )
        self._said[key] = bytearray()
        self._readers[key] = threading.Thread(target=self._read, args=(task,), daemon=True)
        self._readers[key].start()

    def _path(self, role: str) -> str:
        data = self._job.data
        image = data["taskRoles"][role]["dockerImage"]
        uris = [str(each.get("uri")) for each in data["prerequisites"] if each["name"] == image]
        return next(
            (self._cluster.paths[uri] for uri in uris if uri in self._cluster.paths), self._cluster.path
        )

    def _read(self, task: Task) -> None:
        key = (task.role, task.index)
        stream = self._processes[key].stdout
        assert stream is not None
        while piece := os.read(stream.fileno(), 1 << 16):
            with self._server.lock:
                task.run.logs.add(piece)
                self._said[key] = (self._said[key] + piece)[-4096:]
        stream.close()

    def _variables(self, task: Task, raw: str) -> dict[str, str]:
        job = self._job
        found = {
            "PAI_JOB_NAME": job.framework,
            "PAI_FRAMEWORK_NAME": job.framework,
            "PAI_USER_NAME": job.user,
            "PAI_VIRTUAL_CLUSTER": job.virtual_cluster,
            "PAI_CURRENT_TASK_ROLE_NAME": raw,
            "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(task.index),
        }
        for peer in job.tasks():
            name = f"{peer.role}_{peer.index}"
            found[f"PAI_HOST_IP_{name}"] = "127.0.0.1"
            for label, numbers in peer.run.ports.items():
                found[f"PAI_PORT_LIST_{name}_{label}"] = numbers
        return found

    def _judge(self) -> int | None:
        """Take what has ended; decide the attempt as FrameworkController does, if it can be."""
        failed: tuple[Task, int] | None = None
        for task in self._job.tasks():
            key = (task.role, task.index)
            status = self._processes[key].poll()
            if task.run.state in FINAL or status is None or self._readers[key].is_alive():
                continue
            status = 128 - status if status < 0 else status
            if status:
                said = self._end(key, status)
                self._job.finish(task.role, task.index, _code(status, said["user"]), **said)
                failed = failed or (task, status)
            else:
                self._job.finish(task.role, task.index)
        for raw, role in self._job.data["taskRoles"].items():
            mine = [task for task in self._job.tasks() if task.role == converted(raw)]
            policy = role.get("completion") or {}
            least_failed = policy.get("minFailedInstances") or 1
            least_succeeded = policy.get("minSucceededInstances") or len(mine)
            losers = [task for task in mine if task.run.state == "FAILED"]
            winners = [task for task in mine if task.run.state == "SUCCEEDED"]
            if 0 < least_failed <= len(losers):
                loser = failed[0] if failed and failed[0] in losers else losers[0]
                said = loser.run.said
                self._job.fail(_code(said["origin"], said["user"]), loser.role, loser.index, **said)
                return int(said["origin"])
            if 0 < least_succeeded <= len(winners):
                return self._succeed(winners[-1])
        if all(task.run.state in FINAL for task in self._job.tasks()):
            return self._succeed(self._job.tasks()[-1])
        return None

    def _succeed(self, by: Task) -> int:
        for task in self._job.tasks():
            task.run.end("STOPPED", -220, int(self._server.now() * 1000))
        self._job.succeed((by.role, by.index))
        return 0

    def _end(self, key: tuple[str, int], status: int) -> Mapping[str, Any]:
        lines = bytes(self._said[key]).decode("utf-8", "replace").splitlines()[-15:]
        return {"origin": status, "user": "\n".join(lines)}


def _code(status: int, said: str) -> int:
    """Return the exit code that the cluster's runtime makes of a command's exit status, as measured."""
    if status == _SEGFAULT:
        return status
    if status == _NOT_FOUND and "command not found" in said:
        return 220
    return 232 if "\nImportError:" in f"\n{said}" else 255


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
