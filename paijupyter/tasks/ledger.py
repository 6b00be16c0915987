"""What is done, on disk."""

import errno
import hashlib
import json
import os
import time

from .wire import TaskQueueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, List, Optional, Set


class Ledger:
    """A file that only grows: a header that tells the blocks, then a line per block that is done.

    Attributes:
        done: the numbers of the blocks that are done.
        by: how many each worker has done.

    Raises:
        TaskQueueError: on entering, if the file cannot be used or is about other blocks.
    """

    def __init__(self, blocks: "List[Any]", path: "Optional[str]") -> None:
        self.done: "Set[int]" = set()
        self.by: "Dict[str, int]" = {}
        self._head = {"queue": 1, "blocks": len(blocks), "sha256": _digest(blocks)}
        self._path = path
        self._stream: "Optional[IO[bytes]]" = None

    def __enter__(self) -> "Ledger":
        if self._path:
            try:
                self._open(self._path)
            except (OSError, ValueError, KeyError, TypeError) as error:
                self.__exit__()
                why = error.strerror if isinstance(error, OSError) and error.strerror else error
                raise TaskQueueError("The file `%s` cannot be used: %s." % (self._path, why)) from None
        return self

    def __exit__(self, *_: "Any") -> None:
        if self._stream:
            self._stream.close()

    def record(self, block: int, worker: str) -> None:
        """Record a block, unless it was done before.

        Raises:
            OSError: it is not on disk.
        """
        if block not in self.done:
            self._append({"done": block, "by": worker, "at": round(time.time(), 3)})
            self._count(block, worker)

    def _open(self, path: str) -> None:
        self._stream = stream = open(path, "a+b", buffering=0)
        _lock(stream)
        stream.seek(0)
        text = stream.read()
        whole = text[: text.rfind(b"\n") + 1]
        stream.truncate(len(whole))  # what a crash cut off was told to nobody
        lines = [json.loads(line.decode("utf-8")) for line in whole.splitlines()]
        if not lines:
            self._append(self._head)
        elif lines[0] != self._head:
            raise ValueError("it is about other blocks; remove it, or name another one (state=)")
        for line in lines[1:]:
            self._count(int(line["done"]), str(line["by"]))

    def _count(self, block: int, worker: str) -> None:
        self.done.add(block)
        self.by[worker] = self.by.get(worker, 0) + 1

    def _append(self, line: "Dict[str, Any]") -> None:
        if self._stream:
            data = json.dumps(line).encode("ascii") + b"\n"
            if self._stream.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._stream.fileno())


def state_file(label: str) -> "Optional[str]":
    """Return where a queue's ledger is kept by default, None outside of a job."""
    folder = os.environ.get("PAI_CHECKPOINT_DIR") or os.environ.get("PAI_OUTPUT_DIR")
    return os.path.join(folder, label + ".queue.jsonl") if folder else None


def _digest(blocks: "List[Any]") -> str:
    try:
        text = json.dumps(blocks, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise TaskQueueError("The blocks must be what JSON can hold: %s." % error) from None
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _lock(stream: "IO[bytes]") -> None:
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError("another process serves from it") from None
    except OSError:
        pass  # a file system without locks
