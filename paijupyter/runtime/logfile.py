"""The log of a task: one append-only file, a time index beside it, a cap."""

import errno
import os
import time

from .room import Room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Tuple

INDEX_PERIOD = 0.25  # seconds between two entries of the time index
TAIL = 64 * 1024  # bytes kept in memory for the last lines
LAST_LINES = 20
LONGEST_LINE = 2000  # characters of one of the last lines
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Log:
    """``log`` and ``log.index``: bytes are appended, so an offset addresses the same byte for ever.

    Args:
        folder: the task's folder.
        limit: bytes of output to keep, 0 for all; past it one marker line is written and the rest dropped.
        floor: bytes of room on the disk below which it pauses, with a marker line where it stops and one
            where it goes on.
    """

    def __init__(self, folder: str, limit: int = 0, floor: int = 0) -> None:
        self._log, self._index = self._open(folder)
        self.size = os.fstat(self._log).st_size
        self.problem = ""  # why bytes are missing, if any are
        self._limit = limit
        self._full = False
        self._indexed = 0.0
        self._tail = b""
        self._room = Room(folder, floor)
        self._in_line = False  # whether what is written ends within a line

    def _open(self, folder: str) -> "Tuple[int, Optional[int]]":
        """Return the descriptors of the log and of its index, if it has one."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        log = os.open(os.path.join(folder, "log"), flags, 0o600)
        return log, os.open(os.path.join(folder, "log.index"), flags, 0o600)

    def append(self, data: bytes) -> None:
        """Append output of the task: all of it in one write, or what the cap leaves of it."""
        if not data:
            return
        self._tail = (self._tail + data)[-TAIL:]
        if self._full:
            return
        if self._room.is_due(len(data)):
            self._pause_or_go_on()
        if self._room.is_short:
            self._room.left_out += len(data)
            return
        if self._limit and self.size + len(data) > self._limit:
            self._full = True
            kept = data[: max(0, self._limit - self.size)]
            marker = _own_line("The log reached its limit of %d bytes; the rest is left out." % self._limit)
            data = kept + (b"" if kept.endswith(b"\n") else b"\n") + marker
        self._write(data)

    def note(self, text: str) -> None:
        """Append lines of our own, each marked as ours, on lines of their own; the cap does not hold them."""
        lines = b"".join(_own_line(line) for line in text.splitlines())
        if self._tail and not self._tail.endswith(b"\n") and not self._full:
            lines = b"\n" + lines
        self._tail = (self._tail + lines)[-TAIL:]
        self._write(lines)

    def last_lines(self) -> "List[str]":
        """Return the last lines of output, as a terminal would show them after carriage returns."""
        lines = self._tail.decode("utf-8", "replace").split("\n")
        if lines and not lines[-1]:
            lines.pop()
        shown = [line.rstrip("\r").rsplit("\r", 1)[-1] for line in lines]
        return [line[:LONGEST_LINE] for line in shown[-LAST_LINES:]]

    def close(self) -> None:
        """Bring everything to the disk."""
        for descriptor in filter(None, (self._log, self._index)):
            try:
                os.fsync(descriptor)
            except OSError as error:
                self.problem = self.problem or error.strerror or str(error)
            os.close(descriptor)

    def _pause_or_go_on(self) -> None:
        room = self._room
        short = room.has_come_short()
        if short and not room.is_short:
            self.problem = room.words
            self._mark("The log pauses: %s." % room.words)
            room.is_short = True
        elif room.is_short and not short:
            size = self.size
            self._mark("The log goes on; %d bytes are left out here." % room.left_out)
            if self.size > size:
                room.is_short, room.left_out = False, 0

    def _mark(self, text: str) -> None:
        """Write a line of our own below what is written, which is not what was said last."""
        self._write((b"\n" if self._in_line else b"") + _own_line(text))

    def _write(self, data: bytes) -> None:
        now = time.time()
        start = self.size
        try:
            while data:
                written = os.write(self._log, data)
                self.size += written
                self._in_line = data[written - 1 : written] != b"\n"
                data = data[written:]
            if self._index is not None and now - self._indexed >= INDEX_PERIOD:
                os.write(self._index, b"%d %d\n" % (start, int(now * 1000)))
                self._indexed = now
        except OSError as error:  # a full disk must not end the user's training
            self.problem = error.strerror or str(error)
            if error.errno in _FULL:
                self._room.run_out()
                self._room.left_out += len(data)


def _own_line(text: str) -> bytes:
    return ("[paijupyter] " + text + "\n").encode("utf-8", "replace")
