"""A backend of another package: all of the seam in one small module, and nothing but public names.

The "shed" is a place in memory where jobs run, as a cluster is one elsewhere: it outlives the backend objects
that talk to it. It has no queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.backends.base import (
    FINAL,
    BackendPlan,
    Capabilities,
    Change,
    Exit,
    Job,
    Place,
    Profile,
    State,
    TaskStatus,
)
from paijupyter.errors import Problem
from paijupyter.protocol import Counts, decide, policies, write

_CPUS = 100


@dataclass(eq=False)
class Record:
    """A job in the shed."""

    job: Job
    secrets: Mapping[str, str]
    current: Change
    logs: dict[tuple[str, int], bytearray] = field(default_factory=dict)
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)
    is_stopping: bool = False
    is_lost: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)
    life: asyncio.Task[None] | None = None


class Shed:
    """Where jobs run."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.listeners: list[asyncio.Queue[Change | None]] = []

    def add(self, job: Job, secrets: Mapping[str, str]) -> None:
        """Run a job, once."""
        if job.id not in self.records:
            record = Record(job, secrets, Change(job.id, 0, "waiting", time.time(), "starting"))
            self.records[job.id] = record
            record.life = asyncio.create_task(self._run(record))

    async def end(self, record: Record) -> None:
        """Stop a job."""
        record.is_stopping = True
        _kill(record)
        await record.done.wait()

    def lose(self, job_id: str) -> None:
        """Drop a job with all it runs."""
        record = self.records[job_id]
        record.is_lost = True
        _kill(record)

    async def _run(self, record: Record) -> None:
        retries = int(record.job.document.get("jobRetryCount") or 0)
        for attempt in range(retries + 1):
            self._tell(record, Change(record.job.id, attempt, "waiting", time.time(), "starting"))
            final = await self._attempt(record, attempt)
            if final.state != "failed" or final.reason == "lost":
                break
        record.secrets = {}
        self._tell(record, final)
        record.done.set()

    async def _attempt(self, record: Record, attempt: int) -> Change:
        job = record.job
        keys = [(name, index) for name, each in job.roles.items() for index in range(each["instances"])]
        states: dict[str, TaskStatus] = {}
        for name, index in keys:
            status = TaskStatus(name, index, attempt, "running", started_at=time.time())
            states[status.key] = status
            record.logs[status.key, attempt] = bytearray()
            record.processes[status.key] = await _start(record, status)
        self._tell(record, _change(record, attempt, "running", tasks=tuple(states.values())))
        if record.is_stopping or record.is_lost:
            _kill(record)  # asked for before there was anything to kill
        verdict: Change | None = None
        waiting = {asyncio.create_task(self._task(record, status)) for status in states.values()}
        while waiting:
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                status = task.result()
                if (verdict or record.is_stopping) and status.state != "succeeded":
                    status = replace(status, state="stopped")
                states[status.key] = status
                self._tell(record, _change(record, attempt, "running", tasks=(status,)))
                if verdict is None:
                    verdict = _verdict(record, attempt, states, status)
                    if verdict:
                        _kill(record)
        assert verdict is not None
        return replace(verdict, at=time.time())

    async def _task(self, record: Record, status: TaskStatus) -> TaskStatus:
        process = record.processes[status.key]
        log = record.logs[status.key, status.attempt]
        assert process.stdout is not None
        while piece := await process.stdout.read(65536):
            for value in record.secrets.values():
                piece = piece.replace(value.encode(), b"****")
            log += piece
        code = await process.wait()
        exit = Exit(code if code >= 0 else None, None if code >= 0 else signal.Signals(-code).name)
        last = tuple(log.decode(errors="replace").splitlines()[-20:])
        return replace(
            status,
            state="failed" if code else "succeeded",
            reason="user" if code else "",
            exit=replace(exit, last_lines=last),
            ended_at=time.time(),
        )

    def _tell(self, record: Record, change: Change) -> None:
        known = record.current.tasks if record.current.attempt == change.attempt else ()
        tasks = {each.key: each for each in (*known, *change.tasks)}
        record.current = replace(change, tasks=tuple(tasks.values()))
        for listener in self.listeners:
            listener.put_nowait(change)


_SHEDS: dict[str, Shed] = {}


def shed_of(place: Place) -> Shed:
    """Return the shed of a place; it outlives the backends that talk to it."""
    return _SHEDS.setdefault(str(place.data), Shed())


