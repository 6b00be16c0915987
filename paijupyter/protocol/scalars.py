"""What an unquoted YAML scalar means: the rules of js-yaml 3, which the original server reads with.

They differ from PyYAML's: ``yes`` is a text, ``1e-5`` a number, ``1:30`` ninety and ``08`` a text.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Any

from paijupyter.protocol.javascript import Timestamp, number

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_BINARY = re.compile(r"[-+]?0b[01_]*[01]", re.ASCII)
_HEXADECIMAL = re.compile(r"[-+]?0x[0-9a-fA-F_]*[0-9a-fA-F]", re.ASCII)
_OCTAL = re.compile(r"[-+]?0[0-7_]*[0-7]|[-+]?0", re.ASCII)
_DECIMAL = re.compile(r"[-+]?[1-9](?:[0-9_]*[0-9])?", re.ASCII)
_SEXAGESIMAL = re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_SEXAGESIMAL_FLOAT = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*", re.ASCII)
_INFINITY = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?"
    r"(?:[ \t]*(?:Z|([-+])(\d\d?)(?::(\d\d))?))?",
    re.ASCII,
)
_STARTS = frozenset("-+.0123456789~nNtTfF")


def resolve(text: str) -> Any:
    """Return the value of an unquoted scalar without a tag."""
    if text in _NULL:
        return None
    if text[0] not in _STARTS:
        return text
    if text in _BOOL:
        return _BOOL[text]
    for read in (integer, floating, timestamp):
        value = read(text)
        if value is not None:
            return value
    return text


def null(text: str) -> bool:
    """Say whether the text is a null."""
    return text in _NULL


def boolean(text: str) -> bool | None:
    """Return the truth value a text is, or None."""
    return _BOOL.get(text)


def integer(text: str) -> int | float | None:
    """Return the whole number a text is (``010``, ``0x1F``, ``1_000``, ``1:30``), or None."""
    digits = text.replace("_", "")
    if _DECIMAL.fullmatch(text):
        # Python refuses to convert thousands of digits exactly; JavaScript rounds them anyway.
        return number(int(digits)) if len(digits) < 30 else number(float(digits))
    for pattern, base in ((_BINARY, 2), (_HEXADECIMAL, 16), (_OCTAL, 8)):
        if pattern.fullmatch(text):
            return number(int(digits.lower().replace("0b" if base == 2 else "0x", "", 1), base))
    if _SEXAGESIMAL.fullmatch(text):
        return number(_sexagesimal(digits))
    return None


def floating(text: str) -> int | float | None:
    """Return the number a text is, written with a point or an exponent, or None."""
    if text in _NAN:
        return math.nan
    if _INFINITY.fullmatch(text):
        return -math.inf if text[0] == "-" else math.inf
    if text.endswith("_"):
        return None
    digits = text.replace("_", "")
    if _SEXAGESIMAL_FLOAT.fullmatch(text):
        return number(_sexagesimal(digits))
    # `._1` passes the pattern and has no digit after the point until the underscore is gone.
    if _FLOAT.fullmatch(text) and any(character.isdigit() for character in digits):
        return number(float(digits))
    return None


def timestamp(text: str) -> Timestamp | None:
    """Return the moment a text is (``2020-01-02``, ``2020-01-02T03:04:05Z``), or None."""
    match = _DATE.fullmatch(text) or _MOMENT.fullmatch(text)
    if match is None:
        return None
    parts = match.groups() + (None,) * 7
    year, month, day, hour, minute, second = (int(part or 0) for part in parts[:6])
    milliseconds = int((parts[6] or "0")[:3].ljust(3, "0"))
    # JavaScript lets months and days run over, and reads the years 0 to 99 as 1900 to 1999.
    year += 1900 if year < 100 else 0
    years, month = divmod(month - 1, 12)
    offset = timedelta(hours=int(parts[8] or 0), minutes=int(parts[9] or 0))
    try:
        moment = datetime(year + years, month + 1, 1, tzinfo=timezone.utc) + timedelta(
            days=day - 1, hours=hour, minutes=minute, seconds=second, milliseconds=milliseconds
        )
        moment += offset if parts[7] == "-" else -offset
    except (ValueError, OverflowError):
        return None
    return Timestamp.of(moment)


def _sexagesimal(text: str) -> float | int:
    sign = -1 if text[0] == "-" else 1
    total: float | int = 0
    for part in text.lstrip("+-").split(":"):
        total = total * 60 + (float(part) if "." in part or len(part) > 30 else int(part))
    return sign * total
