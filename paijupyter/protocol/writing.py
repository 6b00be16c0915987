"""Values to canonical YAML: block style, every text quoted, no key quoted that need not be.

A quoted text is read alike by all YAML readers of all versions; a quoted top-level key would hide the
``secrets`` behind it from OpenPAI's mask.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.protocol import scalars
from paijupyter.protocol.javascript import Timestamp, number, number_text

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# Words that YAML 1.1 readers take for truth values or nothing.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_DEEPEST = 90


def write(data: Mapping[str, Any]) -> str:
    """Return the canonical YAML of a job document or of any other mapping of JSON-like values.

    Raises:
        UsageProblem: if a value is of a type that YAML cannot carry, or nested too deep.
    """
    return "\n".join(block(data)) + "\n"


def block(value: Any, depth: int = 0) -> list[str]:
    """Return the lines of a value in block style, without indentation of their own.

    A scalar or empty collection is one line (or the lines of a literal block).
    """
    if depth > _DEEPEST:
        raise UsageProblem(f"Document is nested deeper than {_DEEPEST} levels.")
    if isinstance(value, Mapping) and value:
        return list(_mapping(value, depth))
    if _is_list(value) and value:
        return list(_sequence(value, depth))
    literal = _literal(value)
    return literal if literal else [inline(value)]


def inline(value: Any) -> str:
    """Return a value on one line: scalars as such, collections in flow style."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Timestamp):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key_text(key)}: {inline(item)}" for key, item in value.items()) + "}"
    if _is_list(value):
        return "[" + ", ".join(inline(item) for item in value) + "]"
    raise UsageProblem(f"Value of type `{type(value).__name__}` cannot be written into a job document.")


def quoted(text: str) -> str:
    """Return a text in double quotes, with the escapes that JSON and YAML share."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def key_text(key: Any) -> str:
    """Return a key, quoted only where it would otherwise be something else than this text."""
    if not isinstance(key, str):
        raise UsageProblem(f"Key `{key}` must be a text.")
    return key if is_plain(key) else quoted(key)


def is_plain(text: str) -> bool:
    """Say whether a text of letters, digits, ``_ . -`` means itself to every YAML reader when unquoted."""
    return bool(
        _PLAIN_KEY.fullmatch(text) and text.lower() not in _WORDS and isinstance(scalars.resolve(text), str)
    )


def is_plain_text(text: str) -> bool:
    """Say whether a text of one line may stand unquoted, outside of ``[ ]`` and ``{ }``."""
    return bool(
        re.fullmatch(r"[A-Za-z_/][ -~\xa1-\ud7ff]*", text)
        and not re.search(r": |:$| #| $", text)
        and text.lower() not in _WORDS
        and isinstance(scalars.resolve(text), str)
    )


def _mapping(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    for key, item in value.items():
        lines = block(item, depth + 1)
        if _is_nested(item):
            yield f"{key_text(key)}:"
            yield from _indented(lines)
        else:
            yield f"{key_text(key)}: {lines[0]}"
            yield from lines[1:]


def _sequence(value: Sequence[Any], depth: int) -> Iterator[str]:
    for item in value:
        first, *rest = block(item, depth + 1)
        yield f"- {first}"
        yield from _indented(rest) if _is_nested(item) else rest


def _is_nested(value: Any) -> bool:
    return bool(value) and (isinstance(value, Mapping) or _is_list(value))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _indented(lines: list[str]) -> Iterator[str]:
    return (f"  {line}" if line else line for line in lines)


def _literal(value: Any) -> list[str]:
    """The lines of a literal block for a text of several lines; none where quotes are the safe way."""
    if not isinstance(value, str) or isinstance(value, Timestamp) or "\n" not in value.rstrip("\n"):
        return []
    content = value[:-1] if value.endswith("\n") else value
    lines = content.split("\n")
    unsafe = (
        content.endswith("\n")
        or lines[0][:1] in (" ", "\t", "")
        or any(line != line.rstrip() for line in lines)
        or re.search(r"[^\n -~\xa0-\ud7ff\ue000-\ufefe]", content)
        or _ESCAPED.search(content)
    )
    if unsafe:
        return []
    return ["|" if value.endswith("\n") else "|-", *_indented(lines)]


def _number(value: float | int) -> str:
    value = number(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    text = number_text(value)
    mantissa, exponent, power = text.partition("e")
    # With a point in it, also YAML 1.1 readers take 1.0e-7 for a number.
    return f"{mantissa}.0e{power}" if exponent and "." not in mantissa else text
