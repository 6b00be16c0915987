"""The problems that a folder can have as a package, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from paijupyter.errors import Problem

_MOST = 20
_LEAVE_OUT = "or leave it out with a line in `.paiignore`."


def unreadable(path: str, error: OSError) -> Problem:
    """A file or folder that may not be read."""
    why = error.strerror or "unknown reason"
    return Problem(
        "error",
        "file-unreadable",
        f"File `{path}` cannot be read: {why}.",
        file=path,
        hint=f"Make it readable, {_LEAVE_OUT}",
    )


def bad_name(path: str) -> Problem:
    """A name that is not UTF-8, which no JSON and not every system can hold."""
    shown = path.encode("utf-8", "backslashreplace").decode()
    return Problem(
        "error",
        "file-name",
        f"File name `{shown}` is not UTF-8.",
        file=shown,
        hint=f"Rename it, {_LEAVE_OUT}",
    )


def changing(path: str) -> Problem:
    """A file that is being written to."""
    return Problem(
        "error",
        "file-changing",
        f"File `{path}` changes while it is read.",
        file=path,
        hint=f"Submit again when it is complete, {_LEAVE_OUT}",
    )


def broken_notebook(path: str) -> Problem:
    """A notebook that is not a notebook; it travels as it is."""
    return Problem(
        "warning",
        "notebook-broken",
        f"Notebook `{path}` is not valid and travels as it is, with any outputs in it.",
        file=path,
        hint="Save it again from Jupyter.",
    )


def outside_link(path: str, target: str) -> Problem:
    """A symbolic link that would not work in a task."""
    return Problem(
        "warning",
        "link-outside",
        f"Link `{path}` is left out, because `{target}` lies outside the package or is an absolute path.",
        file=path,
        hint="Give the task the real place in a parameter, or copy the file.",
    )


def folded(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems with at most twenty of a kind, and one line for what is beyond."""
    kept: list[Problem] = []
    seen: Counter[str] = Counter()
    for problem in problems:
        seen[problem.code] += 1
        if seen[problem.code] <= _MOST:
            kept.append(problem)
    for problem in list({each.code: each for each in kept}.values()):
        more = seen[problem.code] - _MOST
        if more > 0:
            text = f"Files with the same problem ({problem.code}): {more} more."
            kept.append(Problem(problem.severity, problem.code, text, hint=problem.hint))
    return kept
