"""Replace expressions of a source text; every line keeps its number, every other byte stays."""

from __future__ import annotations

import ast
import io
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """An expression and the text that takes its place."""

    node: ast.expr
    text: str


def rewritten(source: str, edits: Sequence[Edit]) -> str:
    """Return the source with its edits.

    Args:
        source: the text whose tree has the nodes.
        edits: none of them inside another.

    >>> tree = ast.parse("x = f(1) + 2")
    >>> rewritten("x = f(1) + 2", [Edit(tree.body[0].value.left, "g()")])
    'x = g() + 2'
    """
    # As Python's parser counts lines; `splitlines` also splits at form feeds. Its columns are bytes.
    lines = [line.encode() for line in io.StringIO(source, newline="").readlines()]
    for edit in sorted(edits, key=lambda each: (each.node.lineno, each.node.col_offset), reverse=True):
        node = edit.node
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        text = edit.text.encode()
        if last > first:  # The lines that go stay as empty ones, in brackets where they may stand.
            text = b"(" + text + b"\n" * (last - first) + b")"
        head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset or 0 :]
        lines[first : last + 1] = (head + text + tail).splitlines(keepends=True)
    return b"".join(lines).decode()
