"""Named numbers over time, in bounded memory: the last value of each, and a short series of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

POINTS = 200
NAMES = 64


class Series:
    """At most ``POINTS`` values, evenly spread over all that were added."""

    def __init__(self) -> None:
        self.values: list[float | None] = []
        self._stride = 1
        self._count = 0

    def add(self, value: float | None) -> None:
        """Add a value; a full series drops every second one and takes only every second one from then on."""
        if self._count % self._stride == 0:
            if len(self.values) == POINTS:
                del self.values[1::2]
                self._stride *= 2
            if self._count % self._stride == 0:
                self.values.append(value)
        self._count += 1

    def state(self) -> list[Any]:
        """Return what :meth:`of` needs."""
        return [self._stride, self._count, self.values]

    @classmethod
    def of(cls, state: Any) -> Series:
        """Return the series of a state.

        Raises:
            ValueError: if it is none.
        """
        found = cls()
        stride, count, values = state
        found._stride, found._count = max(int(stride), 1), max(int(count), 0)
        found.values = [None if each is None else float(each) for each in list(values)[:POINTS]]
        return found


class Values:
    """What one source has told: at most ``NAMES`` names, further ones are passed over."""

    def __init__(self) -> None:
        self.last: dict[str, float | str] = {}
        self.series: dict[str, Series] = {}

    def add(self, values: Mapping[str, Any]) -> bool:
        """Take the numbers among some values; say whether there was one."""
        found = False
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            if name not in self.series:
                if len(self.series) >= NAMES:
                    continue
                self.series[name] = Series()
            number = _float(value)
            # JSON has neither NaN nor infinity: words in `last`, null in a series.
            self.last[name] = value if math.isfinite(number) else _word(number)
            self.series[name].add(number if math.isfinite(number) else None)
            found = True
        return found

    def state(self) -> dict[str, Any]:
        """Return what :meth:`of` needs."""
        return {"last": self.last, "series": {name: each.state() for name, each in self.series.items()}}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Values:
        """Return the values of a state.

        Raises:
            ValueError: if it is none.
        """
        found = cls()
        found.series = {str(name): Series.of(each) for name, each in state["series"].items()}
        found.last = {name: state["last"][name] for name in found.series}
        return found


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _word(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
