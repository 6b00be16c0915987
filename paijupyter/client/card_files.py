"""What cards say of files: data that come in, outputs that go out, and where to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paijupyter.client import words

_OUTPUTS = 6


def rows(view: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the rows of a job's card."""
    if view.get("data"):
        yield "data", _data(view["data"])
    if view.get("outputs"):
        yield "outputs", _outputs(view["outputs"])
        yield "pull", f"`pull {view['name']}` puts them into {view['name']}/"
    elif view["state"] not in words.FINAL:
        yield from _kept(view.get("declaredOutputs") or ())


def plan_rows(plan: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the rows of a plan's card."""
    if plan.get("data"):
        yield "data", _data(plan["data"])
    yield from _kept(plan.get("outputs") or ())


def _kept(declared: Sequence[str]) -> Iterable[tuple[str, str]]:
    if declared:
        yield "outputs", f"{', '.join(declared)}: kept with what is in $PAI_OUTPUT_DIR when a task ends"


def _data(data: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(_source(each) for each in data)


def _source(found: Mapping[str, Any]) -> str:
    size = f" ({words.size(int(found['bytes']))})" if found.get("bytes") else ""
    return f"{found['uri']}{size} → {found['read']}"


def _outputs(outputs: Sequence[Mapping[str, Any]]) -> str:
    shown = [f"{each['path']} ({words.size(int(each.get('size') or 0))})" for each in outputs[:_OUTPUTS]]
    if len(outputs) > _OUTPUTS:
        rest = outputs[_OUTPUTS:]
        total = words.size(sum(int(each.get("size") or 0) for each in rest))
        shown.append(f"{len(rest)} more ({total})")
    return ", ".join(shown)
