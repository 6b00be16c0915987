"""This host's copy of a task's log, and how far of the pod's log it reaches.

The copy is what offsets address, so it only grows. The cursor is written beside it now and then: after a
crash the bytes that it does not know of come once more from the cluster, and are passed over.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from paijupyter.backends.base import Usage
from paijupyter.backends.jsonfiles import read_json, write_json
from paijupyter.backends.kubernetes.facts import seconds
from paijupyter.backends.kubernetes.reported import Reported
from paijupyter.backends.kubernetes.sieve import Sieve
from paijupyter.backends.kubernetes.stamps import Cursor

BUILT = "built"
"""In place of a container: the copy has the log of the build of the task's image, and its own follows."""
_INDEX_MS = 250  # between two entries of the time index, as the boot process writes it on other backends
_SAVE_BYTES = 4 * 1024 * 1024
_SAVE_SECONDS = 2.0


class TaskLog:
    """``log``, ``log.index`` and ``log.cursor`` of one attempt of one task.

    Args:
        folder: of the attempt; made when there is something to write.

    Attributes:
        cursor: how far of the pod's log was read.
        container: the container that ``cursor`` is about, "" before the first.
        complete: whether nothing more will come.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = read_json(folder / "log.cursor") or {}
        self.cursor = Cursor.from_json(found)
        self.container = str(found.get("container") or "")
        self.complete = bool(found.get("complete"))
        self._known = int(found.get("size") or 0)  # bytes that the cursor has taken; the file may have more
        self._size = _size(folder / "log")
        self._saved = (time.monotonic(), self._known)
        self._indexed = 0
        self._log: int | None = None
        self._index: int | None = None
        self._sieve = Sieve(str(found.get("held") or "").encode("latin-1", "replace"))
        self._reported = Reported(folder, int(found.get("metrics") or 0))

    @property
    def usage(self) -> Usage | None:
        """What the task said a moment ago that it uses; None if it did not."""
        return self._reported.usage

    def append(self, data: bytes, stamp: str) -> None:
        """Append bytes of the task.

        Args:
            data: what the cursor has just moved over.
            stamp: time of the first line that begins in them, "" if none does.
        """
        data, reports = self._sieve.feed(data)
        self._append(data, stamp)
        for report in reports:
            self._reported.take(report)
        moment, size = self._saved
        if self._known - size > _SAVE_BYTES or time.monotonic() - moment > _SAVE_SECONDS:
            self.save()

    def note(self, text: str) -> None:
        """Append a line of our own, marked as ours."""
        self._append(self._sieve.finish(), "")
        if self._known < self._size:
            return  # it was said before the crash
        newline = b"\n" if self.cursor.partial > 0 else b""
        line = newline + f"[paijupyter] {text}\n".encode("utf-8", "replace")
        self._known += len(line)
        self._write(line, "")
        self.save()

    def begin_container(self, container: str) -> None:
        """Go on with the log of another container of the same pod."""
        self._append(self._sieve.finish(), "")
        self._reported.begin_container()
        self.container, self.cursor = container, Cursor()
        self.save()

    def finish(self) -> None:
        """Note that nothing more will come, and let go of the files."""
        self._append(self._sieve.finish(), "")
        self.complete = True
        self.save()
        self.close()

    def save(self) -> None:
        """Write down how far the copy reaches."""
        self.folder.mkdir(parents=True, exist_ok=True)
        facts = {**self.cursor.to_json(), "container": self.container, "size": self._known}
        facts.update(held=self._sieve.held.decode("latin-1"), metrics=self._reported.size)
        write_json(self.folder / "log.cursor", {**facts, "complete": self.complete})
        self._saved = (time.monotonic(), self._known)

    def close(self) -> None:
        """Let go of the files."""
        for descriptor in (self._log, self._index):
            if descriptor is not None:
                os.close(descriptor)
        self._log = self._index = None

    def _append(self, data: bytes, stamp: str) -> None:
        known = self._known
        self._known += len(data)
        if self._known > self._size:
            self._write(data[max(0, self._size - known) :], stamp)

    def _write(self, data: bytes, stamp: str) -> None:
        if not data:
            return
        if self._log is None or self._index is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._log = os.open(self.folder / "log", flags, 0o600)
            self._index = os.open(self.folder / "log.index", flags, 0o600)
        start = self._size
        view = memoryview(data)
        while view:
            written = os.write(self._log, view)
            self._size += written
            view = view[written:]
        at = int((seconds(stamp) or 0.0) * 1000)
        if at - self._indexed >= _INDEX_MS:
            os.write(self._index, b"%d %d\n" % (start, at))
            self._indexed = at


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
