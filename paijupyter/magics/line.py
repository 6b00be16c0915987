"""The line of the magic as words: POSIX quotes, and ``{expr}`` where it is the whole of a value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from paijupyter.errors import UsageProblem

_TYPED = ("--param", "-p")  # Their values keep their type, as JSON; all others are text.


def words_of(line: str, namespace: Mapping[str, Any]) -> list[str]:
    """Split a line into words and evaluate those values that are wholly ``{expr}``.

    Nothing else is expanded: a ``$`` or a brace inside a word stays what it is.

    Args:
        line: what follows ``%paijob``.
        namespace: the user's names.

    Raises:
        UsageProblem: a quote or brace is not closed, or an expression cannot be evaluated or sent.

    >>> words_of("--param lr={rate} --name 'a b' x{y}", {"rate": 0.1})
    ['--param', 'lr=0.1', '--name', 'a b', 'x{y}']
    """
    words: list[str] = []
    place = 0
    while True:
        while place < len(line) and line[place].isspace():
            place += 1
        if place == len(line):
            return words
        word, expression, place = _word(line, place)
        if expression is not None:
            option = word.partition("=")[0] if word.startswith("-") else (words[-1] if words else "")
            typed = option in _TYPED
            word += _evaluated(expression, namespace, typed=typed)
        words.append(word)


def _word(line: str, place: int) -> tuple[str, str | None, int]:
    """Read one word; an expression that ends the word is returned apart from what stands before it."""
    text = ""
    while place < len(line) and not line[place].isspace():
        character = line[place]
        if character == "{" and (not text or text.endswith("=")):
            end = _closing(line, place)
            if end == len(line) or line[end].isspace():
                return text, line[place + 1 : end - 1], end
            text += line[place:end]
            place = end
        elif character in "'\"":
            quoted, place = _quoted(line, place)
            text += quoted
        elif character == "\\" and place + 1 < len(line):
            text += line[place + 1]
            place += 2
        else:
            text += character
            place += 1
    return text, None, place


def _quoted(line: str, place: int) -> tuple[str, int]:
    quote, text = line[place], ""
    place += 1
    while place < len(line):
        character = line[place]
        if character == quote:
            return text, place + 1
        if character == "\\" and quote == '"' and line[place + 1 : place + 2] in ('"', "\\", "$", "`"):
            place += 1
            character = line[place]
        text += character
        place += 1
    raise UsageProblem(f"Quote {quote} is not closed.")


def _closing(line: str, place: int) -> int:
    """Return the place after the brace that closes the one at ``place``."""
    depth, quote, start = 0, "", place
    while place < len(line):
        character = line[place]
        if quote:
            if character == "\\":
                place += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
            if depth == 0:
                return place + 1
        place += 1
    raise UsageProblem(f"Brace in `{line[start : start + 40]}` is not closed.")


def _evaluated(expression: str, namespace: Mapping[str, Any], *, typed: bool) -> str:
    literal = "{" + expression + "}"
    try:
        code = compile(expression.strip(), "<%paijob>", "eval")
    except SyntaxError:
        if _is_json(literal):
            return literal  # A mapping written as JSON.
        raise UsageProblem(f"Value `{literal}` is neither an expression nor JSON.") from None
    try:
        # The user's own expression, in the user's own kernel, is what was asked for.
        value = eval(code, dict(namespace))  # noqa: S307
    except Exception as error:
        raise UsageProblem(f"Expression `{literal}` failed: {type(error).__name__}: {error}.") from error
    return _text(_plain(value, literal), literal, typed=typed)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _plain(value: Any, literal: str) -> Any:
    """Return numbers of NumPy and the like as Python's own."""
    if value is None or isinstance(value, (bool, int, float, str, list, tuple, dict)):
        return value
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if callable(getattr(value, "to_dict", None)) and hasattr(value, "columns"):
        return [_without_gaps(row) for row in value.to_dict("records")]
    if callable(getattr(value, "item", None)) and getattr(value, "size", 1) == 1:
        return value.item()
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    raise _not_sendable(value, literal)


def _without_gaps(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a data frame as Python's own values, without those that are missing (NaN, NaT)."""
    plain = {str(name): value.item() if hasattr(value, "item") else value for name, value in row.items()}
    return {name: value for name, value in plain.items() if value is not None and value == value}


def _text(value: Any, literal: str, *, typed: bool) -> str:
    if not typed and not isinstance(value, (list, tuple, dict)):
        return str(value)
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        raise _not_sendable(value, literal) from None


def _not_sendable(value: Any, literal: str) -> UsageProblem:
    kind = type(value).__name__
    return UsageProblem(
        f"Expression `{literal}` is a {kind}; a value is a number, a text, a list or a mapping of those."
    )
