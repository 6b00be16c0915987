"""A cell as plain Python, line for line: IPython's own transformer says what its syntax means.

The one module below ``magics`` that knows IPython, and only the grammar of its cells. It is imported when a
cell is not plain Python already. IPython's transformer drops lines (an empty one at the start, a magic that
goes over several); here each line keeps its number, so that a traceback says the line of the notebook.
"""

from __future__ import annotations

import ast
import functools
import warnings
from dataclasses import dataclass
from typing import Any

_MOST_STEPS = 500  # as IPython itself: more magics than that in one cell end its transformation


@dataclass(frozen=True, slots=True)
class CellMagic:
    """A cell that begins with ``%%name``.

    Attributes:
        name: of the magic.
        line: what stands behind it.
        body: all that follows.
        number: line of the cell on which the magic stands, from 1.
    """

    name: str
    line: str
    body: str
    number: int


def parsed(source: str) -> ast.Module:
    """Parse Python as a cell may have it: ``await`` may stand at its top level.

    Raises:
        SyntaxError: it is not valid.
        ValueError: it has a null byte.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A warning about the user's code belongs into the job's log.
        return ast.parse(source)


def cell_magic(source: str) -> CellMagic | None:
    """Return the cell magic that a cell is, or None; its body ends with a line end, as IPython has it."""
    lines = (source if source.endswith("\n") else f"{source}\n").splitlines(keepends=True)
    empty = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not lines or not lines[empty].lstrip().startswith("%%"):
        return None
    cleaned = _transformer().line_transforms[0](_cleaned(lines[empty:]))
    try:
        (call,) = parsed("".join(cleaned)).body
        name, line, body = (ast.literal_eval(word) for word in call.value.args)  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, AttributeError):
        return None  # `%%time?` and the like: a question, no cell magic.
    return CellMagic(name, line, body, empty + 1)


@functools.lru_cache(maxsize=8192)
def plain(source: str) -> tuple[str, ast.Module | None]:
    """Return a cell without a cell magic as Python, with as many lines, and its tree; None where it has none.

    What is IPython's becomes calls of ``get_ipython()``, as IPython itself makes them.
    """
    tree = (
        None if source.lstrip().startswith("In [") else _tree(source)
    )  # A pasted prompt is an annotation, too.
    if tree is not None:
        return source, tree
    lines = (source if source.endswith("\n") else f"{source}\n").splitlines(keepends=True)
    empty = next((number for number, line in enumerate(lines) if line.strip()), 0)
    done = _cleaned(lines[empty:])
    transformer = _transformer()
    for _ in range(_MOST_STEPS):
        changed, after = transformer.do_one_token_transform(done)
        if not changed:
            break
        done = _as_many(done, after)
        text = "".join(["\n"] * empty + done)
        tree = _tree(text)
        if tree is not None:  # Python through and through; to look once more is what takes longest.
            return text, tree
    text = "".join(["\n"] * empty + done)
    return text, _tree(text)


def _tree(source: str) -> ast.Module | None:
    try:
        return parsed(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _cleaned(lines: list[str]) -> list[str]:
    """Take away common indentation and pasted prompts."""
    for transform in _transformer().cleanup_transforms:
        lines = transform(lines)
    return lines


def _as_many(before: list[str], after: list[str]) -> list[str]:
    """Put empty lines behind what got shorter."""
    lost = len(before) - len(after)
    if lost <= 0:
        return after
    first = next(
        (n for n, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(after) - 1
    )
    return [*after[: first + 1], *["\n"] * lost, *after[first + 1 :]]


@functools.cache
def _transformer() -> Any:
    from IPython.core.inputtransformer2 import TransformerManager

    return TransformerManager()
