"""One attempt of a job: its boot processes from their start until the last of them is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Place, Profile, TaskStatus
from paijupyter.backends.jsonfiles import read_json, write_json
from paijupyter.backends.local import ends, gpus, groups, host, tree
from paijupyter.backends.local.environment import inherited
from paijupyter.backends.local.files import TaskFiles, task_files
from paijupyter.backends.local.ports import Ports
from paijupyter.backends.local.process import BootProcess
from paijupyter.backends.local.spawn import AlreadyRuns, is_claimed, spawn
from paijupyter.backends.local.spec import specs
from paijupyter.backends.told import Task, has_barrier, tasks_of


@dataclass(eq=False)
class Running:
    """A task of the attempt and what is known of it."""

    task: Task
    files: TaskFiles
    status: TaskStatus
    process: BootProcess | None = None
    ready: bool = False
    signalled: bool = False
    ended: bool = False

    def owner(self, marks: Mapping[str, str]) -> tree.Owner:
        """Return whom its processes belong to."""
        process = self.process
        return tree.Owner(process.pid if process else 0, process.started if process else "", marks)


class Attempt:
    """Starts or adopts the boot processes of an attempt, watches and ends them.

    Args:
        boot: returns the zipapp that the tasks run. Blocking.
        devices: the GPUs that each task may see, None on a machine without any.
        wake: called from the loop when a process has ended.
    """

    def __init__(
        self,
        job: Job,
        number: int,
        place: Place,
        boot: Callable[[], Path],
        devices: Mapping[str, list[str]] | None,
        wake: Callable[[], None],
    ) -> None:
        self.job = job
        self.number = number
        self._place = place
        self._boot = boot
        self._devices = devices
        self._wake = wake
        self._has_barrier = has_barrier(job)
        self.tasks = {
            task.key: Running(
                task,
                task_files(job, place, task.key, number),
                TaskStatus(task.role, task.index, number, "waiting", "starting"),
            )
            for task in tasks_of(job)
        }

    @property
    def live(self) -> list[Running]:
        """The tasks that have not ended."""
        return [each for each in self.tasks.values() if not each.ended]

    @property
    def statuses(self) -> tuple[TaskStatus, ...]:
        """The status of every task."""
        return tuple(each.status for each in self.tasks.values())

    @property
    def is_past_barrier(self) -> bool:
        """Say whether the user's commands run: all tasks met, or, without a barrier, one is ready."""
        ready = [each.ready for each in self.tasks.values()]
        return all(ready) if self._has_barrier else any(ready)

    @property
    def is_settled(self) -> bool:
        """Say whether only the end of a process can bring news."""
        return all(each.ended or (each.ready and each.process) for each in self.tasks.values())

    def prepare(self, ports: Ports, profile: Profile) -> None:
        """Write what the boot processes are told. Blocking."""
        told = specs(self.job, self.number, ports, self._place, profile)
        for key, each in self.tasks.items():
            each.files.folder.mkdir(parents=True, exist_ok=True)
            write_json(each.files.spec, told[key])
        (self.job.folder / "output").mkdir(exist_ok=True)
        self._boot()

    def ports(self) -> set[int]:
        """Return the ports that the attempt holds. Blocking."""
        told = read_json(next(iter(self.tasks.values())).files.spec) or {}
        held: dict[str, dict[str, list[int]]] = told.get("ports") or {}
        return {port for labels in held.values() for ports in labels.values() for port in ports}

    async def start(self) -> None:
        """Start all boot processes.

        Raises:
            OSError: if the system refuses one; those already started are then ended again.
        """
        try:
            for each in self.tasks.values():
                self._spawn(each)
                await asyncio.sleep(0)  # a start takes milliseconds; others get their turn between two
        except OSError:
            await self.erase()
            raise

    async def erase(self) -> None:
        """End whatever was started and remove the folders of the attempt."""
        await tree.end([each.owner(self._marks(each)) for each in self.tasks.values() if each.process])
        self.close()
        for each in self.tasks.values():
            await groups.remove(each.files)
        await asyncio.to_thread(self._remove_folders)

    def meet(self, *, ending: bool) -> None:
        """Bring tasks of an earlier engine under watch, and start those that never were.

        Args:
            ending: whether the job is to end, so that nothing is started any more.

        Raises:
            OSError: if the system refuses to start one.
        """
        for each in self.tasks.values():
            if each.process is None and not each.ended:
                self._resolve(each, ending)

    def note_ready(self) -> bool:
        """Note who waits at the barrier by now; say whether that is news."""
        news = [each for each in self.tasks.values() if not each.ready and each.files.ready.exists()]
        for each in news:
            each.ready = True
        return bool(news)

    async def collect(self, *, ending: bool) -> list[Running]:
        """Return the tasks that have ended since the last call, in the order in which they did.

        Args:
            ending: whether the job has been decided, so that they were told to end.
        """
        gone = [each for each in self.live if self._is_gone(each)]
        silent = [each for each in gone if not each.files.exit.exists()]
        if silent:
            # Their boot process cannot clean up any more.
            await tree.end([each.owner(self._marks(each)) for each in silent])
            for each in silent:
                ends.write_for(each.files, stopped=each.signalled)
        for each in gone:
            await groups.remove(each.files)
            self._take_end(each, ending)
        return sorted(gone, key=lambda each: each.status.ended_at or 0)

    def terminate(self) -> None:
        """Ask every live boot process to end its task, each once."""
        for each in self.live:
            if each.process and not each.signalled:
                each.signalled = True
                each.process.terminate()

    async def kill(self) -> None:
        """Kill whatever still lives."""
        for each in self.live:
            each.signalled = True
        await tree.end([each.owner(self._marks(each)) for each in self.live])

    async def give_up(self) -> None:
        """Kill whatever still lives, and take it as stopped without a look at the disk."""
        await self.kill()
        for each in self.live:
            await groups.remove(each.files)
            each.ended = True
            each.status = replace(each.status, state="stopped", reason="", ended_at=time.time())
        self.close()

    def mark_running(self) -> None:
        """Note that the user's commands run now."""
        for each in self.live:
            if each.ready and each.status.state != "running":
                started = ends.seconds((read_json(each.files.started) or {}).get("at"))
                each.status = replace(each.status, state="running", reason="", message="", started_at=started)

    def close(self) -> None:
        """Let go of the processes."""
        for each in self.tasks.values():
            if each.process:
                each.process.close()

    def _spawn(self, each: Running) -> None:
        environment = {**inherited(os.environ, self.job.python), **self._marks(each)}
        if self._devices is not None:
            environment.update(gpus.variables(self._devices.get(each.task.key, ())))
        with contextlib.suppress(AlreadyRuns):
            self._follow(each, spawn(self._boot(), each.files, environment))

    def _resolve(self, each: Running, ending: bool) -> None:
        facts = read_json(each.files.started)
        if facts is not None and facts.get("bootId") not in (None, "", host.boot_id()):
            ends.write_restarted(each.files)
        elif facts is not None:
            self._follow(each, BootProcess(int(facts["pid"]), str(facts.get("startTime") or "")))
        elif each.files.exit.exists() or is_claimed(each.files) or each.files.started.exists():
            return
        elif ending:
            ends.write_for(each.files, stopped=True)
        else:
            self._spawn(each)

    def _follow(self, each: Running, process: BootProcess) -> None:
        each.process = process
        process.watch(self._wake)

    def _is_gone(self, each: Running) -> bool:
        if each.process is None:
            return each.files.exit.exists()
        return each.process.ended

    def _take_end(self, each: Running, ending: bool) -> None:
        each.ended = True
        each.ready = each.ready or each.files.ready.exists()
        if each.process:
            each.process.close()
        facts: dict[str, Any] = read_json(each.files.exit) or {}
        each.status = ends.status(each.task, self.number, facts, ending=ending)
        # Only there if the boot process could not remove it.
        shutil.rmtree(each.files.private, ignore_errors=True)
        each.files.lock.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            if not each.files.boot_log.stat().st_size:
                each.files.boot_log.unlink()

    def _marks(self, each: Running) -> dict[str, str]:
        """The variables by which the processes of a task are found; all of them are in its contract."""
        return {
            "PAI_JOB_ID": self.job.id,
            "PAI_ATTEMPT": str(self.number),
            "PAI_CURRENT_TASK_ROLE_NAME": each.task.role,
            "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(each.task.index),
        }

    def _remove_folders(self) -> None:
        for each in self.tasks.values():
            shutil.rmtree(each.files.folder, ignore_errors=True)
            shutil.rmtree(each.files.private, ignore_errors=True)
            each.files.lock.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                each.files.folder.parent.rmdir()
