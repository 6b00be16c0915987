"""When the bytes of a log were written: the time index that lies beside it.

Each of its lines ``<offset> <milliseconds>`` says that the byte at the offset was written then. What lies
between two entries was written between their times; there is a new one a quarter of a second after the last.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEVER = 1 << 62
"""Time of what has none: it sorts after all others."""


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """A time index, read.

    Attributes:
        starts: offsets of its entries, growing.
        times: of each the milliseconds since the epoch.
    """

    starts: list[int]
    times: list[int]

    @classmethod
    def read(cls, folder: Path) -> TimeIndex:
        """Read the index of a task's folder; a torn or unordered entry is left out."""
        starts: list[int] = []
        times: list[int] = []
        try:
            content = (folder / "log.index").read_bytes()
        except OSError:
            return cls(starts, times)
        for line in content.split(b"\n")[:-1]:
            fields = line.split()
            if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
                offset, time = int(fields[0]), int(fields[1])
                if not starts or offset > starts[-1]:
                    starts.append(offset)
                    times.append(time)
        return cls(starts, times)

    def at(self, offset: int) -> int:
        """Return the time of the entry that holds for a byte, or ``NEVER``."""
        place = bisect_right(self.starts, offset) - 1
        return self.times[place] if place >= 0 else (self.times[0] if self.times else NEVER)

    def piece_end(self, offset: int) -> int:
        """Return where the next entry begins, or ``NEVER``."""
        after = bisect_right(self.starts, offset)
        return self.starts[after] if after < len(self.starts) else NEVER

    def first_since(self, time: int) -> int | None:
        """Return the offset of the first entry that is not before a time, or None."""
        place = bisect_left(self.times, time)
        return self.starts[place] if place < len(self.starts) else None


def times_of(places: Iterable[tuple[str, int, Path]], most: int) -> list[dict[str, Any]]:
    """Return what time indexes say from places on; blocking.

    Args:
        places: key of a task, an offset in its log, its folder.
        most: entries of each task.

    Returns:
        Of each place ``{task, offsets, times, until}``: entries from the one that holds there on, and the
        offset up to which they hold; no entries where the log has no times.
    """
    found = []
    for task, offset, folder in places:
        try:
            # Before the index: what comes meanwhile is asked for again.
            size = (folder / "log").stat().st_size
        except OSError:
            size = 0
        index = TimeIndex.read(folder)
        first = max(0, bisect_right(index.starts, offset) - 1)
        starts = index.starts[first : first + most]
        until = index.starts[first + most] if first + most < len(index.starts) else size
        found.append(
            {"task": task, "offsets": starts, "times": index.times[first : first + most], "until": until}
        )
    return found
