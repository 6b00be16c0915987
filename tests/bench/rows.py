"""One row of the bench table, and how the table is written."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SIZE = float(os.environ.get("PAIJUPYTER_BENCH_SIZE") or 1)
"""Share of the full sizes, to see that a bench runs: 0.05. Figures are those of 1."""


def sized(full: int, least: int = 1) -> int:
    """Return how much of something a bench takes."""
    return max(least, round(full * SIZE))


@dataclass(frozen=True)
class Row:
    """A figure of ours beside the figure of what a user would pick instead.

    Attributes:
        what: what was measured.
        ours: our median, in ``unit``.
        peer: the other's median, in ``unit``.
        peer_name: what the other is.
        unit: ``ms``, ``MB`` or a word.
        reach: what is to be reached, in words.
        reached: whether it was.
    """

    what: str
    ours: float
    peer: float
    peer_name: str
    unit: str
    reach: str
    reached: bool

    @property
    def ratio(self) -> float:
        """Ours divided by the other's."""
        return self.ours / self.peer if self.peer else float("nan")


def interleaved(first: Callable[[], float], second: Callable[[], float], runs: int) -> tuple[float, float]:
    """Return the medians of two measurements taken in turn, so that drift of the machine hits both."""
    pairs = [(first(), second()) for _ in range(runs)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| what | ours | beside it | ratio | reach | reached |", "|---|---:|---:|---:|---|---|"]
    for row in rows:
        reached = "yes" if row.reached else "**no**"
        lines.append(
            f"| {row.what} | {row.ours:,.0f} {row.unit} | {_beside(row)} "
            f"| {_said(row.ratio)} | {row.reach} | {reached} |"
        )
    return "\n".join(lines)


def _beside(row: Row) -> str:
    return "–" if math.isnan(row.peer) else f"{row.peer:,.0f} {row.unit} ({row.peer_name})"


def _said(ratio: float) -> str:
    return "–" if math.isnan(ratio) else f"{ratio:.2f}"
