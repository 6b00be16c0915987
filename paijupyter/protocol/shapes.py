"""Building blocks of the protocol's schema: each checks one value and says what it must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from paijupyter.protocol.findings import Findings, did_you_mean, dotted
from paijupyter.protocol.javascript import Timestamp
from paijupyter.protocol.values import pointer

Shape = Callable[[Findings, str, Any], None]


def is_text(value: Any) -> TypeGuard[str]:
    """Say whether a value is a text; a YAML timestamp is none."""
    return isinstance(value, str) and not isinstance(value, Timestamp)


def is_whole(value: Any) -> TypeGuard[int]:
    """Say whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def kind_of(value: Any) -> str:
    """Return what a value is, in words, for the end of a message."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Timestamp):
        return "a date"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a mapping" if isinstance(value, Mapping) else "a list"


def anything(found: Findings, path: str, value: Any) -> None:
    """Accept everything."""


def text(found: Findings, path: str, value: Any) -> None:
    """Want a text."""
    if not is_text(value):
        hint = "" if value is None or isinstance(value, (list, Mapping)) else "Put quotes around it."
        found.error("type", path, f"`{dotted(path)}` must be a text; it is {kind_of(value)}.", hint)


def text_or_number(found: Findings, path: str, value: Any) -> None:
    """Want a text or a number."""
    if not is_text(value) and (isinstance(value, bool) or not isinstance(value, (int, float))):
        found.error("type", path, f"`{dotted(path)}` must be a text; it is {kind_of(value)}.")


def whole(least: int | None = None) -> Shape:
    """Want a whole number of at least this."""

    def check(found: Findings, path: str, value: Any) -> None:
        if not is_whole(value) or (least is not None and value < least):
            bound = "" if least is None else f" of at least {least}"
            hint = "Remove the quotes." if isinstance(value, str) and value.strip().isdigit() else ""
            found.error("whole-number", path, f"`{dotted(path)}` must be a whole number{bound}.", hint)

    return check


def true_or_false(found: Findings, path: str, value: Any) -> None:
    """Want a truth value."""
    if not isinstance(value, bool):
        found.error("type", path, f"`{dotted(path)}` must be true or false; it is {kind_of(value)}.")


def one_of(*allowed: Any) -> Shape:
    """Want one of a few values, by type too."""

    def check(found: Findings, path: str, value: Any) -> None:
        if not any(value == item and type(value) is type(item) for item in allowed):
            words = " or ".join(f"`{item}`" for item in dict.fromkeys(map(str, allowed)))
            found.error("value", path, f"`{dotted(path)}` must be {words}.")

    return check


def name(pattern: str, longest: int, words: str) -> Shape:
    """Want a text of a pattern."""

    def check(found: Findings, path: str, value: Any) -> None:
        if not is_text(value):
            text(found, path, value)
        elif not re.fullmatch(pattern, value):
            found.error("name", path, f"`{dotted(path)}` must be {words}.")
        elif len(value) > longest:
            found.error("name", path, f"`{dotted(path)}` must have at most {longest} characters.")

    return check


def many(shape: Shape, *, filled: bool = False) -> Shape:
    """Want a list; ``filled`` says that something must be in it."""

    def check(found: Findings, path: str, value: Any) -> None:
        if not isinstance(value, list):
            hint = "Write it as a list: one `- ` per item." if is_text(value) else ""
            found.error("type", path, f"`{dotted(path)}` must be a list; it is {kind_of(value)}.", hint)
            return
        if filled and not value:
            found.error("too-few", path, f"`{dotted(path)}` must not be empty.")
        for index, item in enumerate(value):
            shape(found, pointer(path, index), item)

    return check


def mapping(found: Findings, path: str, value: Any) -> bool:
    """Want a mapping; say whether it is one."""
    if not isinstance(value, dict):
        found.error("type", path, f"`{dotted(path)}` must be a mapping; it is {kind_of(value)}.")
        return False
    return True


def any_mapping(found: Findings, path: str, value: Any) -> None:
    """Want a mapping of whatever."""
    mapping(found, path, value)


def record(members: Mapping[str, Shape], required: tuple[str, ...] = (), *, others: bool = False) -> Shape:
    """Want a mapping of known members; ``others`` says whether more are allowed."""

    def check(found: Findings, path: str, value: Any) -> None:
        if not mapping(found, path, value):
            return
        for key in required:
            if key not in value:
                found.error("missing", pointer(path, key), f"`{dotted(pointer(path, key))}` is missing.")
        for key, item in value.items():
            if key in members:
                members[key](found, pointer(path, key), item)
            elif not others:
                where = f" in `{dotted(path)}`" if path else ""
                hint = "" if found.is_full else did_you_mean(key, members)
                found.error("unknown-key", pointer(path, key), f"`{key}` is not a known key{where}.", hint)

    return check


def table(pattern: str, words: str, shape: Shape, *, filled: bool = False) -> Shape:
    """Want a mapping whose keys are names of the user's, of a pattern; something is in it if ``filled``."""

    def check(found: Findings, path: str, value: Any) -> None:
        if not mapping(found, path, value):
            return
        if filled and not value:
            found.error("too-few", path, f"`{dotted(path)}` must not be empty.")
        for key, item in value.items():
            if not re.fullmatch(pattern, key):
                found.error("name", pointer(path, key), f"`{key}` in `{dotted(path)}` must be {words}.")
            shape(found, pointer(path, key), item)

    return check
