"""Takes the reports of a task out of its log, as they come in pieces. Pure.

What they are, and why they are there, is said in :mod:`paijupyter.runtime.reports`.
"""

from __future__ import annotations

from dataclasses import dataclass

from paijupyter.backends.kubernetes.layout import REPORT

_LONGEST = 1 << 20  # bytes; what goes on for longer is no report of ours


@dataclass(frozen=True, slots=True)
class Report:
    """One report: its kind (``metrics``, ``usage``, …) and its text."""

    kind: str
    text: str


class Sieve:
    """Parts one log.

    Args:
        held: what an earlier sieve of the same log has held back.

    Attributes:
        held: bytes that may belong to a report whose end has not come.
    """

    def __init__(self, held: bytes = b"") -> None:
        self.held = held

    def feed(self, data: bytes) -> tuple[bytes, list[Report]]:
        """Take the next bytes; return the task's own among them, and the reports that are complete."""
        if not self.held and REPORT[0] not in data:
            return data, []
        data, self.held = self.held + data, b""
        own: list[bytes] = []
        reports = []
        position = 0
        while (start := data.find(REPORT, position)) >= 0:
            end = data.find(b"\n", start)
            if end < 0:
                break
            own.append(data[position:start])
            reports.append(_read(data[start + len(REPORT) : end]))
            position = end + 1
        rest = data[position:]
        start = rest.find(REPORT) if REPORT in rest else len(rest) - _begun(rest)
        if len(rest) - start > _LONGEST:
            start = len(rest)
        own.append(rest[:start])
        self.held = rest[start:]
        return b"".join(own), reports

    def finish(self) -> bytes:
        """Return what is held back and is no report; nothing more comes."""
        held, self.held = self.held, b""
        return b"" if held.startswith(REPORT) else held


def _begun(data: bytes) -> int:
    """Return how many bytes at the end may be the begin of a mark."""
    for size in range(min(len(REPORT) - 1, len(data)), 0, -1):
        if data.endswith(REPORT[:size]):
            return size
    return 0


def _read(record: bytes) -> Report:
    kind, _, text = record.decode("utf-8", "replace").partition(" ")
    return Report(kind, text)
