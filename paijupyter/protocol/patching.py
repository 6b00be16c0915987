"""JSON Patch (RFC 6902) on plain values, a little kinder than the letter: what is missing is made."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from paijupyter.errors import UsageProblem
from paijupyter.protocol.javascript import number
from paijupyter.protocol.values import keys_of, pointer

_OPERATIONS = ("add", "replace", "remove", "move", "copy", "test")


@dataclass(frozen=True, slots=True)
class Step:
    """One elementary change.

    ``set`` a member or item, ``insert`` an item before another, ``remove`` one, or ``rename`` a member: its
    value is the new key then, and it keeps its place.
    """

    kind: Literal["set", "insert", "remove", "rename"]
    keys: tuple[str, ...]
    value: Any = None

    @property
    def path(self) -> str:
        """JSON Pointer of what changes."""
        return path_of(self.keys)


def path_of(keys: tuple[str, ...]) -> str:
    """Return the JSON Pointer of the keys."""
    path = ""
    for key in keys:
        path = pointer(path, key)
    return path


def steps_of(operation: Any, data: Any) -> Iterator[Step]:
    """Yield the elementary changes of one operation, in order.

    Args:
        operation: one object of a JSON Patch.
        data: the values it is applied to; the caller makes each change before taking the next.

    Raises:
        UsageProblem: if the operation is none, or its place does not exist.
    """
    if not isinstance(operation, Mapping) or operation.get("op") not in _OPERATIONS:
        raise UsageProblem(f"Patch operations must be objects with `op` of {', '.join(_OPERATIONS)}.")
    kind, path = operation["op"], _pointer(operation, "path")
    if kind == "test":
        if not same(get(data, path), operation.get("value")):
            raise UsageProblem(f"Patch test failed: `{path_of(path)}` has another value.")
        return
    if kind in ("move", "copy"):
        source = _pointer(operation, "from")
        value = copy.deepcopy(get(data, source))
        if kind == "move":
            if _is_rename(data, source, path):
                yield Step("rename", source, path[-1])
                return
            if path[: len(source)] == source and path != source:
                raise UsageProblem(f"Patch moves `{path_of(source)}` into itself.")
            yield Step("remove", source)
        yield _added(data, path, value)
        return
    if kind == "remove":
        get(data, path)
        yield Step("remove", path)
        return
    if "value" not in operation:
        raise UsageProblem(f"Patch operation `{kind}` of `{path_of(path)}` has no `value`.")
    value = plain(operation["value"])
    if kind == "replace" and exists(data, path):
        yield Step("set", path, value)
    else:
        yield _added(data, path, value)


def _is_rename(data: Any, source: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if not path or source[:-1] != path[:-1] or source == path:
        return False
    return isinstance(get(data, source[:-1]), dict) and not exists(data, path)


def _pointer(operation: Mapping[str, Any], member: str) -> tuple[str, ...]:
    path = operation.get(member)
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise UsageProblem(f"Patch operation `{operation['op']}` needs a JSON Pointer in `{member}`.")
    return tuple(keys_of(path))


def _added(data: Any, keys: tuple[str, ...], value: Any) -> Step:
    """The step that adds a value; mappings on the way that do not exist yet become part of the value."""
    for length in range(len(keys)):
        here = get(data, keys[:length])
        key = keys[length]
        last = length == len(keys) - 1
        if isinstance(here, list) and last:
            index = len(here) if key == "-" else _index(here, key, keys, len(here))
            return Step("insert", (*keys[:length], str(index)), value)
        if isinstance(here, dict) and key in here and not last:
            continue
        if isinstance(here, dict) or (here is None and length):
            for missing in reversed(keys[length + 1 :]):
                value = {missing: value}
            return Step("set", keys[: length + 1], value)
        if not isinstance(here, list):
            raise UsageProblem(f"Patch path `{path_of(keys)}` leads through a value that has no members.")
        _index(here, key, keys, len(here) - 1)
    return Step("set", keys, value)


def exists(data: Any, keys: tuple[str, ...]) -> bool:
    """Say whether a place exists."""
    try:
        get(data, keys)
    except UsageProblem:
        return False
    return True


def get(data: Any, keys: tuple[str, ...]) -> Any:
    """Return the value at a place.

    Raises:
        UsageProblem: if there is none.
    """
    for key in keys:
        if isinstance(data, list):
            data = data[_index(data, key, keys, len(data) - 1)]
        elif isinstance(data, dict) and key in data:
            data = data[key]
        else:
            raise UsageProblem(f"Patch path `{path_of(keys)}` does not exist in the document.")
    return data


def make(data: Any, step: Step) -> Any:
    """Return a copy of the values with one change made."""
    if not step.keys:
        if step.kind == "remove" or not isinstance(step.value, dict):
            raise UsageProblem("Job document must stay a mapping.")
        return copy.deepcopy(step.value)
    changed = copy.deepcopy(data)
    parent, key = get(changed, step.keys[:-1]), step.keys[-1]
    value = copy.deepcopy(step.value)
    if isinstance(parent, list):
        if step.kind == "insert":
            parent.insert(int(key), value)
        elif step.kind == "set":
            parent[int(key)] = value
        else:
            del parent[int(key)]
    elif step.kind == "remove":
        del parent[key]
    elif step.kind == "rename":
        items = [(value if name == key else name, item) for name, item in parent.items()]
        parent.clear()
        parent.update(items)
    elif parent is None:
        return make(data, Step("set", step.keys[:-1], {key: value}))
    else:
        parent[key] = value
    return changed


def same(one: Any, other: Any) -> bool:
    """Say whether two values are the same, by type too; 1 and 1.0 are."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        return number(one) == number(other) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def plain(value: Any, depth: int = 0) -> Any:
    """Return a JSON value as the document holds it.

    Raises:
        UsageProblem: if it is not JSON or nested too deep.
    """
    if depth > 80:
        raise UsageProblem("Patch value is nested too deep.")
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise UsageProblem("Patch value has a key that is no text.")
        return {key: plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return number(value)
    raise UsageProblem(f"Patch value of type `{type(value).__name__}` is not JSON.")


def _index(items: list[Any], key: str, keys: tuple[str, ...], most: int) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) <= most):
        raise UsageProblem(f"Patch path `{path_of(keys)}` does not exist in the document.")
    return int(key)
