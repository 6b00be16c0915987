"""Lines of a file as it grows, each read once."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ENDS = re.compile(rb"[\r\n]+")
_LONGEST = 1 << 16


class Tail:
    """Reads whole lines from an offset. Frames of a progress bar (ended by a carriage return) are lines.

    Args:
        path: the file; it need not be there yet.
        backlog: when more than this is unread, only its last ``backlog`` bytes are; 0 reads everything.

    Attributes:
        restarted: whether the last :meth:`read` found the file shorter than before, and began anew.
    """

    def __init__(self, path: Path, backlog: int = 0) -> None:
        self.path = path
        self.restarted = False
        self._backlog = backlog
        self._read_to = 0
        self._rest = b""

    @property
    def offset(self) -> int:
        """Where the first line begins that was not given out yet."""
        return self._read_to - len(self._rest)

    @offset.setter
    def offset(self, value: int) -> None:
        self._read_to, self._rest = value, b""

    def read(self, limit: int) -> list[bytes] | None:
        """Return the lines that ended within the next ``limit`` bytes; None if there was nothing new."""
        self.restarted = False
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size < self._read_to:
                    self.offset, self.restarted = 0, True
                if self._backlog and size - self._read_to > self._backlog:
                    self._read_to, self._rest = (
                        size - self._backlog,
                        b"!",
                    )  # within some line: no line of ours
                file.seek(self._read_to)
                chunk = file.read(limit)
        except OSError:
            return None
        if not chunk:
            return [] if self.restarted else None
        self._read_to += len(chunk)
        *lines, self._rest = _ENDS.split(self._rest + chunk)
        if len(self._rest) > _LONGEST:
            self._rest = b"!"  # what ends this line is passed over with it
        return lines

    @property
    def rest(self) -> bytes:
        """What has no line end yet."""
        return self._rest

    def flush(self) -> None:
        """Take what has no line end as read."""
        self._rest = b""
