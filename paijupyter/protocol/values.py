"""Nodes to plain values, as the original server reads them, with the place of every one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paijupyter.errors import Problem
from paijupyter.protocol import scalars
from paijupyter.protocol.javascript import text_of
from paijupyter.protocol.source import Node

_YAML = "tag:yaml.org,2002:"
_MERGE = _YAML + "merge"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: its node, and the node of its key in a mapping."""

    node: Node
    key: Node | None = None

    @property
    def line(self) -> int:
        """1-based line: of the key where there is one."""
        return (self.key or self.node).line

    @property
    def column(self) -> int:
        """1-based column: of the key where there is one."""
        return (self.key or self.node).column


def pointer(path: str, key: str | int) -> str:
    """Return the JSON Pointer of a member."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def keys_of(path: str) -> list[str]:
    """Return the members a JSON Pointer names, from the root."""
    if not path:
        return []
    return [part.replace("~1", "/").replace("~0", "~") for part in path.lstrip("/").split("/")]


class Construction:
    """Makes values of nodes; afterwards ``places`` has the place of each, ``problems`` what is wrong."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.problems: list[Problem] = []

    def value(self, node: Node, path: str = "", key: Node | None = None) -> Any:
        """Return the value of a node and note the places of all in it."""
        self.places[path] = Place(node, key)
        if node.kind == "alias":
            return self._content(node.children[0], path)
        return self._content(node, path)

    def _content(self, node: Node, path: str) -> Any:
        if node.kind == "alias":
            return self._content(node.children[0], path)
        if node.kind == "scalar":
            return self._scalar(node, path)
        if node.tag not in (None, "!", _YAML + ("seq" if node.kind == "sequence" else "map")):
            self._unknown_tag(node, path)
        if node.kind == "sequence":
            items = enumerate(node.children)
            return [self.value(item, pointer(path, index)) for index, item in items]
        return self._mapping(node, path)

    def _scalar(self, node: Node, path: str) -> Any:
        if node.tag in (None, "!"):
            return node.text if node.style else scalars.resolve(node.text)
        if node.tag == _YAML + "str":
            return node.text
        if node.tag == _YAML + "null" and scalars.null(node.text):
            return None
        read = {
            _YAML + "bool": scalars.boolean,
            _YAML + "int": scalars.integer,
            _YAML + "float": scalars.floating,
            _YAML + "timestamp": scalars.timestamp,
        }.get(node.tag)
        value = read(node.text) if read else None
        if value is None:
            self._unknown_tag(node, path)
            return node.text
        return value

    def _mapping(self, node: Node, path: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[Node] = []
        lines: dict[str, int] = {}
        for key, item in node.entries:
            if key.kind == "scalar" and (key.tag == _MERGE or _is_merge(key)):
                merged += self._merge_sources(item, path)
                continue
            name = self._key(key)
            where = pointer(path, name)
            if name in lines:
                message = f"Key `{name}` stands twice; the first is in line {lines[name]}."
                self._wrong("duplicate-key", message, key, where, "Remove one of them.")
                continue
            lines[name] = key.line
            found[name] = self.value(item, where, key)
        for source in merged:
            for key, item in source.entries:
                name = self._key(key)
                if name not in found:
                    found[name] = self.value(item, pointer(path, name), key)
        return found

    def _merge_sources(self, node: Node, path: str) -> list[Node]:
        target = _target(node)
        sources = [_target(item) for item in target.children] if target.kind == "sequence" else [target]
        if any(source.kind != "mapping" for source in sources):
            self._wrong("merge", "Key `<<` needs a mapping or a list of mappings.", node, path)
            return []
        return sources

    def _key(self, node: Node) -> str:
        """A key is text in JavaScript, whatever it was."""
        return text_of(Construction().value(node))

    def _unknown_tag(self, node: Node, path: str) -> None:
        name = (node.tag or "").replace(_YAML, "!!")
        message = f"Tag `{name}` cannot be used for this value in a job document."
        self._wrong("yaml-tag", message, node, path, "Remove the tag.")

    def _wrong(self, code: str, message: str, node: Node, path: str, hint: str = "") -> None:
        self.problems.append(Problem("error", code, message, path, node.line, node.column, hint=hint))


def _target(node: Node) -> Node:
    while node.kind == "alias":
        node = node.children[0]
    return node


def _is_merge(key: Node) -> bool:
    return key.tag is None and not key.style and key.text == "<<"
