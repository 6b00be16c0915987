"""Metrics that a job writes to ``$PAI_METRICS_FILE``: the last values, and a short series of each."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

POINTS = 200
_NAMES = 64
_STEP = 1 << 20
_LINE_LIMIT = 1 << 16


class Metrics:
    """Reads one ``metrics.jsonl`` as it grows. Memory stays flat, however long the file gets.

    Each line is a JSON object; its numbers are metrics, everything else in it is passed over. A series of
    more than 200 values is thinned evenly.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget()

    def read(self, limit: int = _STEP) -> bool:
        """Read up to ``limit`` bytes of what was added; say whether there was anything."""
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._offset:
                    self._forget()  # the job has started its file anew
                file.seek(self._offset)
                chunk = file.read(limit)
        except OSError:
            return False
        self._offset += len(chunk)
        self._take(chunk)
        return bool(chunk)

    def read_all(self) -> None:
        """Read to the end."""
        while self.read():
            pass

    def to_json(self) -> dict[str, Any]:
        """Return ``{last: {name: value}, series: {name: [at most 200 values]}}``, or {} if there are none.

        JSON has no NaN and no infinity: they are ``"NaN"``, ``"Infinity"``, ``"-Infinity"`` in ``last`` and
        null in a series.
        """
        if not self._last:
            return {}
        return {
            "last": dict(self._last),
            "series": {name: list(series.values) for name, series in self._series.items()},
        }

    def _forget(self) -> None:
        self._offset = 0
        self._rest = b""
        self._last: dict[str, float | str] = {}
        self._series: dict[str, _Series] = {}

    def _take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LINE_LIMIT:
            self._rest = b"!"  # not metrics; whatever ends this line is passed over with it
        for line in lines:
            try:
                values = json.loads(line)
            except ValueError:
                continue
            if isinstance(values, dict):
                self._add(values)

    def _add(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            if name not in self._series:
                if len(self._series) >= _NAMES:
                    continue
                self._series[name] = _Series()
            number = _float(value)
            self._last[name] = value if math.isfinite(number) else _word(number)
            self._series[name].add(number if math.isfinite(number) else None)


class _Series:
    """At most ``POINTS`` values, evenly spread over all that were added."""

    def __init__(self) -> None:
        self.values: list[float | None] = []
        self._stride = 1
        self._count = 0

    def add(self, value: float | None) -> None:
        if self._count % self._stride == 0:
            if len(self.values) == POINTS:
                del self.values[1::2]
                self._stride *= 2
            if self._count % self._stride == 0:
                self.values.append(value)
        self._count += 1


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _word(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
