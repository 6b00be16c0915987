"""JSON Patches of what a form changes: as little as possible, so that the rest of the text stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.protocol.values import keys_of, pointer

Patch = list[dict[str, Any]]
_ROLES = "/taskRoles"
_EXTRAS = "/extras/paijupyter/roles"
_OF_ROLES = (_EXTRAS, "/extras/hivedScheduler/taskRoles")  # where else roles are named
_SECRETS = "/secrets"


def at(data: Any, path: str) -> Any:
    """Return the value that a JSON Pointer names; None where there is none."""
    found = data
    for key in keys_of(path):
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def change(data: Any, path: str, value: Any) -> Patch:
    """Return what sets a value; None takes it out, with what would be left empty around it.

    Args:
        data: the document's values as they stand in its text.
        path: JSON Pointer of the value.
        value: what it becomes.
    """
    before = at(data, path)
    if value is None:
        return [] if before is None else [{"op": "remove", "path": _emptied(data, path)}]
    if isinstance(before, dict) and isinstance(value, dict):
        return _mapping(path, before, value)
    if isinstance(before, list) and isinstance(value, list):
        return _list(path, before, value)
    return [] if _same(before, value) else [{"op": "replace", "path": path, "value": value}]


def _same(first: Any, second: Any) -> bool:
    return type(first) is type(second) and bool(first == second)


def _emptied(data: Any, path: str) -> str:
    """Return the path, or that of the mapping around it which would be left with nothing in it."""
    around = path.rpartition("/")[0]
    while around.count("/") > 1 and isinstance(at(data, around), dict) and len(at(data, around)) == 1:
        path, around = around, around.rpartition("/")[0]
    return path


def _mapping(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Patch:
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    patch: Patch = []
    if len(gone) == len(new) == 1 and list(before).index(gone[0]) == list(after).index(new[0]):
        patch.append({"op": "move", "from": pointer(path, gone[0]), "path": pointer(path, new[0])})
        before = {new[0] if name == gone[0] else name: value for name, value in before.items()}
        gone = []
    patch += [{"op": "remove", "path": pointer(path, name)} for name in gone]
    for name, value in after.items():
        if name not in before:
            patch.append({"op": "add", "path": pointer(path, name), "value": value})
        elif not _same(before[name], value):
            patch.append({"op": "replace", "path": pointer(path, name), "value": value})
    return patch


def _list(path: str, before: list[Any], after: list[Any]) -> Patch:
    patch: Patch = []
    if len(before) == len(after) + 1:
        place = next((i for i, each in enumerate(after) if not _same(before[i], each)), len(after))
        patch.append({"op": "remove", "path": pointer(path, place)})
        before = [*before[:place], *before[place + 1 :]]
    for place, value in enumerate(after):
        if place >= len(before):
            patch.append({"op": "add", "path": pointer(path, "-"), "value": value})
        elif not _same(before[place], value):
            patch.append({"op": "replace", "path": pointer(path, place), "value": value})
    patch += [
        {"op": "remove", "path": pointer(path, place)} for place in range(len(before) - 1, len(after) - 1, -1)
    ]
    return patch


def add_role(data: Mapping[str, Any], like: str | None = None) -> Patch:
    """Return what adds a role: a copy of one, or one with the usual resources and nothing to run yet.

    Raises:
        UsageProblem: there is no role of that name to copy.
    """
    from paijupyter.protocol.roles import DEFAULT_CPU, DEFAULT_MEMORY_MB

    roles = at(data, _ROLES) or {}
    if like is not None and like not in roles:
        raise UsageProblem(f"Role `{like}` does not exist.")
    name = _free(roles, like or "worker")
    if like is not None:
        role = roles[like]
        extras = {place: at(data, pointer(place, like)) for place in _OF_ROLES}
    else:
        image = next((role.get("dockerImage") for role in roles.values() if isinstance(role, dict)), "image")
        resources = {"cpu": DEFAULT_CPU, "memoryMB": DEFAULT_MEMORY_MB, "gpu": 0}
        role = {"instances": 1, "dockerImage": image, "resourcePerInstance": resources, "commands": []}
        extras = {_EXTRAS: {"limitMemory": False}}  # what nobody asked for shall end nobody's task
    patch: Patch = [{"op": "add", "path": pointer(_ROLES, name), "value": role}]
    patch += [
        {"op": "add", "path": pointer(place, name), "value": value}
        for place, value in extras.items()
        if value
    ]
    return patch


def remove_role(data: Mapping[str, Any], name: str) -> Patch:
    """Return what removes a role, with what is said of it elsewhere.

    Raises:
        UsageProblem: it is the only one.
    """
    if len(at(data, _ROLES) or {}) < 2:
        raise UsageProblem(f"Role `{name}` is the only one, and a job has at least one.")
    rest = [each for place in _OF_ROLES for each in change(data, pointer(place, name), None)]
    return [{"op": "remove", "path": pointer(_ROLES, name)}, *rest]


def rename_role(data: Mapping[str, Any], name: str, new: str) -> Patch:
    """Return what renames a role, also where else it is named.

    Raises:
        UsageProblem: another has that name, or it is no name of a role.
    """
    from paijupyter.protocol.roles import parse_role

    if new == name:
        return []
    parse_role(new)
    if new in (at(data, _ROLES) or {}):
        raise UsageProblem(f"Role `{new}` exists already.", "Give each role a name of its own.")
    patch: Patch = [{"op": "move", "from": pointer(_ROLES, name), "path": pointer(_ROLES, new)}]
    patch += [
        {"op": "move", "from": pointer(place, name), "path": pointer(place, new)}
        for place in _OF_ROLES
        if at(data, pointer(place, name)) is not None
    ]
    return patch


def name_secrets(data: Mapping[str, Any], names: list[str]) -> Patch:
    """Return what makes these the names of the secrets; what stands beside a name stays as it is."""
    before = at(data, _SECRETS) or {}
    return change(data, _SECRETS, {name: before.get(name, "") for name in names} or None)


def _free(roles: Mapping[str, Any], name: str) -> str:
    if name not in roles:
        return name
    stem = name.rstrip("0123456789") or "role"
    return next(f"{stem}{number}" for number in range(2, len(roles) + 3) if f"{stem}{number}" not in roles)
