"""YAML text to nodes with their places, or to every reason why it cannot be read.

PyYAML scans and parses; composing is ours, so that depth and aliases are bounded and places are kept.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any, Literal

from yaml import events
from yaml.error import Mark, MarkedYAMLError, YAMLError
from yaml.parser import Parser
from yaml.reader import Reader, ReaderError
from yaml.scanner import Scanner

from paijupyter.errors import InvalidDocument, Problem

LARGEST = 1024 * 1024
_DEEPEST = 100
_MOST_NODES = 200_000

_BREAKS = "\0\r\n\x85\u2028\u2029"

Kind = Literal["scalar", "sequence", "mapping", "alias"]


@dataclass(slots=True)
class Node:
    """A piece of YAML with its place in the text.

    Attributes:
        children: items of a sequence; keys and values of a mapping in turn; the target of an alias.
        start, end: offsets of its characters; the end of a block is that of its last child.
        line, column: 1-based place of its start.
        style: quote or block character of a scalar; "" for a plain one and for block collections;
            ``{`` or ``[`` for flow collections.
        size: number of nodes in it, aliases counted as what they stand for.
    """

    kind: Kind
    start: int
    end: int
    line: int
    column: int
    tag: str | None = None
    text: str = ""
    style: str = ""
    children: tuple[Node, ...] = ()
    anchor: str | None = None
    size: int = 1

    @property
    def entries(self) -> list[tuple[Node, Node]]:
        """Keys and values of a mapping."""
        return list(zip(self.children[::2], self.children[1::2], strict=True))


def decode(text: str | bytes) -> str:
    """Return the text of a document.

    Raises:
        InvalidDocument: if it is too large or not in UTF-8 (or UTF-16 with a byte order mark).
    """
    if len(text) > LARGEST:
        size = f"{len(text) / LARGEST:.1f} MiB"
        raise _refused("too-large", f"Job document is {size} large; at most 1 MiB is read.", _LARGE_HINT)
    if isinstance(text, str):
        return text
    utf_16 = text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return text.decode("utf-16" if utf_16 else "utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        message = "Job document is not text in UTF-8."
        raise _refused("not-utf-8", message, "Save the file as UTF-8.", line) from None


def parse(text: str) -> Node:
    """Return the root node of the one YAML document in a text.

    Raises:
        InvalidDocument: if it is not YAML, has no or several documents, is nested too deep, or its aliases
            stand for too much.
    """
    # Like js-yaml: the last line of a block text ends, also where the file does not.
    ended = text if text.endswith(("\n", "\r")) else text + "\n"
    try:
        return _Composer(ended).document()
    except ReaderError as error:
        before = text[: int(error.position)]
        message = f"Character U+{_code_point(error.character):04X} is not allowed in YAML."
        hint = "Remove it, or write it as an escape in double quotes."
        raise _refused("yaml-syntax", message, hint, before.count("\n") + 1) from None
    except MarkedYAMLError as error:
        raise _syntax(error) from None
    except (YAMLError, ValueError, OverflowError) as error:
        # The scanner converts numbers of escapes and directives without looking at them first.
        raise _refused("yaml-syntax", f"YAML cannot be read: {error}.") from None


class _Composer(Reader, Scanner, Parser):
    """Events of PyYAML to nodes."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        self._text = text
        self._anchors: dict[str, Node | None] = {}

    def scan_to_next_token(self) -> None:
        """Skip blanks, comments and, unlike PyYAML, also tabs that indent nothing.

        Those are tabs behind something on the same line, in a blank or comment line, and all in flow
        collections: JSON likes them.
        """
        super().scan_to_next_token()
        while self.peek() == "\t" and self._is_harmless():
            while self.peek() in " \t":
                self.forward()
            super().scan_to_next_token()

    def scan_plain_spaces(self, indent: Any, start_mark: Any) -> Any:
        """Take tabs inside of an unquoted text as part of it, unlike PyYAML."""
        length = 0
        while self.peek(length) in " \t":
            length += 1
        blanks = str(self.buffer[self.pointer : self.pointer + length])
        if "\t" in blanks:
            self.forward(length)
            if self.peek() not in _BREAKS:
                self.allow_simple_key = False
                return [blanks]
        chunks = super().scan_plain_spaces(indent, start_mark)
        while chunks and self.peek() in " \t":
            self.forward()
        return chunks

    def _next(self) -> Any:
        return self.get_event()  # type: ignore[no-untyped-call]

    def _is_harmless(self) -> bool:
        if self.flow_level or self.buffer[self.pointer - self.column : self.pointer].strip(" \t\ufeff"):
            return True
        length = 0
        while self.peek(length) in " \t":
            length += 1
        return self.peek(length) in _BREAKS + "#"

    def document(self) -> Node:
        """Return the root of the only document."""
        self._next()
        if self.check_event(events.StreamEndEvent):
            raise _refused("empty-document", "Job document is empty.")
        self._next()
        root = self._node(0)
        self._next()
        if not self.check_event(events.StreamEndEvent):
            mark = self._next().start_mark
            raise _refused(
                "several-documents",
                "Job document must be one YAML document; a second one starts here.",
                "Remove everything from this `---` on, or submit each part by itself.",
                mark.line + 1,
            )
        return root

    def _node(self, depth: int) -> Node:
        event = self._next()
        mark: Mark = event.start_mark
        if depth > _DEEPEST:
            raise _refused("too-deep", f"YAML is nested deeper than {_DEEPEST} levels.", "", mark.line + 1)
        if isinstance(event, events.AliasEvent):
            return self._alias(event)
        node = _new(event)
        if event.anchor is not None:
            node.anchor = event.anchor
            self._anchors[event.anchor] = None
        if isinstance(event, events.ScalarEvent):
            node.text, node.style = event.value, event.style or ""
        else:
            self._fill(node, event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _fill(self, node: Node, start: Any, depth: int) -> None:
        children = []
        while not self.check_event(events.SequenceEndEvent, events.MappingEndEvent):
            child = self._node(depth + 1)
            children.append(child)
            node.size += child.size
            if node.size > _MOST_NODES:
                raise _refused(
                    "too-many-nodes",
                    f"YAML stands for more than {_MOST_NODES} values.",
                    "Aliases count as what they stand for.",
                    node.line,
                )
        end = self._next()
        node.children = tuple(children)
        if start.flow_style:
            node.style = "[" if node.kind == "sequence" else "{"
            node.end = end.end_mark.index
        elif children:
            node.end = max(child.end for child in children)
        else:
            node.end = node.start

    def _alias(self, event: Any) -> Node:
        line = event.start_mark.line + 1
        if event.anchor not in self._anchors:
            raise _refused("yaml-syntax", f"Alias `*{event.anchor}` has no anchor before it.", "", line)
        target = self._anchors[event.anchor]
        if target is None:
            raise _refused(
                "yaml-syntax", f"Alias `*{event.anchor}` stands inside of what it repeats.", "", line
            )
        node = _new(event)
        node.children, node.size = (target,), target.size
        return node


def _new(event: Any) -> Node:
    kinds: dict[type, Kind] = {
        events.ScalarEvent: "scalar",
        events.SequenceStartEvent: "sequence",
        events.MappingStartEvent: "mapping",
        events.AliasEvent: "alias",
    }
    start, end = event.start_mark, event.end_mark
    tag = getattr(event, "tag", None)
    return Node(kinds[type(event)], start.index, end.index, start.line + 1, start.column + 1, tag)


_LARGE_HINT = "Code and data belong into the trainer package, not into the document."
_HINTS = (
    ("mapping values are not allowed", "A text with `: ` in it needs quotes; a key needs its `:`."),
    ("could not find expected ':'", "A key needs `:` and a value; check the indentation."),
    ("expected <block end>", "Check the indentation of this line and of the one before."),
    ("expected ',' or", "A `[` or `{` before it is not closed."),
    ("that cannot start any token", "Put quotes around this text."),
    ("found unexpected end of stream", "A quote is opened here and never closed."),
)


_WORDS = (
    ("but found '<block mapping start>'", "this line is indented otherwise than what it belongs to"),
    ("expected <block end>", "this does not continue what stands before it"),
    ("but got '<stream end>'", "the text ends inside of `[ ]` or `{ }`"),
    ("expected the node content", "a value is missing here"),
    ("sequence entries are not allowed", "a list must start on a line of its own"),
)


def _syntax(error: MarkedYAMLError) -> InvalidDocument:
    mark, opened = error.problem_mark or error.context_mark, error.context_mark
    what = (error.problem or error.context or "it cannot be read").strip()
    if "end of stream" in what and opened is not None:
        mark = opened
    hint = next((hint for start, hint in _HINTS if start in what), "")
    if "'\\t'" in what:
        message, hint = "Tab stands where YAML wants spaces.", "Indent with spaces."
    else:
        what = next((words for start, words in _WORDS if start in what), what)
        message = f"YAML is not valid: {what}."
        if opened is not None:
            hint = hint.replace("before it", f"in line {opened.line + 1}")
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    return _refused("yaml-syntax", message, hint, line, column)


def _code_point(character: Any) -> int:
    return character if isinstance(character, int) else ord(character)


def _refused(
    code: str, message: str, hint: str = "", line: int | None = None, column: int | None = None
) -> InvalidDocument:
    return InvalidDocument([Problem("error", code, message, line=line, column=column, hint=hint)])
