"""The rows of a form: the table of fields, each with the type of its value from the writing model.

A form, whatever draws it, needs nothing else: a new row of the table appears in every form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from paijupyter.protocol import fields as _table
from paijupyter.protocol.field import Field

_DEPTH = 4
_KEPT = ("type", "enum", "const", "minimum", "maximum", "pattern", "minLength", "maxLength", "format")


@lru_cache(maxsize=1)
def form_rows() -> tuple[dict[str, Any], ...]:
    """Return one object per row of the table, in its order.

    Each has the members of :class:`Field` and ``section`` (``what``, ``role``, ``with`` or ``advanced``: the
    part of a form it belongs to) and ``schema``, a JSON schema of its value without references. The items of
    a list of several kinds have ``kinds`` instead: ``key``, the member that tells them apart, and ``of``, a
    schema for each of its values.
    """
    from paijupyter.protocol.models import document_schema

    whole = document_schema()
    return tuple(
        {
            **asdict(row),
            "profiles": list(row.profiles),
            "elsewhere": list(row.elsewhere),
            "section": section(row),
            "schema": _value(whole, row),
        }
        for row in _table.FIELDS
    )


def section(row: Field) -> str:
    """Return the part of a form that a row belongs to."""
    if any(part in row.path for part in ("/taskRoles/*", "/roles/*", "/prerequisites/*")):
        return "role"
    if row.path in ("/name", "/taskRoles"):
        return "what"
    return "advanced" if row.level == "advanced" else "with"


def _value(whole: Mapping[str, Any], row: Field) -> dict[str, Any]:
    nodes = list(_alternatives(whole, whole))
    for key in row.path.strip("/").split("/"):
        nodes = [found for node in nodes for found in _members(whole, node, key)]
    if row.widget != "kinds":
        return _plain(whole, nodes, _DEPTH)
    (items,) = (list(_alternatives(whole, node["items"])) for node in nodes)
    return {"type": "array", "items": {"type": "object", "kinds": _kinds(whole, items, row.elsewhere)}}


def _kinds(
    whole: Mapping[str, Any], alternatives: list[Mapping[str, Any]], elsewhere: tuple[str, ...]
) -> dict[str, Any]:
    """Return the kinds of a list's items by the value of the member that tells them apart."""
    said = [
        {key: each.get("enum") or [each["const"]] for key, each in node["properties"].items() if _tells(each)}
        for node in alternatives
    ]
    key = next(
        key for key in said[0] if all(key in each for each in said) and key in alternatives[0]["required"]
    )
    return {
        "key": key,
        "of": {
            kind: _plain(whole, [node], _DEPTH - 1)
            for node, each in zip(alternatives, said, strict=True)
            for kind in each[key]
            if kind not in elsewhere
        },
    }


def _tells(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("const"), str) or "enum" in schema


def _alternatives(whole: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what a node can be, references followed; that it may be null is left out."""
    if "$ref" in node:
        yield from _alternatives(whole, whole["$defs"][node["$ref"].rpartition("/")[2]])
    elif "anyOf" in node or "oneOf" in node:
        for each in node.get("anyOf") or node["oneOf"]:
            yield from _alternatives(whole, each)
    elif node.get("type") != "null":
        yield node


def _members(whole: Mapping[str, Any], node: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    if key == "*":
        inner = [*node.get("patternProperties", {}).values(), *([node["items"]] if "items" in node else [])]
    else:
        inner = [node["properties"][key]] if key in node.get("properties", {}) else []
    for each in inner:
        yield from _alternatives(whole, each)


def _plain(whole: Mapping[str, Any], nodes: list[Mapping[str, Any]], depth: int) -> dict[str, Any]:
    """Return the schema of the first alternative; a form could not tell others from it."""
    node = nodes[0] if nodes else {}
    plain: dict[str, Any] = {key: node[key] for key in _KEPT if key in node}
    if depth == 0:
        return plain
    below = {
        key: {
            **_plain(whole, list(_alternatives(whole, each)), depth - 1),
            **{word: each[word] for word in ("description", "examples") if word in each},
        }
        for key, each in node.get("properties", {}).items()
    }
    if below:
        plain["properties"] = below
        plain["required"] = list(node.get("required", ()))
    if isinstance(node.get("items"), Mapping):
        plain["items"] = _plain(whole, list(_alternatives(whole, node["items"])), depth - 1)
    for pattern, each in node.get("patternProperties", {}).items():
        plain["names"] = pattern
        plain["values"] = _plain(whole, list(_alternatives(whole, each)), depth - 1)
    return plain
