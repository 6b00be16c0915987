"""Check values against the part of JSON Schema that the routes' schemas use.

Kept small on purpose: importing a full validator would cost the engine more than the rest of its start. A
property test holds it against one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paijupyter.errors import Problem, UsageProblem

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def require(schema: Mapping[str, Any], value: Any) -> None:
    """Refuse a value that does not have the shape.

    Raises:
        UsageProblem: with one problem per place.
    """
    found = list(mismatches(schema, value))
    if found:
        raise UsageProblem(f"The request is not valid: {found[0]}", problems=found)


def mismatches(schema: Mapping[str, Any], value: Any, path: str = "") -> Iterator[Problem]:
    """Yield everything in which a value differs from a schema."""
    if "anyOf" in schema:
        yield from _any_of(schema["anyOf"], value, path)
        return
    kinds = schema.get("type")
    if kinds is not None:
        names = [kinds] if isinstance(kinds, str) else list(kinds)
        if not any(_is(name, value) for name in names):
            yield _problem(path, f"must be {' or '.join(names)}")
            return
    if "enum" in schema and value not in schema["enum"]:
        yield _problem(path, f"must be one of {', '.join(map(str, schema['enum']))}")
    if isinstance(value, str):
        yield from _string(schema, value, path)
    elif isinstance(value, dict):
        yield from _object(schema, value, path)
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            most = schema.get("maxItems")
            yield _problem(path, f"needs from {schema.get('minItems', 0)} to {most or 'any number of'} items")
        for index, item in enumerate(value):
            yield from mismatches(schema.get("items", {}), item, f"{path}/{index}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield _problem(path, f"must be at least {schema['minimum']}")
        if value > schema.get("maximum", value):
            yield _problem(path, f"must be at most {schema['maximum']}")


def _any_of(schemas: list[Mapping[str, Any]], value: Any, path: str) -> Iterator[Problem]:
    tries = [list(mismatches(schema, value, path)) for schema in schemas]
    if all(tries):
        yield from min(tries, key=len)  # the form that was most likely meant


def _is(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _string(schema: Mapping[str, Any], value: str, path: str) -> Iterator[Problem]:
    if len(value) < schema.get("minLength", 0):
        yield _problem(path, "must not be empty")
    if len(value) > schema.get("maxLength", len(value)):
        yield _problem(path, f"must have at most {schema['maxLength']} characters")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield _problem(path, f"must match {schema['pattern']}")


def _object(schema: Mapping[str, Any], value: dict[str, Any], path: str) -> Iterator[Problem]:
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield _problem(path, f"needs `{name}`")
    for name, item in value.items():
        below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name in properties:
            yield from mismatches(properties[name], item, below)
        elif rest is False:
            yield _problem(below, "is not known here")
        elif isinstance(rest, Mapping):
            yield from mismatches(rest, item, below)


def _problem(path: str, what: str) -> Problem:
    return Problem("error", "invalid-request", f"`{path or '/'}` {what}.", path)
