"""One line of an ignore file as a regular expression, with git's own semantics (gitignore(5), wildmatch).

A pattern decides about one path by itself, not about what lies below it: the walk asks for each folder before
it enters it. A library that answers for a whole path at once cannot tell the two apart over nested ignore
files, and the one we tried (pathspec 1.1) reads character classes and escapes in brackets otherwise than git.

Names are matched as git does, byte by byte: text here is UTF-8 bytes read as Latin-1, see :func:`byte_text`.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Callable
from typing import NamedTuple

_SPECIAL = re.compile(r"[*?\[\\]")
_CLASSES: dict[str, Callable[[str], bool]] = {
    "alnum": lambda c: c in string.ascii_letters + string.digits,
    "alpha": lambda c: c in string.ascii_letters,
    "blank": lambda c: c in " \t",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": lambda c: c in string.digits,
    "graph": lambda c: "!" <= c <= "~",
    "lower": lambda c: c in string.ascii_lowercase,
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: c in string.punctuation,
    "space": lambda c: c in string.whitespace,
    "upper": lambda c: c in string.ascii_uppercase,
    "xdigit": lambda c: c in string.hexdigits,
}
_BYTES = [chr(number) for number in range(1, 256)]


class Pattern(NamedTuple):
    """One pattern.

    Attributes:
        ignores: False for a line that begins with ``!``.
        folders_only: it ended with ``/``.
        anchored: it is matched against the path from the ignore file's folder, else against the last name.
        literal: the text to be equal to, or None.
        suffix: the text to end with, or None (only if not anchored).
        regex: regular expression for a full match, if there is neither of these.
    """

    ignores: bool
    folders_only: bool
    anchored: bool
    literal: str | None = None
    suffix: str | None = None
    regex: str = ""


def byte_text(text: str) -> str:
    """Return a path as matched here: one character per byte."""
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


def parse(data: bytes) -> list[Pattern]:
    """Return the patterns of an ignore file, in its order; lines that can match nothing are dropped."""
    patterns = []
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        text = line.removesuffix(b"\r").decode("latin-1")
        if text and text[0] != "#":
            pattern = _parse_line(_trim(text))
            if pattern:
                patterns.append(pattern)
    return patterns


def _trim(text: str) -> str:
    """Drop trailing spaces, except those after a backslash."""
    end = position = 0
    while position < len(text):
        if text[position] == "\\":
            if position + 1 == len(text):
                return text
            position += 1
            end = position + 1
        elif text[position] != " ":
            end = position + 1
        position += 1
    return text[:end]


def _parse_line(text: str) -> Pattern | None:
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    anchored = "/" in text
    text = text.removeprefix("/")
    if not text or "\0" in text:
        return None
    special = _SPECIAL.search(text)
    if not special:
        return Pattern(ignores, folders_only, anchored, literal=text)
    if not anchored and text[0] == "*" and not _SPECIAL.search(text, 1):
        return Pattern(ignores, folders_only, anchored, suffix=text[1:])
    head, tail = text[: special.start()], text[special.start() :]
    regex = _translate(tail, slashes_count=anchored)
    if regex is None:
        return None
    return Pattern(ignores, folders_only, anchored, regex=re.escape(head) + regex)


def _translate(text: str, slashes_count: bool) -> str | None:
    """Translate a pattern from its first special character on; None if it can match nothing."""
    one = "[^/]" if slashes_count else "."
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "*":
            piece, position = _stars(text, position, slashes_count)
        elif char == "?":
            piece, position = one, position + 1
        elif char == "[":
            found = _bracket(text, position + 1, slashes_count)
            if found is None:
                return None
            piece, position = found
        elif char == "\\":
            if position + 1 == len(text):
                return None
            piece, position = re.escape(text[position + 1]), position + 2
        else:
            piece, position = re.escape(char), position + 1
        out.append(piece)
    return "".join(out)


def _stars(text: str, start: int, slashes_count: bool) -> tuple[str, int]:
    end = start
    while end < len(text) and text[end] == "*":
        end += 1
    if not slashes_count:
        return ".*", end
    # Git looks at what precedes the stars in the part after the literal head, so `foo**/bar` is `foo` and
    # then `**/bar`.
    begins = start == 0 or text[start - 1] == "/"
    if end - start > 1 and begins and (end == len(text) or text.startswith(("/", "\\/"), end)):
        if text.startswith("/", end):
            return "(?:.*/)?", end + 1
        return ".*", end
    return "[^/]*", end


def _bracket(text: str, position: int, slashes_count: bool) -> tuple[str, int] | None:
    """Translate a set whose first character is at ``position``; None if it does not end."""
    negated = text.startswith(("!", "^"), position)
    position += negated
    members: set[str] = set()
    previous = ""
    first = True
    while first or not text.startswith("]", position):
        first = False
        if position >= len(text):
            return None
        char = text[position]
        if char == "\\":
            position += 1
            if position >= len(text):
                return None
            char = text[position]
            members.add(char)
        elif char == "-" and previous and position + 1 < len(text) and text[position + 1] != "]":
            position += 1
            if text[position] == "\\":
                position += 1
                if position >= len(text):
                    return None
            members |= {each for each in _BYTES if previous <= each <= text[position]}
            char = ""
        elif text.startswith("[:", position):
            end = text.find("]", position + 2)
            if end < 0:
                return None
            if end > position + 2 and text[end - 1] == ":":
                belongs = _CLASSES.get(text[position + 2 : end - 1])
                if belongs is None:
                    return None
                members |= {each for each in _BYTES if belongs(each)}
                position, char = end, ""
            else:
                members.add(char)
        else:
            members.add(char)
        previous = char
        position += 1
    allowed = {each for each in _BYTES if (each in members) != negated}
    if slashes_count:
        allowed.discard("/")
    if not allowed:
        return "(?!)", position + 1
    return "[" + "".join(f"\\x{ord(each):02x}" for each in sorted(allowed)) + "]", position + 1
