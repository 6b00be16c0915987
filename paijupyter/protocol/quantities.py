"""Amounts as people write them: memory (``8Gi``, ``500M``) and durations (``2h30m``).

The protocol's unit of memory, MB, is a mebibyte: both OpenPAI and Kubernetes read it so.
"""

from __future__ import annotations

import re

from paijupyter.errors import UsageProblem

_MEBIBYTE = 1024**2
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_MEMORY = re.compile(
    r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?:(?P<power>[kmgtpeKMGTPE])(?P<binary>i)?[bB]?)?", re.ASCII
)
_LARGEST_MB = 2**40

_SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(w|d|h|m|s)[a-z]*\s*", re.IGNORECASE | re.ASCII)
_WORDS = re.compile(
    r"(?:\d+(?:\.\d+)?\s*(?:w|d|h|m|s|weeks?|days?|hours?|hrs?|hr|minutes?|mins?|seconds?|secs?)\s*)+",
    re.IGNORECASE | re.ASCII,
)
_LONGEST = 10 * 366 * 86400


def parse_memory(text: str) -> int:
    """Return an amount of memory in MB (mebibytes), rounded up.

    Args:
        text: a number and a suffix of ``E P T G M K`` (powers of 1000; ``k`` too) or ``Ei … Ki`` (powers
            of 1024), each with or without ``B``; a bare number is in MB.

    Raises:
        UsageProblem: if it is no such amount, or is zero.
    """
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise UsageProblem(
            f"Memory `{_short(text)}` is not an amount of memory.", "Write it like 8Gi, 500M or 8192 (MB)."
        )
    number, scale = _exact(match["number"])
    if match["power"]:
        base = 1024 if match["binary"] else 1000
        number, scale = number * base ** _POWERS[match["power"].lower()], scale * _MEBIBYTE
    amount = -(-number // scale)
    if not 1 <= amount <= _LARGEST_MB:
        raise UsageProblem(f"Memory `{_short(text)}` must be at least 1 MB and less than an exbibyte.")
    return amount


def format_memory(megabytes: float) -> str:
    """Return an amount of memory as screens show it: ``512 MiB``, ``8 GiB``, ``1.5 TiB``."""
    value, unit = float(megabytes), "MiB"
    for larger in ("GiB", "TiB", "PiB", "EiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"


def parse_duration(text: str) -> int:
    """Return a duration in seconds, rounded up.

    Args:
        text: numbers with ``w d h m s`` (``2h30m``, ``1.5 h``), or a bare number of seconds.

    Raises:
        UsageProblem: if it is no duration, or is zero.
    """
    cleaned = text.strip()
    if re.fullmatch(r"\d+(?:\.\d+)?", cleaned, re.ASCII):
        pieces = [(cleaned, "s")]
    elif _WORDS.fullmatch(cleaned):
        pieces = _PIECE.findall(cleaned)
    else:
        raise UsageProblem(
            f"Duration `{_short(text)}` is not a duration.", "Write it like 2h30m, 45s or 90 (seconds)."
        )
    # In millionths of a second: whole numbers, so that 0.1 h is 360 s and not a little more.
    total = 0
    for digits, unit in pieces:
        number, scale = _exact(digits)
        total += number * _SECONDS[unit.lower()] * 10**6 // scale
    seconds = -(-total // 10**6)
    if not 0 < seconds <= _LONGEST:
        raise UsageProblem(f"Duration `{_short(text)}` must be more than 0 seconds and at most 10 years.")
    return seconds


def format_duration(seconds: float) -> str:
    """Return a duration as screens show it: ``41 s``, ``3 min 12 s``, ``2 h 30 min``, ``3 d 4 h``."""
    left = max(0, round(seconds))
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def _exact(text: str) -> tuple[int, int]:
    """A decimal number as numerator and denominator."""
    whole, _, rest = text.partition(".")
    # More digits than these make no difference to an amount, and very many are slow to convert.
    rest = rest[:12]
    return int((whole[:30] or "0") + rest), 10 ** len(rest)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
