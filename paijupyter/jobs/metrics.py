"""Metrics and progress of a job, from what its first task writes: ``$PAI_METRICS_FILE`` and its log.

One rule says what is shown of a name that several sources tell: the metrics file wins, then lines of JSON in
the log, then other text. Each byte is read once; where reading has come to is kept in the job's folder, so
that a new engine goes on from there.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from paijupyter.jobs.clock import iso
from paijupyter.jobs.progress import Progress
from paijupyter.jobs.readings import Reading, read_line, read_object
from paijupyter.jobs.series import NAMES, POINTS, Values
from paijupyter.jobs.tail import Tail

__all__ = ["NAMES", "POINTS", "Metrics"]

_log = logging.getLogger(__name__)
STEP = 1 << 14  # bytes of one look: some 4 ms, which whoever follows a log has to wait for
BACKLOG = 1 << 17  # a log that is further ahead than this is read from its end
_SCHEMA = 1
_NAMES_SEEN = 1024
_SOURCES = ("file", "json", "text")


class Metrics:
    """Reads one task's files as they grow. Memory stays flat, however long they get.

    Args:
        folder: the task's folder, with ``metrics.jsonl`` and ``log``.
        kept: the file that keeps what was read, or None to keep nothing.
        clock: returns seconds since the epoch.
    """

    def __init__(
        self, folder: Path, kept: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.folder = folder
        self._kept = kept
        self._clock = clock
        self._turn = threading.Lock()
        self._file = Tail(folder / "metrics.jsonl")
        self._log = Tail(folder / "log", BACKLOG)
        self._values = {source: Values() for source in _SOURCES}
        self._progress = {"file": Progress(), "log": Progress()}
        self._execution: dict[str, Any] | None = None
        self._seen_once: set[str] = set()
        self._unsaved = False
        self._restore()

    def read(self, limit: int = STEP) -> bool:
        """Read up to ``limit`` bytes of what each file has new; say whether a value or the progress is.

        It never waits: False if another thread is just reading.
        """
        if not self._turn.acquire(blocking=False):
            return False
        try:
            return self._read(limit)[1]
        finally:
            self._turn.release()

    def read_all(self) -> None:
        """Read to the end, also what has no line end; for when nothing will be added."""
        with self._turn:
            while self._read(STEP)[0]:
                pass
            last = read_object(self._file.rest)
            if last is not None:
                self._file.flush()
                self._take([last], "file")
            self._take([read_line(self._log.rest)], "log")
            self._log.flush()
            self._save()

    def save(self) -> None:
        """Keep what was read, for an engine to come; nothing is written if nothing is new."""
        with self._turn:
            self._save()

    def to_json(self) -> dict[str, Any]:
        """Return ``{last: {name: value}, series: {name: [at most 200 values]}}``, or {} if there are none.

        JSON has no NaN and no infinity: they are ``"NaN"``, ``"Infinity"``, ``"-Infinity"`` in ``last`` and
        null in a series.
        """
        last: dict[str, float | str] = {}
        series: dict[str, list[float | None]] = {}
        for source in _SOURCES:
            values = self._values[source]
            for name in list(values.last):
                if name not in last and len(last) < NAMES:
                    last[name] = values.last[name]
                    series[name] = list(values.series[name].values)
        return {"last": last, "series": series} if last else {}

    def progress(self) -> dict[str, Any] | None:
        """Return ``{done, total, unit, fraction, etaSeconds}``, or None where nothing tells it."""
        at = self._clock()
        told = self._progress["file"].to_json(at) or self._progress["log"].to_json(at)
        return told or _of_cells(self._execution)

    def execution(self) -> dict[str, Any] | None:
        """Return which cell of a notebook runs, ``{cell, cells, line, since, done}``; None for no notebook.

        Once the job has ended it is the cell that ran last.
        """
        found = self._execution
        if found is None:
            return None
        since = iso(found["at"])
        return {**{name: found[name] for name in ("cell", "cells", "line", "done")}, "since": since}

    def _read(self, limit: int) -> tuple[bool, bool]:
        """Read; say whether anything was added, and whether it changes what is told."""
        added = told = False
        lines = self._file.read(limit)
        if lines is not None:
            if self._file.restarted:
                self._values["file"], self._progress["file"] = Values(), Progress()
                self._execution = None
            added, told = True, self._take(_of_file(lines), "file") or self._file.restarted
        lines = self._log.read(limit)
        if lines is not None:
            added, told = True, self._take(map(read_line, lines), "log") or told
        self._unsaved = self._unsaved or added
        return added, told

    def _take(self, readings: Iterable[Reading], place: str) -> bool:
        told, progress = False, self._progress[place]
        for reading in readings:
            if reading.execution:
                self._execution, told = dict(reading.execution), True
            if reading.counts:
                told = progress.take(reading.counts) or told
            if reading.values:
                source = "file" if place == "file" else "json" if reading.structured else "text"
                told = self._values[source].add(self._worth(reading)) or told
        progress.observe(self._clock())
        return told

    def _worth(self, reading: Reading) -> Mapping[str, Any]:
        """Leave out what may be a setting: a number of an unusual name that was printed only once."""
        if not reading.unusual:
            return reading.values
        new = {name for name in reading.unusual if name not in self._seen_once}
        if len(self._seen_once) < _NAMES_SEEN:
            self._seen_once |= new
        return {name: value for name, value in reading.values.items() if name not in new}

    def _save(self) -> None:
        if self._kept is None or not self._unsaved:
            return
        state = {
            "schema": _SCHEMA,
            "folder": self.folder.name,
            "fileOffset": self._file.offset,
            "logOffset": self._log.offset,
            "values": {source: values.state() for source, values in self._values.items()},
            "progress": {place: each.state() for place, each in self._progress.items()},
            "execution": self._execution,
            "seenOnce": sorted(self._seen_once),
        }
        draft = self._kept.with_name(f".{self._kept.name}.new")
        # It can be made anew from the files, so it is not worth a sync; nor is a full disk worth an error.
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(state, separators=(",", ":")))
            draft.replace(self._kept)
            self._unsaved = False

    def _restore(self) -> None:
        if self._kept is None:
            return
        try:
            state = json.loads(self._kept.read_bytes())
            if state["schema"] != _SCHEMA or state["folder"] != self.folder.name:
                return
            values = {source: Values.of(state["values"][source]) for source in _SOURCES}
            progress = {place: Progress.of(state["progress"][place]) for place in self._progress}
            offsets = int(state["fileOffset"]), int(state["logOffset"])
            seen = {str(name) for name in state["seenOnce"]}
            execution = state.get("execution")
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.info("%s is made anew: %s", self._kept, error)
            return
        self._values, self._progress, self._seen_once = values, progress, seen
        self._execution = execution
        self._file.offset, self._log.offset = offsets


def _of_cells(execution: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the progress of a notebook that tells no other: how many of its cells have run."""
    if execution is None:
        return None
    over = execution["cell"] if execution["done"] else execution["cell"] - 1
    fraction = round(over / execution["cells"], 4)
    return {
        "done": execution["cell"],
        "total": execution["cells"],
        "unit": "cell",
        "fraction": fraction,
        "etaSeconds": None,
    }


def _of_file(lines: Iterable[bytes]) -> Iterable[Reading]:
    return (found for found in map(read_object, lines) if found is not None)
