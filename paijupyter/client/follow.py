"""The log of a job as lines for people: each with its task, frames of progress bars collapsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol


class Chunk(Protocol):
    """A piece of the log of one task."""

    @property
    def task(self) -> str:
        """Key of the task, ``worker-0``."""

    @property
    def attempt(self) -> int:
        """Number of the attempt, from 0."""

    @property
    def text(self) -> str:
        """Text, not always whole lines."""


class LinePrefixer:
    r"""Turns chunks of several tasks into whole lines that start with their task.

    >>> from types import SimpleNamespace as Piece
    >>> prefixer = LinePrefixer(8)
    >>> prefixer.feed(Piece(task="worker-0", attempt=0, text="one\ntw"))
    'worker-0  one\n'
    >>> prefixer.feed(Piece(task="worker-0", attempt=0, text="o\n"))
    'worker-0  two\n'
    """

    def __init__(self, width: int = 0) -> None:
        self._width = width
        self._open: dict[str, str] = {}
        self._attempts: dict[str, int] = {}

    def feed(self, chunk: Chunk) -> str:
        """Return the lines that are whole now, each with its line end, or ""."""
        ended = ""
        if chunk.attempt > self._attempts.get(chunk.task, 0):
            # What an earlier attempt left without a line end is a line.
            ended = self._close(chunk.task) + self._line(chunk.task, f"── attempt {chunk.attempt + 1} ──")
        self._attempts[chunk.task] = chunk.attempt
        *whole, rest = (self._open.get(chunk.task, "") + chunk.text).split("\n")
        self._open[chunk.task] = rest.rpartition("\r")[2] if rest.count("\r") > 1 else rest
        return ended + "".join(self._line(chunk.task, line) for line in whole)

    def rest(self) -> str:
        """Return what was left without a line end."""
        return "".join(self._close(task) for task in sorted(self._open))

    def _close(self, task: str) -> str:
        rest = self._open.pop(task, "")
        return self._line(task, rest) if rest else ""

    def _line(self, task: str, line: str) -> str:
        # A progress bar rewrites its line: its last frame is what a person would see.
        shown = line.rstrip("\r").rpartition("\r")[2]
        return f"{task:<{self._width}}  {shown}\n"


def width_of(view: Mapping[str, Any]) -> int:
    """Return the length of the longest key of a job's tasks."""
    roles = view.get("roles") or {}
    return max(
        (len(f"{name}-{max(int(role.get('instances') or 1), 1) - 1}") for name, role in roles.items()),
        default=0,
    )


def prefixed(chunks: Iterable[Chunk], view: Mapping[str, Any]) -> Iterator[str]:
    """Yield the log of a job in blocks of whole lines, each line with its task."""
    prefixer = LinePrefixer(width_of(view))
    for chunk in chunks:
        block = prefixer.feed(chunk)
        if block:
            yield block
    rest = prefixer.rest()
    if rest:
        yield rest
