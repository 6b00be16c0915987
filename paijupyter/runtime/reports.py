"""What a task tells of itself beside its output: its metrics, what it uses, what is installed.

A backend that cannot look into our folders finds it in the log. A report is a record: it begins with
:data:`MARK`, wherever the task's output stands, and ends with the next line feed. Without the records the log
is what the task has printed, byte for byte; see :mod:`paijupyter.backends.kubernetes.sieve`.
"""

import json
import os
import time

from . import outgoing, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional

    from .gpus import Gpus
    from .stdout import StandardOutput

MARK = b"\x1epaijupyter "
METRICS, USAGE, ENVIRONMENT, CHECKPOINTS = "metrics", "usage", "environment", "checkpoints"
METRICS_EVERY = 1.0  # seconds between two looks at the file of metrics
WHOLE_BYTES = 1 << 20  # of metrics that are told whole: a node keeps only the newest 10 MiB of a log
THINNED_EVERY = 10.0  # seconds between two lines of metrics beyond that
USAGE_FIRST = 3.0
USAGE_EVERY = 15.0
LONGEST = 1 << 16  # bytes of a line of metrics
_BACKLOG = 16 << 20  # bytes; of more that came at once only the end is looked at


class Reports:
    """Reports of one task.

    Args:
        folder: of the task, with ``metrics.jsonl``.
        log: takes them.
        clean: hides secrets in a text.
        is_first: whether the task is the first of its role: the others tell only what they use.
        kept: the folder of the job's checkpoints, if they outlive the tasks and this one is to tell of them.
        gpus: those of the task, if it has asked for any.
    """

    def __init__(
        self,
        folder: str,
        log: "StandardOutput",
        clean: "Callable[[str], str]",
        is_first: bool,
        kept: "Optional[str]" = None,
        gpus: "Optional[Gpus]" = None,
    ) -> None:
        self._gpus = gpus
        self._kept = kept
        self._kept_told = (0, 0)
        self._path = os.path.join(folder, "metrics.jsonl") if is_first else ""
        self._log = log
        self._clean = clean
        now = time.monotonic()
        self._metrics_at = now + METRICS_EVERY if is_first else float("inf")
        self._usage_at = now + USAGE_FIRST
        self._offset = 0
        self._told = 0
        self._rest = b""
        self._used = (now, tree.processor_seconds())

    def environment(self, path: str) -> None:
        """Tell what is installed, from the file that lists it."""
        try:
            with open(path, "rb") as stream:
                found: "Dict[str, Any]" = json.loads(stream.read().decode("utf-8"))
        except (OSError, ValueError):
            return
        found.pop("places", None)
        self._say(ENVIRONMENT, json.dumps(found, separators=(",", ":")))

    def left(self) -> float:
        """Return the seconds until :meth:`beat` has something to do."""
        return max(min(self._metrics_at, self._usage_at) - time.monotonic(), 0.0)

    def beat(self) -> None:
        """Tell what is due."""
        now = time.monotonic()
        if now >= self._metrics_at:
            self._tell_metrics()
            thinned = self._told >= WHOLE_BYTES
            self._metrics_at = now + (THINNED_EVERY if thinned else METRICS_EVERY)
        if now >= self._usage_at:
            self._tell_usage(now)
            self._tell_checkpoints()
            self._usage_at = now + USAGE_EVERY

    def finish(self) -> None:
        """Tell what is left to tell; the command has ended."""
        if self._path:
            self._tell_metrics(b"\n")
        self._tell_checkpoints()

    def _tell_metrics(self, end: bytes = b"") -> None:
        """Tell the lines that were added; beyond what is told whole, the last one of them."""
        try:
            with open(self._path, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size < self._offset:
                    self._offset, self._rest = 0, b""  # written anew
                if size - self._offset > _BACKLOG:
                    self._offset, self._rest = size - LONGEST, b""
                stream.seek(self._offset)
                data = stream.read()
        except OSError:
            return
        self._offset += len(data)
        *lines, self._rest = (self._rest + data + (end if data or self._rest else b"")).split(b"\n")
        self._rest = self._rest[: LONGEST + 1]
        lines = [line for line in lines if line.strip() and len(line) <= LONGEST]
        room = WHOLE_BYTES - self._told
        whole = []
        for line in lines:
            room -= len(line)
            if room < 0:
                break
            whole.append(line)
        thinned = lines[-1:] if len(whole) < len(lines) else []
        for line in whole + thinned:
            self._told += len(line)
            self._say(METRICS, line.decode("utf-8", "replace"))
        if thinned:
            self._told = max(self._told, WHOLE_BYTES)

    def _tell_usage(self, now: float) -> None:
        before, seconds = self._used
        used = tree.processor_seconds()
        self._used = (now, used)
        passed = now - before
        # Less than before: a process has ended whose parent did not wait for it.
        cpu = max(used - seconds, 0.0) / passed if passed > 0 else 0.0
        megabytes = tree.resident() / 1048576.0
        told: "Dict[str, Any]" = {"cpu": round(cpu, 3), "memoryMB": round(megabytes, 1)}
        gpus = self._gpus.look() if self._gpus else []
        if gpus:
            told["gpus"] = gpus
        self._say(USAGE, json.dumps(told))

    def _tell_checkpoints(self) -> None:
        """Tell how many checkpoints there are, if that has changed: nobody else can look at them."""
        if not self._kept:
            return
        count, size = outgoing.waiting(self._kept)
        if (count, size) != self._kept_told:
            self._kept_told = (count, size)
            self._say(CHECKPOINTS, json.dumps({"files": count, "bytes": size}))

    def _say(self, kind: str, text: str) -> None:
        line = " ".join((kind, self._clean(text))).replace("\n", " ")
        self._log.report(MARK + line.encode("utf-8", "replace") + b"\n")


def of_task(spec: "Dict[str, Any]", log: "Any", clean: "Callable[[str], str]") -> "Optional[Reports]":
    """Return the reports of a task whose backend asks for them, else None."""
    if not spec.get("reports"):
        return None
    is_first = spec["index"] == 0 and spec["role"] == spec["roles"][0]["name"]
    kept = spec["checkpoints"] if spec.get("kept") and is_first else None
    # Without having asked, an image may still show the GPUs of its whole node: others' tasks use them.
    asked = [each.get("resources", {}).get("gpu") for each in spec["roles"] if each["name"] == spec["role"]]
    gpus = None
    if any(asked):
        from .gpus import Gpus

        gpus = Gpus()
    return Reports(spec["folder"], log, clean, spec["index"] == 0, kept, gpus)
