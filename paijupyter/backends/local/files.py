"""Where a job's facts lie on disk, and how they are written: whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Place

JOURNAL = "backend.json"


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


def journal_file(job: Job) -> Path:
    """Return this backend's own record of a job; no task is called so."""
    return job.folder / "tasks" / JOURNAL


def secrets_file(place: Place, job_id: str) -> Path:
    """Return the one file that holds a job's secrets until it is final."""
    return place.runtime / "secrets" / f"{job_id}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """Return a JSON object, or None if the file is not there or is not one."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_json(path: Path, data: Any) -> None:
    """Write a 0600 file atomically."""
    os.replace(_beside(path, data), path)


def write_json_durably(path: Path, data: Any) -> None:
    """Write a 0600 file atomically, so that it survives a power cut too."""
    temporary = _beside(path, data)
    _sync(temporary)
    os.replace(temporary, path)
    _sync(path.parent)


def write_json_once(path: Path, data: Any) -> bool:
    """Write a file atomically unless it exists; say whether this call wrote it."""
    temporary = _beside(path, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


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


def _beside(path: Path, data: Any) -> str:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(data, out, ensure_ascii=False, separators=(",", ":"))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return name


def _sync(path: str | Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
