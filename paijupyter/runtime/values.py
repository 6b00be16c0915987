"""Values of a job document as text, written as `<% $parameters.x %>` writes them (JavaScript's way)."""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def text_of(value: "Any") -> str:
    """Return a value as text: strings as they are, null as "", ``1.0`` as ``1``, lists as JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int):
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _number(value: float) -> str:
    """Return a float as JavaScript prints it: decimal from 1e-6 up to 1e21, no ``.0``, no padded exponent."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).rstrip("0") if fraction.strip("0") or exponent else whole
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    if not digits:
        return "0"
    if -6 < point <= 21:
        if point <= 0:
            return sign + "0." + "0" * -point + digits
        if len(digits) <= point:
            return sign + digits + "0" * (point - len(digits))
        return sign + digits[:point] + "." + digits[point:]
    head = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return "%s%se%+d" % (sign, head, point - 1)
