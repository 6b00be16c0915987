"""The merged log: frames of all tasks of a job in the order of their time, with a cursor to go on from.

A frame is a run of whole lines of one task. Which frames come is decided by the logs and the cursor alone, so
reading in several goes gives the same frames as reading in one.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import heapq
import json
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.jobs.time_index import NEVER, TimeIndex

FRAME = 1 << 17
_LINE = 1 << 12
BEFORE = 1 << 15
"""Bytes before a line that are read with it, when somebody goes there."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a reader of a merged log is.

    Attributes:
        attempt: number of the attempt it reads.
        offsets: per task the bytes it has had; tasks that are not in it: none.
    """

    attempt: int
    offsets: Mapping[str, int]

    def __str__(self) -> str:
        data = json.dumps([self.attempt, dict(self.offsets)], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(zlib.compress(data, 1)).decode().rstrip("=")

    @classmethod
    def of(cls, text: str) -> Cursor:
        """Read a cursor.

        Raises:
            UsageProblem: if it was not made here.
        """
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            attempt, offsets = json.loads(zlib.decompress(data))
            if min((attempt, *offsets.values())) < 0:
                raise ValueError("below zero")
            return cls(int(attempt), {str(task): int(offset) for task, offset in offsets.items()})
        except (ValueError, TypeError, AttributeError, binascii.Error, zlib.error) as error:
            raise UsageProblem("Cursor is not one of this log.", "Start without a cursor.") from error


class TaskLog:
    """One task's log and its time index, read piece by piece.

    Args:
        task: the task's name.
        folder: where ``log`` and ``log.index`` lie.
        offset: where to begin.
        end: where to end, or None for the end of the file as it is now.
    """

    def __init__(self, task: str, folder: Path, offset: int = 0, end: int | None = None) -> None:
        self.task = task
        self.offset = offset
        self.path = folder / "log"
        self.end = _size(self.path) if end is None else end
        self.index = TimeIndex.read(folder)

    @property
    def time(self) -> int:
        """Milliseconds since the epoch at which the next byte was written; a log without times comes last."""
        return self.index.at(self.offset)

    def take(self) -> tuple[int, bytes] | None:
        """Return the next frame's offset and bytes and go past it; None at the end.

        It reaches to the end of the piece of the time index, then on to the end of that line; a line that is
        longer than a frame is cut.
        """
        limit = min(self.end - self.offset, FRAME)
        if limit <= 0:
            return None
        start, piece = self.offset, self.index.piece_end(self.offset) - self.offset
        # Pieces are often short and lines too; only a very long line needs all that a frame may hold.
        for size in (min(limit, piece + _LINE), limit):
            content = _read(self.path, start, size)
            cut = _line_end(content, piece)
            if cut:
                break
        if not cut:
            at_end = start + len(content) >= self.end
            cut = len(content if at_end else _whole_characters(content))
        if not cut:
            return None
        self.offset += cut
        return start, content[:cut]


def merge(logs: list[TaskLog]) -> Iterator[tuple[TaskLog, int, bytes]]:
    """Yield frames of several logs in the order of their time, then of the tasks: (log, offset, bytes)."""
    heap = [(log.time, number, log) for number, log in enumerate(logs)]
    heapq.heapify(heap)
    while heap:
        _, number, log = heapq.heappop(heap)
        start, parts, size = log.offset, list[bytes](), 0
        # As long as no other task's turn has come, its pieces are one frame.
        while size < FRAME and (not heap or (log.time, number) < heap[0][:2]):
            piece = log.take()
            if piece is None:
                break
            parts.append(piece[1])
            size += len(piece[1])
        if parts:
            yield log, start, b"".join(parts)
            heapq.heappush(heap, (log.time, number, log))


def frame_json(
    task: str, attempt: int, offset: int, content: bytes, offsets: dict[str, int]
) -> dict[str, Any]:
    """Write a frame as readers get it, and note in ``offsets`` that they have had it."""
    offsets[task] = offset + len(content)
    return {
        "task": task,
        "attempt": attempt,
        "offset": offset,
        "text": content.decode("utf-8", "replace"),
        "cursor": str(Cursor(attempt, offsets)),
    }


def tail_offsets(logs: list[TaskLog], lines: int) -> dict[str, int]:
    """Return where to begin in each log to get the last lines of all of them together."""
    for log in logs:
        log.offset = _tail_offset(log, lines)
    starts = {log.task: log.offset for log in logs}
    frames = [(log, offset, content) for log, offset, content in merge(logs)]
    surplus = sum(_lines(*frame) for frame in frames) - lines
    for log, offset, content in frames:
        if surplus <= 0:
            break
        skipped = min(surplus, _lines(log, offset, content))
        starts[log.task] = offset + _after_lines(content, skipped)
        surplus -= skipped
    return starts


def offsets_at(logs: list[TaskLog], task: str, offset: int) -> dict[str, int]:
    """Return where to begin in each log to get some lines before one of a task, then it and all after it.

    Read from there, lines come in the order in which they would come from the start. What is read before the
    line is little, however long its task was silent while others were not.
    """
    number, chosen = next((number, log) for number, log in enumerate(logs) if log.task == task)
    starts = {task: _some_lines_before(chosen, offset, BEFORE)}
    time = chosen.index.at(offset)
    for other, log in enumerate(logs):
        if log is not chosen:
            # Of what has the same time, the earlier task comes first.
            after = _first_line(log, time + (other < number))
            starts[log.task] = _some_lines_before(log, after, BEFORE // len(logs))
    return starts


def _some_lines_before(log: TaskLog, offset: int, most: int) -> int:
    start = max(0, offset - most)
    if start == 0:
        return 0
    newline = _read(log.path, start, offset - start).find(b"\n")
    return start + newline + 1 if newline >= 0 else offset


def _first_line(log: TaskLog, time: int) -> int:
    """Return the first line of what was written from a time on; that is the end where nothing was."""
    start = log.index.first_since(time) if log.index.times else (0 if time <= NEVER else None)
    if not start:
        return log.end if start is None else 0
    at = start - 1  # a line that goes on here belongs to what was written before
    while content := _read(log.path, at, FRAME):
        newline = content.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(content)
    return log.end


class LineBuffer:
    """Cuts a followed log into frames of whole lines.

    Args:
        offset: offset of the first byte it is given.
    """

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._rest = b""

    def add(self, chunk: bytes) -> list[tuple[int, bytes]]:
        """Take bytes; return the frames that are complete."""
        content = self._rest + chunk if self._rest else chunk
        base, at, frames = self.offset, 0, []
        while at < len(content):
            end = _frame_end(content, at)
            if not end:
                break
            frames.append((base + at, content[at:end]))
            at = end
        self._rest, self.offset = content[at:], base + at
        return frames

    def flush(self) -> list[tuple[int, bytes]]:
        """Return what there is of an unfinished line (a progress bar), without half a character."""
        return self._give(len(_whole_characters(self._rest)))

    def end(self) -> list[tuple[int, bytes]]:
        """Return all that is left."""
        return self._give(len(self._rest))

    @property
    def pending(self) -> bool:
        """Whether there is an unfinished line."""
        return bool(self._rest)

    def _give(self, length: int) -> list[tuple[int, bytes]]:
        content, self._rest = self._rest[:length], self._rest[length:]
        start, self.offset = self.offset, self.offset + length
        return [(start, content)] if content else []


def _frame_end(content: bytes, start: int) -> int:
    """Return where the frame that begins here ends; 0 if more must come for that."""
    limit = min(start + FRAME, len(content))
    end = max(content.rfind(b"\n", start, limit), content.rfind(b"\r", start, limit)) + 1
    if end or limit - start < FRAME:
        return end
    return start + len(_whole_characters(content[start:limit]))


async def in_thread(frames: Iterator[Any]) -> AsyncIterator[Any]:
    """Drive a reading iterator off the loop, several steps at a time."""

    def some() -> list[Any]:
        found, size = [], 0
        for frame in frames:
            found.append(frame)
            size += len(frame[2])
            if size > FRAME:
                break
        return found

    while batch := await asyncio.to_thread(some):
        for frame in batch:
            yield frame


def _line_end(content: bytes, at_least: int) -> int:
    """Offset after the first line end from a place on, or after the last one before it; 0 without any."""
    if at_least >= len(content):
        return content.rfind(b"\n") + 1
    return content.find(b"\n", max(at_least - 1, 0)) + 1


def _whole_characters(content: bytes) -> bytes:
    """Cut before a UTF-8 character that goes on after these bytes."""
    for back in range(1, min(4, len(content)) + 1):
        byte = content[-back]
        if byte & 0xC0 == 0x80:
            continue
        width = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return content[:-back] if width > back else content
    return content


def _tail_offset(log: TaskLog, lines: int) -> int:
    """Search backwards for the beginning of the last lines."""
    position, found = log.end, 0
    while position > 0 and lines > 0:
        start = max(position - FRAME, 0)
        content = _read(log.path, start, position - start)
        if position == log.end and content.endswith(b"\n"):
            found = -1  # the last line's own end
        at = len(content)
        while (at := content.rfind(b"\n", 0, at)) >= 0:
            found += 1
            if found == lines:
                return start + at + 1
        position = start
    return 0 if lines > 0 else log.end


def _lines(log: TaskLog, offset: int, content: bytes) -> int:
    """Count the lines that end in a frame; a last one without an end counts too."""
    unended = offset + len(content) == log.end and not content.endswith(b"\n")
    return content.count(b"\n") + unended


def _after_lines(content: bytes, count: int) -> int:
    at = 0
    for _ in range(count):
        at = content.find(b"\n", at) + 1
        if not at:
            return len(content)
    return at


def _read(path: Path, offset: int, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(limit)
    except OSError:
        return b""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
