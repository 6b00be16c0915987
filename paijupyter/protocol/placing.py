"""Where an edit goes in the text, and how the new value is written there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from paijupyter.protocol.patching import Step, get, path_of
from paijupyter.protocol.source import Node
from paijupyter.protocol.values import Place
from paijupyter.protocol.writing import block, inline, is_plain_text, key_text


@dataclass(frozen=True, slots=True)
class Edited:
    """A text that is edited, with the places of its values."""

    text: str
    places: dict[str, Place]

    @property
    def newline(self) -> str:
        """The line end of the text."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def with_span(self, start: int, end: int, new: str) -> str:
        """Return the text with a span of it replaced."""
        return self.text[:start] + new + self.text[end:]

    def line_start(self, offset: int) -> int:
        """Return where the line of a character starts."""
        start = self.text.rfind("\n", 0, offset) + 1
        # A byte order mark is no part of the first line.
        return start + 1 if self.text[start : start + 1] == "\ufeff" else start

    def line_end(self, offset: int) -> int:
        """Return the offset behind the line end of a character's line."""
        end = self.text.find("\n", offset)
        return len(self.text) if end < 0 else end + 1

    def end_of(self, node: Node) -> int:
        """Return where a value ends, without blank lines behind a block scalar."""
        while node.children and node.style not in ("[", "{") and node.kind != "alias":
            node = node.children[-1]
        if node.style in ("|", ">"):
            return node.start + len(self.text[node.start : node.end].rstrip())
        return node.end

    def is_flow(self, path: str) -> bool:
        """Say whether a place is inside of ``[ ]`` or ``{ }``."""
        while path:
            path = path.rpartition("/")[0]
            if path in self.places and self.places[path].node.style in ("[", "{"):
                return True
        return False


def with_step(edited: Edited, step: Step, wanted: Any) -> Iterator[str]:
    """Yield texts with one change made; none where the place is shared with another one."""
    parent = path_of(step.keys[:-1])
    place = edited.places.get(parent)
    if place is None or place.node.kind == "alias":
        return
    if step.kind == "set" and step.path in edited.places:
        yield from replaced(edited, step.path, step.value)
    elif place.node.kind == "scalar":
        yield from replaced(edited, parent, get(wanted, step.keys[:-1]))
    elif step.kind == "rename":
        yield from _renamed(edited, step)
    elif step.kind == "remove":
        yield from _removed(edited, step, place.node, get(wanted, step.keys[:-1]))
    elif not place.node.children and not edited.is_flow(parent) and parent:
        yield from replaced(edited, parent, get(wanted, step.keys[:-1]))
    else:
        yield from _added(edited, step, place.node)


# --- replacing a value


def replaced(edited: Edited, path: str, value: Any) -> Iterator[str]:
    """Yield texts with the value at a path replaced."""
    place = edited.places[path]
    node = place.node
    start, end = node.start, edited.end_of(node)
    if edited.is_flow(path):
        yield edited.with_span(start, end, _spaced(edited, start, _in_style(node, value, flow=True)))
        return
    is_block = bool(value) and isinstance(value, (dict, list))
    was_block = bool(node.children) and node.style not in ("[", "{")
    if not path:
        yield edited.with_span(start, end, _joined(edited, block(value), 0))
        return
    if place.key is None:
        lines = block(value) if is_block else _scalar_lines(node, value)
        # Behind the dash: the first line stays there, however far that is, and the others stand below it.
        begins = start - edited.line_start(start) + len(_spaced(edited, start, ""))
        column = begins if is_block else _dash(edited, node)
        yield edited.with_span(start, end, _spaced(edited, start, _joined(edited, lines, column)))
        return
    key_column = place.key.column - 1
    if not is_block and not was_block:
        lines = _scalar_lines(node, value)
        yield edited.with_span(start, end, _spaced(edited, start, _joined(edited, lines, key_column)))
        return
    colon = edited.text.find(":", place.key.end)
    between = edited.text[colon + 1 : start].rstrip()
    if not is_block:
        text = _joined(edited, _scalar_lines(node, value), key_column)
        comment = f"  {between.strip()}" if between.strip() else ""
        yield edited.with_span(colon + 1, end, f" {text}{comment}")
        return
    column = key_column + 2
    if was_block and (node.column - 1 > key_column or isinstance(value, list)):
        column = node.column - 1
    below = edited.newline + " " * column
    yield edited.with_span(colon + 1, end, between + below + _joined(edited, block(value), column))


def _spaced(edited: Edited, start: int, text: str) -> str:
    """An empty value stands right behind its colon or dash."""
    return f" {text}" if start and edited.text[start - 1] in ":-?" else text


def _joined(edited: Edited, lines: list[str], column: int) -> str:
    """Lines for a place whose first line is already begun."""
    below = edited.newline + " " * column
    return "".join(
        line if index == 0 else (below + line if line else edited.newline) for index, line in enumerate(lines)
    )


