"""Search in whole logs, however large: they are read piece by piece, and only the first hits are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PIECE = 1 << 20  # bytes held at a time; of a longer line only the pieces are searched
_SHOWN = 400  # characters of a line that has a hit


@dataclass(slots=True)
class Found:
    """What a search has found.

    Attributes:
        lines: how many lines have the text, of all tasks.
        hits: the first of them, each ``{task, attempt, offset, text}``; ``offset`` is that of its line.
    """

    lines: int = 0
    hits: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return it as an answer."""
        return {"lines": self.lines, "hits": self.hits, "more": self.lines > len(self.hits)}


def pattern_of(text: str) -> re.Pattern[bytes]:
    """Return what finds a text in bytes of UTF-8, whatever its case."""
    letters = []
    for letter in text:
        forms = dict.fromkeys(
            each.encode("utf-8", "surrogatepass") for each in (letter, letter.lower(), letter.upper())
        )
        letters.append(b"(?:" + b"|".join(map(re.escape, forms)) + b")")
    return re.compile(b"".join(letters))


def search(logs: Iterable[tuple[str, Path]], text: str, attempt: int, most: int) -> Found:
    """Search logs for a text; blocking.

    Args:
        logs: key of each task, and its log.
        text: what lines shall contain; not empty.
        attempt: that the logs are of.
        most: how many hits to keep.
    """
    found, pattern = Found(), pattern_of(text)
    for task, path in logs:
        try:
            with path.open("rb") as file:
                _search_one(file, pattern, task, attempt, most, found)
        except OSError:
            continue  # a task that has not begun has no log
    return found


def _search_one(
    file: Any, pattern: re.Pattern[bytes], task: str, attempt: int, most: int, found: Found
) -> None:
    start, rest = 0, b""
    while piece := file.read(PIECE):
        held = rest + piece
        end = held.rfind(b"\n") + 1 or (len(held) if len(held) >= PIECE else 0)
        _search_lines(held[:end], start, pattern, task, attempt, most, found)
        start, rest = start + end, held[end:]
    _search_lines(rest, start, pattern, task, attempt, most, found)


def _search_lines(
    lines: bytes, start: int, pattern: re.Pattern[bytes], task: str, attempt: int, most: int, found: Found
) -> None:
    at = 0
    while hit := pattern.search(lines, at):
        first = lines.rfind(b"\n", 0, hit.start()) + 1
        last = lines.find(b"\n", hit.start())
        last = len(lines) if last < 0 else last
        found.lines += 1
        if len(found.hits) < most:
            text = lines[first:last].decode("utf-8", "replace").rpartition("\r")[2][:_SHOWN]
            found.hits.append({"task": task, "attempt": attempt, "offset": start + first, "text": text})
        at = last + 1
