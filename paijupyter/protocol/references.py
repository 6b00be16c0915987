"""What names something else in the document: images, data, scripts, outputs, deployments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paijupyter.protocol.findings import Findings, did_you_mean, dotted
from paijupyter.protocol.shapes import is_text
from paijupyter.protocol.values import pointer

KINDS = {"dockerImage": "dockerimage", "data": "data", "output": "output", "script": "script"}


def roles_of(data: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, name and content of every task role that is a mapping."""
    roles = data.get("taskRoles")
    for name, role in roles.items() if isinstance(roles, dict) else ():
        if isinstance(role, dict):
            yield pointer("/taskRoles", name), name, role


def items_of(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield index and content of every item of a list that is a mapping."""
    for index, item in enumerate(value) if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield index, item


def member(value: Any, *keys: str) -> Any:
    """Return a member of nested mappings, or None where the way ends."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def check_references(found: Findings) -> None:
    """Check that everything that is named exists, and exists once."""
    known = _prerequisites(found)
    data = found.document.data
    everything = {name: None for names in known.values() for name in names}
    for path, _, role in roles_of(data):
        for key, kind in KINDS.items():
            _known(found, pointer(path, key), role.get(key), known.get(kind, {}), kind)
        wanted = role.get("prerequisites")
        for index, name in enumerate(wanted if isinstance(wanted, list) else ()):
            _known(found, f"{path}/prerequisites/{index}", name, everything, "")
    _deployments(found)


def _prerequisites(found: Findings) -> dict[str, dict[str, None]]:
    """Type → names, in order."""
    known: dict[str, dict[str, None]] = {}
    for index, item in items_of(found.document.data.get("prerequisites")):
        kind, name = item.get("type"), item.get("name")
        if not is_text(kind) or not is_text(name):
            continue
        names = known.setdefault(kind, {})
        if name in names:
            message = (
                f"`prerequisites[{index}]` has the name `{name}` of another prerequisite of type `{kind}`."
            )
            found.error("duplicate-name", f"/prerequisites/{index}/name", message, "Give it another name.")
        names[name] = None
    return known


def _known(found: Findings, path: str, name: Any, known: dict[str, None], kind: str) -> None:
    if not is_text(name) or name in known:
        return
    words = f"prerequisite of type `{kind}`" if kind else "prerequisite"
    hint = did_you_mean(name, known) or "Add it to `prerequisites`."
    found.error("unknown-prerequisite", path, f"`{dotted(path)}` names no {words}: `{name}`.", hint)


def _deployments(found: Findings) -> None:
    data = found.document.data
    names: dict[str, None] = {}
    for index, item in items_of(data.get("deployments")):
        name = item.get("name")
        if not is_text(name):
            continue
        if name in names:
            message = f"`deployments[{index}]` has the name `{name}` of another deployment."
            found.error("duplicate-name", f"/deployments/{index}/name", message, "Give it another name.")
        names[name] = None
    chosen = member(data, "defaults", "deployment")
    if is_text(chosen) and chosen not in names:
        message = f"`defaults.deployment` names no deployment: `{chosen}`."
        found.error("unknown-deployment", "/defaults/deployment", message, did_you_mean(chosen, names))
