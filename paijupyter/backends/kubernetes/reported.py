"""What a task has reported, brought to where a process of this host would have written it.

Metrics are appended, so their file is cut to what the log's cursor knows before it goes on: after a crash the
same reports come once more.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.base import GpuUsage, Usage
from paijupyter.backends.jsonfiles import write_json
from paijupyter.backends.kubernetes.sieve import Report

METRICS = "metrics.jsonl"
FILES = {"environment": "environment.json", "checkpoints": "checkpoints.json"}
"""By kind of a report the file that has the latest one."""
_STALE = 60.0  # seconds after which what a task used says nothing of now


class Reported:
    """The reports of one task of one attempt.

    Args:
        folder: of the attempt of the task, on this host; made when there is something to write.
        size: of the metrics that were taken before.

    Attributes:
        size: of the metrics that were taken.
    """

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self.size = self._cut(size)
        self._usage: tuple[float, Usage] | None = None

    @property
    def usage(self) -> Usage | None:
        """What the task uses, None if it said nothing lately."""
        if self._usage is None or time.monotonic() - self._usage[0] > _STALE:
            return None
        return self._usage[1]

    def take(self, report: Report) -> None:
        """Take a report; one of a kind that is not known here is passed over.

        Raises:
            OSError: it cannot be written.
        """
        if report.kind == "metrics":
            self._append(report.text)
        elif report.kind in FILES:
            found = _object(report.text)
            if found:
                self._folder.mkdir(parents=True, exist_ok=True)
                write_json(self._folder / FILES[report.kind], found)
        elif report.kind == "usage":
            found = _object(report.text)
            with contextlib.suppress(KeyError, TypeError, ValueError):
                gpus = tuple(_gpu(each) for each in found.get("gpus") or ())
                usage = Usage(float(found["cpu"]), float(found["memoryMB"]), gpus)
                self._usage = (time.monotonic(), usage)

    def begin_container(self) -> None:
        """Begin anew: another container runs the task from its start."""
        self.size = self._cut(0)

    def _append(self, line: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder / METRICS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as stream:
            self.size += stream.write(line.encode("utf-8", "replace") + b"\n")

    def _cut(self, size: int) -> int:
        try:
            there = (self._folder / METRICS).stat().st_size
            if there > size:
                os.truncate(self._folder / METRICS, size)
        except OSError:
            return 0
        return min(there, size)


def _gpu(told: Mapping[str, Any]) -> GpuUsage:
    busy, memory = told.get("busy"), told.get("memoryMB")
    return GpuUsage(
        str(told["name"]),
        None if busy is None else float(busy),
        None if memory is None else float(memory),
    )


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
