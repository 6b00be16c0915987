"""Values as the original server has them, and the text it makes of them: JavaScript's, not Python's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

SAFE_INTEGER = 2**53
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Timestamp(str):
    """A YAML timestamp: as JSON its ISO text, in a command JavaScript's own long text."""

    __slots__ = ()

    @classmethod
    def of(cls, moment: datetime) -> Timestamp:
        """Make one of an aware moment."""
        moment = moment.astimezone(timezone.utc)
        return cls(f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".rjust(24, "0"))

    @property
    def javascript(self) -> str:
        """The text JavaScript makes of a date: ``Thu Jan 02 2020 00:00:00 GMT+0000 (…)``."""
        moment = datetime.fromisoformat(self[:-1])
        day, month = _DAYS[moment.weekday()], _MONTHS[moment.month - 1]
        clock = f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
        date = f"{day} {month} {moment.day:02d} {moment.year:04d}"
        return f"{date} {clock} GMT+0000 (Coordinated Universal Time)"


def number(value: float | int) -> int | float:
    """Return the number as JavaScript holds it: whole ones as int while they are exact, others as float."""
    if isinstance(value, int):
        if -SAFE_INTEGER <= value <= SAFE_INTEGER:
            return value
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if math.isfinite(value) and value.is_integer() and abs(value) <= SAFE_INTEGER:
        return int(value)
    return value


def number_text(value: float | int) -> str:
    """Return the text JavaScript makes of a number: ``1``, ``0.00001``, ``1e-7``, ``1e+21``, ``Infinity``."""
    value = number(value)
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # repr has the same shortest digits as JavaScript; only the place of the point differs.
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    if 0 < point <= 21:
        body = text.ljust(point, "0") if point >= len(text) else f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        body = f"0.{'0' * -point}{text}"
    else:
        mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
        body = f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return f"-{body}" if sign else body


def text_of(value: Any) -> str:
    """Return the text JavaScript makes of a value in a command; null is the caller's business."""
    if isinstance(value, Timestamp):
        return value.javascript
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (int, float)):
        return number_text(value)
    if isinstance(value, Mapping):
        return "[object Object]"
    return ",".join("" if item is None else text_of(item) for item in value)
