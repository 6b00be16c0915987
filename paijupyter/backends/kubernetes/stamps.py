"""A pod's log with time stamps, as it comes in pieces, into the bytes of the task's log; resumable. Pure.

The API has no offsets. It stamps the begin of every line and can begin at a whole second, so after a cut the
lines of the last second come again. The stamp of the last line and the count of lines since its second say
which they are; a line that was cut in two goes on at the byte where it was cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_STAMP = re.compile(rb"(?m)^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) ")
_LONGEST_STAMP = 40
# What a kubelet that follows a log breaks off with, without a line feed before it.
# https://github.com/kubernetes/kubernetes/blob/v1.34.4/staging/src/k8s.io/cri-client/pkg/logs/logs.go
_BREAKS_OFF = re.compile(
    rb"failed to (?:create fsnotify watcher|watch directory|reset seek in log file|(?:read|open) log file)"
    rb"[^\r\n]*\Z"
)
_SECOND = len(b"2026-11-29T23:00:00")


@dataclass
class Cursor:
    """Where in a log of the API its reader is.

    Attributes:
        last: stamp of the line that was begun last, "" before the first.
        lines: how many lines were begun since the second of ``last``, it included.
        partial: bytes of the last line that were taken, if its end was not; -1 if it was.
    """

    last: str = ""
    lines: int = 0
    partial: int = -1

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cursor:
        """Rebuild it; unknown members are ignored."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})

    @property
    def since(self) -> str:
        """The time to ask from (``sinceTime``), "" for all."""
        if not self.last:
            return ""
        zone = re.search(r"(?:Z|[+-]\d\d:\d\d)$", self.last)
        return self.last[:_SECOND] + (zone[0] if zone else "Z")


class Unstamper:
    """Reads one stream of the API.

    Args:
        cursor: where the last stream ended; moved on.
        follows: whether the stream is followed. If it ends within a line with words of the node they are not
            taken; if they were the task's after all, the next stream has them again.

    Attributes:
        first: stamp of the first new line of the latest piece, "" if it began none.
        gap: set if what should have come again did not: the node has thrown away lines in between.
        said: lines without a stamp: the node's own words, not the task's.
    """

    def __init__(self, cursor: Cursor, *, follows: bool = False) -> None:
        self.cursor = cursor
        self._follows = follows
        self.first = ""
        self.gap = False
        self.said: list[bytes] = []
        self._skip = cursor.lines
        self._limit = cursor.last.encode()
        self._skipping = bool(cursor.last)
        self._in_line = False  # whether what comes goes on with a line
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Take a piece of the stream and return the task's bytes in it."""
        self.first = ""
        data, self._rest = self._rest + data, b""
        if self._skipping:
            unseen = self._skip_seen(data)
            if unseen is None:
                return b""
            self._skipping, data = False, unseen
        if self._in_line:
            return self._continue(data)
        return self._take(data)

    def end(self) -> None:
        """Hear that the stream has ended: what was held back of a line are words of the node."""
        if self._in_line and self._rest:
            self.said.append(self._rest)
            self._rest = b""

    def _continue(self, data: bytes) -> bytes:
        """Take bytes that go on with the line that was begun."""
        end = data.find(b"\n") + 1
        if not end:
            data = self._hold_words(data, 0)
            self.cursor.partial += len(data)
            return data
        self._in_line = False
        self.cursor.partial = -1
        return data[:end] + self._take(data[end:])

    def _take(self, data: bytes) -> bytes:
        """Take bytes that begin with the begin of a line."""
        start = data.rfind(b"\n") + 1
        tail = data[start:]
        if tail and not _STAMP.match(tail) and len(tail) < _LONGEST_STAMP:
            self._rest, data, tail = tail, data[:start], b""
        elif _STAMP.match(tail):
            data = self._hold_words(data, start)
        if not data:
            return b""
        lines = data.count(b"\n") + bool(tail)
        content, found = _STAMP.subn(b"", data)
        if found != lines:
            data, content, lines = self._without_words(data)
            if not lines:
                return b""
        self._note(data, lines)
        self._in_line = not data.endswith(b"\n")
        if self._in_line:
            self.cursor.partial = len(content) - (content.rfind(b"\n") + 1)
        else:
            self.cursor.partial = -1
        return content

    def _hold_words(self, data: bytes, start: int) -> bytes:
        """Hold back what may be words of the node in a line that has not ended; return the rest."""
        words = _BREAKS_OFF.search(data, start) if self._follows else None
        if words is None:
            return data
        self._rest = words[0]
        return data[: words.start()]

    def _note(self, data: bytes, lines: int) -> None:
        first = _STAMP.match(data)
        last = _STAMP.match(data, data.rfind(b"\n", 0, len(data) - 1) + 1)
        if first is None or last is None:
            return
        self.first = first[1].decode()
        stamp = last[1].decode()
        second = stamp[:_SECOND]
        if self.cursor.last[:_SECOND] == second:
            self.cursor.lines += lines
        elif data.startswith(second.encode()):
            self.cursor.lines = lines
        else:
            begin = data.find(b"\n" + second.encode()) + 1
            self.cursor.lines = data.count(b"\n", begin) + (not data.endswith(b"\n"))
        self.cursor.last = stamp

    def _without_words(self, data: bytes) -> tuple[bytes, bytes, int]:
        """Take out what has no stamp: words of the node on why it cannot go on."""
        lines = data.splitlines(keepends=True) if b"\r" not in data else _lines(data)
        ours = [line for line in lines if _STAMP.match(line)]
        self.said += [line.strip() for line in lines if not _STAMP.match(line)]
        joined = b"".join(ours)
        return joined, _STAMP.sub(b"", joined), len(ours)

    def _skip_seen(self, data: bytes) -> bytes | None:
        """Drop the lines that an earlier stream has given; None while there may be more of them."""
        cursor, position = self.cursor, 0
        begun = self._skip == cursor.lines
        while self._skip:
            stamp = _STAMP.match(data, position)
            if stamp is None:
                if len(data) - position < _LONGEST_STAMP and b"\n" not in data[position:]:
                    self._rest = data[position:]
                    return None
                self._skip = 0  # the node's own words
                break
            if stamp[1] > self._limit:
                self.gap = begun and position == 0
                self._skip = 0
                break
            if self._skip == 1 and cursor.partial >= 0:
                return self._skip_half(data, position, stamp.end())
            end = data.find(b"\n", position) + 1
            if not end:
                self._rest = data[position:]
                return None
            position, self._skip = end, self._skip - 1
        return data[position:]

    def _skip_half(self, data: bytes, position: int, begin: int) -> bytes | None:
        """Drop the part of the cut line that was taken."""
        taken = begin + self.cursor.partial
        if len(data) < taken:
            self._rest = data[position:]
            return None
        self._skip, self._in_line = 0, True
        return data[taken:]


def _lines(data: bytes) -> list[bytes]:
    """Split at line feeds only."""
    *whole, rest = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])
