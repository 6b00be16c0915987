"""What is written to the terminal: plain and stable lines, with colours where a terminal shows them."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from paijupyter.client.words import size

_COLOURS = (36, 33, 35, 32, 34, 96, 93, 95)
_STYLES = {"waiting": "dim", "running": "blue", "succeeded": "green", "failed": "red", "stopped": "yellow"}
_WORTH_SAYING = 8_000_000  # Bytes; a smaller package is made before one could read of it.


def be_lenient() -> None:
    """Let a terminal that lacks a character show a substitute instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def say(text: str) -> None:
    """Print an answer."""
    print(text)


def piped(prompt: str) -> str:
    """Return what comes through a pipe, without the last line end; the prompt is for people only."""
    return sys.stdin.read().removesuffix("\n")


def complain(text: str) -> None:
    """Print what is not the answer: progress, a finding, an error."""
    sys.stdout.flush()
    print(text, file=sys.stderr)


def is_coloured(stream: TextIO) -> bool:
    """Say whether a stream is a terminal whose user has not turned colours off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_log(block: str, stream: TextIO) -> None:
    """Write lines of a log at once, their tasks coloured where that is seen."""
    stream.write("".join(map(_coloured, block.splitlines(keepends=True))) if is_coloured(stream) else block)
    stream.flush()


def _coloured(line: str) -> str:
    task, gap, text = line.partition("  ")
    # By its name, so that a task has the same colour in every log.
    colour = _COLOURS[zlib.crc32(task.encode()) % len(_COLOURS)]
    return f"\x1b[{colour}m{task}\x1b[0m{gap}{text}"


def table(views: Sequence[Mapping[str, Any]], plain: str) -> None:
    """Print a table of jobs: by rich on a terminal where it is installed, else the plain one."""
    if not is_coloured(sys.stdout):
        say(plain)
        return
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        say(plain)
        return
    from paijupyter.client import tables

    drawn = Table(box=None, padding=(0, 2, 0, 0))
    for column in tables.JOB_COLUMNS:
        drawn.add_column(column, no_wrap=column != "what")
    for view, row in zip(views, tables.job_rows(views), strict=True):
        state = Text(row[0], style=_STYLES.get(str(view["state"]), ""))
        drawn.add_row(state, *(Text(cell) for cell in row[1:]))
    Console().print(drawn)


def package_progress(doing: str = "packaging") -> Callable[[int, int], None] | None:
    """Return what says how far a large package or upload is, on one line of a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        return None
    last = -1

    def progress(done: int, total: int) -> None:
        nonlocal last
        percent = 100 * done // total if total else 100
        if total < _WORTH_SAYING or percent == last:
            return
        last = percent
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r{doing} {size(done)} of {size(total)} ({percent} %)\x1b[K{end}")
        sys.stderr.flush()

    return progress
