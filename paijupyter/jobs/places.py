"""Where in a notebook a task failed, as the traceback at the end of its log says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_CELL = re.compile(
    r'^\s*File "(?P<notebook>.+)\[(?P<kind>cell|In) (?P<number>\d+)\]", '
    r"line (?P<line>\d+)"
)
_ENTRY = re.compile(r'^\s*File "[^"]*\.paijob/cell\.py", line (?P<line>\d+)')


def place_of(lines: Iterable[object], cell: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the innermost cell of a traceback: ``notebook``, ``cell``, ``line``, ``id`` where it is known.

    Args:
        lines: end of a log.
        cell: the cell that submitted the job: ``id`` and ``number``.
    """
    for line in reversed([str(each) for each in lines]):
        found = _CELL.match(line)
        if found:
            number, runs = int(found["number"]), found["kind"] == "In"
            name = None if found["notebook"] == "notebook" else found["notebook"]
            return {"notebook": name, "run" if runs else "cell": number, "line": int(found["line"])}
        found = _ENTRY.match(line)
        if found and cell:
            known = {"cell": cell.get("number"), "id": cell.get("id"), "line": int(found["line"])}
            return {"notebook": None, **{name: value for name, value in known.items() if value is not None}}
    return None
