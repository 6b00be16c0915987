"""What changed between two jobs, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from paijupyter.client import words

_NOTHING = "–"
_LONG = 60
_PARTS = (
    ("parameters", "parameters"),
    ("commands", "commands"),
    ("images", "images"),
    ("resources", "roles"),
    ("data", "data"),
    ("secrets", "secrets"),
    ("profile", "profile"),
    ("versions", "versions"),
)


def text(found: Mapping[str, Any]) -> str:
    """Draw the difference of two jobs; what is equal is left out."""
    before, after = found["jobs"]
    lines = [f"{before['name']} → {after['name']}"]
    made = list(_made(found))
    lines += made or ["  made of the same: package, parameters, environment, image, data"]
    lines += _part("results", _results(found["results"]))
    return "\n".join(lines)


def _made(found: Mapping[str, Any]) -> Iterator[str]:
    yield from _part("code", (line for each in found["code"] for line in _file(each)))
    for key, title in _PARTS:
        yield from _part(title, map(_row, found.get(key) or ()))
    yield from _part("environment", _environment(found["environment"]))


def _part(title: str, lines: Iterable[str]) -> list[str]:
    inside = [f"    {line}".rstrip() for line in lines]
    return [f"  {title}", *inside] if inside else []


def _file(change: Mapping[str, Any]) -> Iterator[str]:
    if not change["path"]:
        yield str(change.get("message") or "")
        return
    sizes = " → ".join(words.size(size) for size in change.get("sizes") or ())
    yield f"{change['change']} {change['path']}" + (f" ({sizes})" if sizes else "")
    for cell in change.get("cells") or ():
        yield f"  {_cell(cell)}"
        yield from (f"    {line}" for line in cell["diff"])
    yield from (f"  {line}" for line in change.get("diff") or ())


def _cell(cell: Mapping[str, Any]) -> str:
    before, after = cell["before"], cell["after"]
    if before is None or after is None:
        return f"cell {after or before} {cell['change']}"
    moved = f", which was cell {before}," if before != after else ""
    return f"cell {after}{moved} {cell['change']}"


def _row(row: Mapping[str, Any]) -> str:
    return f"{row['name']}: {_value(row, 'before')} → {_value(row, 'after')}"


def _value(row: Mapping[str, Any], side: str) -> str:
    if side not in row:
        return _NOTHING
    value = row[side]
    if isinstance(value, Mapping):
        said = ", ".join(f"{key} {item}" for key, item in value.items() if item not in (None, False))
    else:
        said = words.number(value) if isinstance(value, (float, bool)) or value is None else str(value)
    said = said.replace("\n", "; ")
    return said if len(said) <= _LONG else said[: _LONG - 1] + "…"


def _environment(found: Mapping[str, Any]) -> Iterator[str]:
    if not found["known"]:
        yield str(found["message"])
        return
    yield from map(_row, [*found["interpreter"], *found["packages"]])


def _results(found: Mapping[str, Any]) -> Iterator[str]:
    yield from map(_row, found["outcome"])
    seconds: Sequence[float | None] = found["seconds"]
    if any(each is not None for each in seconds):
        said = [_NOTHING if each is None else words.duration(each) for each in seconds]
        yield f"duration: {said[0]} → {said[1]}"
    yield from map(_row, found["metrics"])
    for row in found["outputs"]:
        sizes = [words.size(row[side]) if side in row else _NOTHING for side in ("before", "after")]
        yield f"output {row['name']}: {sizes[0]} → {sizes[1]}" + (
            ", other content" if row.get("sha256") else ""
        )
    for cell in found.get("cells") or ():
        yield f"cell {cell['cell']}: {_value(cell, 'before')} → {_value(cell, 'after')}"
