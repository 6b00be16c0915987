"""Placeholders in a text: ``{0}``, ``{4}``, ``{model}``. All other braces are left alone (T1).

Left alone are ``${NAME}`` of the shell, ``{}``, ``{{name}}``, braces with anything else inside, and what the
list of experiments calls ``literal``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_BRACES = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_.-]*|0|[1-9][0-9]{0,3})\}")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder in a text, with its place; ``line`` counts from 1."""

    name: str
    start: int
    end: int
    line: int


def placeholders(text: str, literal: Iterable[str] = ()) -> Iterator[Placeholder]:
    """Yield the placeholders of a text in order, known or not.

    >>> [each.name for each in placeholders("{0} ${HOME} {} {a: 1} {{x}} [{model}]")]
    ['0', 'model']
    """
    left_alone, line, counted = frozenset(literal), 1, 0
    for match in _BRACES.finditer(text):
        start, end = match.span()
        is_doubled = text[start - 1 : start] == "{" and text[end : end + 1] == "}"
        if is_doubled or match[1] in left_alone:
            continue
        line += text.count("\n", counted, start)
        counted = start
        yield Placeholder(match[1], start, end, line)


def replaced(text: str, found: Iterable[Placeholder], by: Callable[[int, Placeholder], str]) -> str:
    """Return a text with its placeholders replaced; ``by`` gets the number and the placeholder."""
    parts, end = [], 0
    for number, each in enumerate(found):
        parts += [text[end : each.start], by(number, each)]
        end = each.end
    return "".join([*parts, text[end:]])


def filled(text: str, values: Mapping[str, Any]) -> str:
    """Return a plain text with the placeholders of known names filled in, everything else as it is."""
    known = [each for each in placeholders(text) if each.name in values]
    return replaced(text, known, lambda _, each: as_text(values[each.name]))


def as_text(value: Any) -> str:
    """Return a value as it stands in a text (T2).

    >>> as_text(32), as_text(0.1), as_text("a b"), as_text(True), as_text([1, "x"])
    ('32', '0.1', 'a b', 'true', '[1,"x"]')
    """
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return str(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
