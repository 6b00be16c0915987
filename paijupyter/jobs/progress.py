"""How far a job is, and how long it may still take, from the counts that its lines tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from paijupyter.jobs.readings import Count

_SOON = 1.0  # seconds that must have passed before a speed is believed


class Progress:
    """Follows counts. An outer one (an epoch) has priority; an inner one (a step) says where within it.

    The speed is that from where it was first seen to now, so that pauses between epochs count as they should.
    """

    def __init__(self) -> None:
        self._outer: Count | None = None
        self._inner: Count | None = None
        self._outer_is_told_at_its_end = False
        self._is_nested = False
        self._start: tuple[float, float] | None = None
        self._reached = 0.0
        self._left: float | None = None
        self._seen_at = 0.0

    def take(self, counts: Iterable[Count]) -> bool:
        """Take what one line tells, the outer count first; say whether something has moved."""
        before = (self._outer, self._inner)
        for count in counts:
            if not count.is_outer:
                self._inner = count
                continue
            if self._outer is None:
                # Whoever tells the epoch after its steps tells it at its end.
                self._outer_is_told_at_its_end = self._inner is not None
            if self._outer is None or (count.done, count.unit) != (self._outer.done, self._outer.unit):
                self._inner = None
            self._outer = count
        self._is_nested = self._is_nested or (self._outer is not None and self._inner is not None)
        return (self._outer, self._inner) != before

    def observe(self, at: float) -> None:
        """Note that what was taken is true at a time (seconds); once for all lines read together."""
        main = self._outer or self._inner
        if main is None:
            return
        position = self._position()
        if self._start is None or position < self._reached:
            self._start = (at, position)  # something began anew
        self._reached = position
        since, first = self._start
        self._seen_at, self._left = at, None if self._outer else main.left
        if position > first and at - since >= _SOON:
            self._left = (main.total - position) * (at - since) / (position - first)

    def to_json(self, at: float) -> dict[str, Any] | None:
        """Return ``{done, total, unit, fraction, etaSeconds}`` as it is at a time, or None."""
        main = self._outer or self._inner
        if main is None:
            return None
        left = self._left
        if left is not None:
            left = max(left - max(at - self._seen_at, 0.0), 0.0)
        return {
            "done": main.done,
            "total": main.total,
            "unit": main.unit,
            "fraction": round(self._position() / main.total, 4),
            "etaSeconds": None if left is None else round(left),
        }

    def state(self) -> dict[str, Any]:
        """Return what :meth:`of` needs."""
        return {
            "outer": _listed(self._outer),
            "inner": _listed(self._inner),
            "atEnd": self._outer_is_told_at_its_end,
            "nested": self._is_nested,
            "start": self._start,
            "reached": self._reached,
            "left": self._left,
            "seenAt": self._seen_at,
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Progress:
        """Return the progress of a state.

        Raises:
            ValueError: if it is none.
        """
        found = cls()
        found._outer, found._inner = _counted(state["outer"]), _counted(state["inner"])
        found._outer_is_told_at_its_end, found._is_nested = bool(state["atEnd"]), bool(state["nested"])
        found._start = (float(state["start"][0]), float(state["start"][1])) if state["start"] else None
        found._left = None if state["left"] is None else float(state["left"])
        found._reached = float(state["reached"])
        found._seen_at = float(state["seenAt"])
        return found

    def _position(self) -> float:
        if self._outer is None:
            return self._inner.done if self._inner else 0.0
        over = self._outer.done
        if self._is_nested and not self._outer_is_told_at_its_end:
            over = max(over - 1, 0)  # it has only begun
        inside = self._inner.done / self._inner.total if self._inner else 0.0
        return min(over + inside, self._outer.total)


def _listed(count: Count | None) -> list[Any] | None:
    return None if count is None else [count.unit, count.done, count.total, count.left]


def _counted(state: Any) -> Count | None:
    if state is None:
        return None
    unit, done, total, left = state
    if total <= 0 or done < 0:
        raise ValueError("no count")
    return Count(str(unit), done, total, left)