class ShedBackend:
    """Talks to the shed."""

    def __init__(self, profile: Profile, place: Place) -> None:
        self._profile = profile
        self._shed = shed_of(place)
        self._listeners: list[asyncio.Queue[Change | None]] = []

    async def capabilities(self) -> Capabilities:
        """A hundred processors."""
        return Capabilities(self._profile.kind, "1.0", capacity={"cpu": _CPUS}, free={"cpu": _CPUS})

    async def plan(self, job: Job) -> BackendPlan:
        """One shelf per task."""
        problems = []
        objects = []
        for name, each in job.roles.items():
            objects += [{"kind": "shelf", "name": f"{name}-{index}"} for index in range(each["instances"])]
            if each["resourcePerInstance"]["cpu"] > _CPUS:
                path = f"/taskRoles/{name}/resourcePerInstance/cpu"
                message = f"CPUs asked for by `{name}` are more than the shed's {_CPUS}."
                problems.append(Problem("error", "never-fits", message, path, hint="Ask for less."))
        return BackendPlan(write({**job.document, "name": job.name}), tuple(objects), tuple(problems), "now")

    async def submit(self, job: Job, secrets: Mapping[str, str]) -> None:
        """Put it into the shed."""
        self._shed.add(job, secrets)

    async def watch(self, known: Sequence[Job]) -> AsyncIterator[Change]:
        """Listen to the shed."""
        listener: asyncio.Queue[Change | None] = asyncio.Queue()
        for record in self._shed.records.values():
            if record.current.state not in FINAL or record.job.id in {job.id for job in known}:
                listener.put_nowait(record.current)
        for job in known:
            if job.id not in self._shed.records:
                message = "The shed does not know the job."
                listener.put_nowait(Change(job.id, 0, "failed", time.time(), "lost", message))
        self._listeners.append(listener)
        self._shed.listeners.append(listener)
        try:
            while (change := await listener.get()) is not None:
                yield change
        finally:
            self._shed.listeners.remove(listener)

    async def logs(self, job: Job, role: str, index: int, attempt: int, offset: int) -> AsyncIterator[bytes]:
        """Read the log in memory."""
        record = self._shed.records[job.id]
        while True:
            ended = record.done.is_set() or record.current.attempt > attempt
            piece = bytes(record.logs.get((f"{role}-{index}", attempt), b"")[offset:])
            if piece:
                offset += len(piece)
                yield piece
            elif ended:
                return
            else:
                await asyncio.sleep(0.02)

    async def stop(self, job: Job) -> None:
        """End it."""
        record = self._shed.records.get(job.id)
        if record:
            await self._shed.end(record)

    async def delete(self, job: Job) -> None:
        """Nothing is kept but the record."""

    async def close(self) -> None:
        """Stop listening."""
        for listener in self._listeners:
            listener.put_nowait(None)


async def _start(record: Record, status: TaskStatus) -> asyncio.subprocess.Process:
    job = record.job
    folder = tempfile.mkdtemp(dir=job.folder)
    output = job.folder / "output" / status.key
    output.mkdir(parents=True, exist_ok=True)
    if job.package:
        _unpack(job, folder)
    variables = {
        **os.environ,
        **record.secrets,
        "PAI_JOB_ID": job.id,
        "PAI_ATTEMPT": str(status.attempt),
        "PAI_CURRENT_TASK_ROLE_NAME": status.role,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(status.index),
        "PAI_OUTPUT_DIR": str(output),
    }
    options = ["-o", "errexit", "-o", "nounset", "-o", "pipefail"]
    return await asyncio.create_subprocess_exec(
        shutil.which("bash") or "bash",
        *options,
        "-c",
        job.commands[status.role],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
        env=variables,
        start_new_session=True,
    )


def _unpack(job: Job, folder: str) -> None:
    assert job.package is not None
    manifest: Any = json.loads((job.package.folder / "manifest.json").read_text())
    with (job.package.folder / "pack").open("rb") as pack:
        for path, _, size, _ in manifest["files"]:
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "wb") as file:
                file.write(pack.read(size))


def _kill(record: Record) -> None:
    for process in record.processes.values():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _verdict(
    record: Record, attempt: int, states: Mapping[str, TaskStatus], last: TaskStatus
) -> Change | None:
    if record.is_lost:
        return _change(record, attempt, "failed", "lost", "The shed lost the job.")
    if record.is_stopping:
        return _change(record, attempt, "stopped", "", "The job was stopped.")
    count = Counter((status.role, status.state) for status in states.values())
    counts = {name: Counts(count[name, "succeeded"], count[name, "failed"]) for name in record.job.roles}
    verdict = decide(policies(record.job.document), counts)
    if verdict is None:
        return None
    if verdict.state == "succeeded":
        return _change(record, attempt, "succeeded", "", verdict.message)
    how = last.exit and (last.exit.signal or f"exit code {last.exit.code}")
    change = _change(record, attempt, "failed", "user", f"{last.key} ended with {how}")
    return replace(change, failed_task=last.key)


def _change(
    record: Record,
    attempt: int,
    state: State,
    reason: str = "",
    message: str = "",
    tasks: tuple[TaskStatus, ...] = (),
) -> Change:
    return Change(record.job.id, attempt, state, time.time(), reason, message, tasks)