def _scalar_lines(node: Node, value: Any) -> list[str]:
    if isinstance(value, str) and node.kind == "scalar" and node.style not in ("|", ">"):
        return [_in_style(node, value, flow=False)]
    return block(value)


def _in_style(node: Node, value: Any, *, flow: bool) -> str:
    """A value on one line; a text quoted like the one it replaces, where that is safe."""
    if isinstance(value, str) and node.kind == "scalar":
        if node.style == "'" and re.fullmatch(r"[ -~\xa1-\ud7ff]*", value):
            return "'" + value.replace("'", "''") + "'"
        if node.style == "" and is_plain_text(value) and not (flow and re.search(r"[,\[\]{}]", value)):
            return value
    return inline(value)


def _renamed(edited: Edited, step: Step) -> Iterator[str]:
    key = edited.places[step.path].key
    if key is not None:
        yield edited.with_span(key.start, key.end, key_text(step.value))


# --- adding


def _added(edited: Edited, step: Step, parent: Node) -> Iterator[str]:
    if parent.kind == "mapping":
        if parent.style == "{":
            yield _into_flow(edited, parent, len(parent.children), _entry(step))
        elif parent.children:
            lines = block({step.keys[-1]: step.value})
            yield from _below(edited, parent, lines, parent.children[0].column - 1)
        return
    index = int(step.keys[-1])
    if parent.style == "[":
        yield _into_flow(edited, parent, index, inline(step.value))
        return
    lines = block([step.value])
    if index == len(parent.children):
        yield from _below(edited, parent, lines, _dash(edited, parent.children[0]))
        return
    column = _dash(edited, parent.children[index])
    start = edited.line_start(_dash_offset(edited, parent, index))
    text = " " * column + _joined(edited, lines, column) + edited.newline
    yield edited.with_span(start, start, text)


def _entry(step: Step) -> str:
    return f"{key_text(step.keys[-1])}: {inline(step.value)}"


def _into_flow(edited: Edited, parent: Node, index: int, text: str) -> str:
    if not parent.children:
        return edited.with_span(
            parent.start, parent.end, parent.style + text + ("}" if parent.style == "{" else "]")
        )
    if index < len(parent.children):
        start = parent.children[index].start
        return edited.with_span(start, start, f"{text}, ")
    end = parent.children[-1].end
    return edited.with_span(end, end, f", {text}")


def _below(edited: Edited, parent: Node, lines: list[str], column: int) -> Iterator[str]:
    """Lines behind the last one of a block; behind its blank lines where those belong to a text."""
    for end in (edited.end_of(parent), max(parent.end - 1, 0)):
        at = edited.line_end(end)
        before = "" if at == 0 or edited.text[at - 1] == "\n" else edited.newline
        text = before + " " * column + _joined(edited, lines, column)
        yield edited.with_span(at, at, text if before else text + edited.newline)


# --- removing


def _removed(edited: Edited, step: Step, parent: Node, rest: Any) -> Iterator[str]:
    if not rest:
        yield from replaced(edited, path_of(step.keys[:-1]), rest)
        return
    if parent.kind == "mapping":
        place = edited.places[step.path]
        keys = list(parent.children[::2])
        index = next((number for number, key in enumerate(keys) if key is place.key), -1)
        if index < 0:
            return
        starts = [key.start for key in keys]
        ends = [value.end if parent.style else edited.end_of(value) for value in parent.children[1::2]]
    else:
        index = int(step.keys[-1])
        starts = [
            node.start if parent.style else _dash_offset(edited, parent, number)
            for number, node in enumerate(parent.children)
        ]
        ends = [node.end if parent.style else edited.end_of(node) for node in parent.children]
    if parent.style:
        if index:
            yield edited.with_span(ends[index - 1], ends[index], "")
        else:
            yield edited.with_span(starts[0], starts[1], "")
        return
    line = edited.line_start(starts[index])
    if edited.text[line : starts[index]].strip(" "):
        # The first of several, on the line of the dash or key before it: the next one takes its place.
        if index + 1 < len(starts):
            yield edited.with_span(starts[index], starts[index + 1], "")
        return
    yield edited.with_span(line, edited.line_end(max(ends[index], starts[index])), "")


def _dash_offset(edited: Edited, parent: Node, index: int) -> int:
    """Offset of the dash before an item."""
    start = edited.end_of(parent.children[index - 1]) if index else parent.start
    return edited.text.rfind("-", start, max(parent.children[index].start, start + 1))


def _dash(edited: Edited, item: Node) -> int:
    """0-based column of the dash before an item."""
    offset = edited.text.rfind("-", 0, item.start)
    return offset - edited.line_start(offset) if offset >= 0 else 0
