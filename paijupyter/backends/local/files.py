"""Where a job's facts lie on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from paijupyter.backends.base import Job, Place


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The files of one attempt of one task."""

    folder: Path
    private: Path
    lock: Path

    @property
    def spec(self) -> Path:
        """What the boot process is told."""
        return self.folder / "spec.json"

    @property
    def started(self) -> Path:
        """Who runs it; written by the boot process right after it started."""
        return self.folder / "started.json"

    @property
    def ready(self) -> Path:
        """There once the task waits at the barrier."""
        return self.folder / "ready"

    @property
    def exit(self) -> Path:
        """How it ended; written last."""
        return self.folder / "exit.json"

    @property
    def group(self) -> Path:
        """Where its control group is, in words; there only while its command runs."""
        return self.folder / "cgroup"

    @property
    def log(self) -> Path:
        """The only copy of the task's output."""
        return self.folder / "log"

    @property
    def boot_log(self) -> Path:
        """What the boot process itself had to say, normally nothing."""
        return self.folder / "boot.log"


def task_files(job: Job, place: Place, key: str, attempt: int) -> TaskFiles:
    """Return where an attempt of the task ``<role>-<index>`` keeps its files."""
    return TaskFiles(
        folder=job.folder / "tasks" / key / str(attempt),
        private=place.runtime / "tasks" / job.id / key,
        lock=place.runtime / "spawn" / f"{job.id}.{key}.{attempt}",
    )


def secrets_file(place: Place, job_id: str) -> Path:
    """Return the one file that holds a job's secrets until it is final."""
    return place.runtime / "secrets" / f"{job_id}.json"


def tail(path: Path, lines: int = 20, limit: int = 16384) -> list[str]:
    """Return the last lines of a text file, at most ``limit`` bytes of it."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - limit))
            text = log.read().decode("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]
