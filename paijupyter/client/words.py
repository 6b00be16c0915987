"""Numbers, times and states in the words that every screen uses (``8 GiB``, ``3 min 12 s``, ``✕ failed``)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

FINAL = frozenset({"succeeded", "failed", "stopped"})
ICONS = {"waiting": "○", "running": "●", "succeeded": "✓", "failed": "✕", "stopped": "■"}
SEVERITIES = {"error": "✕", "warning": "⚠", "hint": "·"}
_REASONS = {
    "submitting": "being submitted",
    "queued": "in the queue",
    "unschedulable": "no machine has room for it",
    "image": "the image is being pulled",
    "building": "the image is being built",
    "starting": "tasks are starting",
    "partial-gang": "some tasks have no room yet",
    "retry-delay": "waits before the next attempt",
    "secret": "a secret has to be given again",
    "data": "data is being fetched",
    "stopping": "being stopped",
    "finishing": "outputs are being collected",
    "user": "the command failed",
    "out-of-memory": "ran out of memory",
    "preempted": "had to make room for another job",
    "deadline": "ran into its time limit",
    "lost": "the profile no longer knows this job",
    "machine-restarted": "the machine was restarted",
}
_PLACE = re.compile(r"\bposition\b|\bat place \d|\bNumber \d+ in ")
_BARS = "▁▂▃▄▅▆▇█"
_BINARY = ("MiB", "GiB", "TiB", "PiB")


def says_place(message: str) -> bool:
    """Say whether a backend's message has the place in its queue already.

    >>> says_place("it waits in queue `team` at place 2"), says_place("it waits")
    (True, False)
    """
    return _PLACE.search(message) is not None


def duration(seconds: float) -> str:
    """Say a time span with at most two units.

    >>> duration(0.42), duration(41), duration(192), duration(7500), duration(200000)
    ('0.4 s', '41 s', '3 min 12 s', '2 h 5 min', '2 d 7 h')
    """
    if 0 < seconds < 9.95:
        return f"{max(seconds, 0.1):.1f} s"
    whole = max(0, int(seconds))
    parts = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((place for place, (count, _) in enumerate(parts) if count), 3)
    said = [f"{count} {unit}" for count, unit in parts[first : first + 2] if count]
    return " ".join(said) or "0 s"


def size(count: int) -> str:
    """Say a number of bytes.

    >>> size(17), size(212_000), size(1_234_567_890)
    ('17 B', '212 kB', '1.2 GB')
    """
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"


def memory(megabytes: float) -> str:
    """Say an amount of memory given in MiB.

    >>> memory(512), memory(8192), memory(1536)
    ('512 MiB', '8 GiB', '1.5 GiB')
    """
    value, place = float(megabytes), 0
    while value >= 1024 and place < len(_BINARY) - 1:
        value, place = value / 1024, place + 1
    return f"{value:g} {_BINARY[place]}" if value == round(value, 2) else f"{value:.1f} {_BINARY[place]}"


def count(number: int, thing: str) -> str:
    """Say a number of things.

    >>> count(1, "task"), count(1200, "file"), count(2, "process"), count(2, "NetworkPolicy")
    ('1 task', '1200 files', '2 processes', '2 NetworkPolicies')
    """
    if number == 1:
        return f"{number} {thing}"
    if thing.endswith("y") and thing[-2:-1] not in "aeiou":
        return f"{number} {thing[:-1]}ies"
    return f"{number} {thing}{'es' if thing.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def moment(text: str | None) -> datetime | None:
    """Read a time of the API (ISO 8601, UTC)."""
    if not text:
        return None
    try:
        # Python 3.10 reads no trailing Z.
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def clock(text: str | None) -> str:
    """Say a time of the API to the minute, with its zone, so that a saved notebook stays true."""
    found = moment(text)
    return found.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC") if found else ""


def elapsed(start: str | None, end: str | None, now: datetime | None = None) -> str:
    """Say how long it is from start to end, or to now; "" without a start."""
    began = moment(start)
    if began is None:
        return ""
    ended = moment(end) or now or datetime.now(timezone.utc)
    return duration((ended - began).total_seconds())


def reason(view: Mapping[str, Any]) -> str:
    """Say why a job is in its state: its message, else the reason in words."""
    code = str(view.get("reason") or "")
    return str(view.get("message") or "") or _REASONS.get(code, code.replace("-", " "))


def number(value: object) -> str:
    """Say a metric or a parameter.

    >>> number(0.14334), number(20), number("adam"), number(True), number(1e-05)
    ('0.1433', '20', 'adam', 'true', '1e-05')
    """
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def spark(values: Sequence[object], width: int = 16) -> str:
    """Draw a series as a line of small bars; "" where there is no course to see.

    >>> spark([0, 1, 2, 3]), spark([1]), spark([2, 2])
    ('▁▃▆█', '', '▁▁')
    """
    finite = [float(value) for value in values if isinstance(value, (int, float)) and math.isfinite(value)]
    if len(finite) < 2:
        return ""
    if len(finite) > width:
        finite = [finite[round(place * (len(finite) - 1) / (width - 1))] for place in range(width)]
    # Halves, for the span of the largest floats is none itself.
    low, high = min(finite) / 2, max(finite) / 2
    span = (high - low) or 1.0
    return "".join(_BARS[int((value / 2 - low) / span * (len(_BARS) - 1) + 0.5)] for value in finite)
