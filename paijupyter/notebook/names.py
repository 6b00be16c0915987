"""The facts of a cell: which names it reads, binds and changes, as events in the order in which they happen.

What a call does to which name is decided later, when it is known what the name holds at that place.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from paijupyter.notebook import known

Kind = Literal["read", "bind", "delete", "change", "call"]
Names = frozenset[str]
NOTHING: Names = frozenset()
BUILTIN = frozenset(dir(builtins)) | {
    "__name__",
    "__file__",
    "__doc__",
    "__builtins__",
    "display",
    "get_ipython",
    "paicells",
}
ARGUMENT = "<argument>"  # stands for whatever a function is given
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happens while a cell runs.

    Attributes:
        kind: ``read``, ``bind``, ``delete``, ``change`` (of what the names refer to), ``call``.
        line: of the cell, from 1.
        names: what it is about; of a call the names that its receiver or function refers to.
        holds: what a bound value may refer to; of a call what its arguments refer to.
        text: how a person would point at it: ``model.fit``.
        certain: whether it happens whenever the cell runs; a read that is not may stay unresolved.
        bare: of a call: it is a statement of its own, so it is there for what it does.
        inplace: of a call: it says ``inplace=True``.
        empty: of a call: it has no arguments.
        module: of a bind: the module that is imported, or from which a name is.
        function: of a bind: what it does when it is called.
        origin: of a bind: dotted name of the call whose result it is, ``<generator>``, or "".
        plain: of a bind: it is a number, a text or the like if all these names are; None: it may be anything.
        method: of a call: it is one of an attribute.
        writes: of a call: it writes a file.
    """

    kind: Kind
    line: int
    names: Names
    holds: Names = NOTHING
    text: str = ""
    certain: bool = True
    bare: bool = False
    inplace: bool = False
    empty: bool = False
    module: str = ""
    function: Function | None = None
    origin: str = ""
    plain: Names | None = None
    method: bool = False
    writes: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """What a function, or the methods of a class, do when they are called.

    Attributes:
        reads: names outside of it that it reads, with a line of each.
        events: what it changes and calls; what it is given is named ``<argument>``.
        generator: whether calling it gives an iterator.
        methods: of a class, by name.
    """

    reads: Mapping[str, int] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    generator: bool = False
    methods: Mapping[str, Function] = field(default_factory=dict)


@dataclass(slots=True)
class Facts:
    """All that is known of one cell.

    Attributes:
        events: what happens, in order.
        reads: names that must come from elsewhere, each with its line.
        certain: those of them that are read whenever the cell runs.
        later: names that its functions read when they are called, with a line.
        binds: names it binds, and whether it does so whenever it runs.
        deleted: names that are gone after it.
        stars: modules of ``from m import *``, with level and line.
        unknown: what may bind or read any name (``exec``), with its line.
        asks: calls that wait for somebody at the keyboard, with their line.
        files: constants that look like paths, with their line.
        written: those that a call writes.
        awaits: whether ``await`` stands at its top level.
        futures: what it imports from ``__future__``, with its line.
        calls: whether a function may run while it runs.
    """

    events: list[Event] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    later: dict[str, int] = field(default_factory=dict)
    binds: dict[str, bool] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    stars: list[tuple[str, int, int]] = field(default_factory=list)
    unknown: list[tuple[int, str]] = field(default_factory=list)
    asks: list[tuple[int, str]] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    awaits: bool = False
    futures: list[tuple[int, str]] = field(default_factory=list)
    calls: bool = True


def holds(node: ast.expr | None) -> Names:
    """Return the names to whose objects the value of an expression may refer."""
    if isinstance(node, ast.Name):
        return frozenset([node.id])
    if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Await, ast.NamedExpr)):
        return holds(node.value)
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return holds_all(node.elts)
    if isinstance(node, ast.Dict):
        return holds_all(node.values)
    if isinstance(node, ast.IfExp):
        return holds(node.body) | holds(node.orelse)
    if isinstance(node, ast.BoolOp):
        return holds_all(node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult, ast.BitOr)):
        return holds(node.left) | holds(node.right)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in known.FRESH:
            return NOTHING
        return holds(node.func) | holds_all([*node.args, *(word.value for word in node.keywords)])
    if isinstance(node, (*_COMPREHENSIONS, ast.DictComp)):
        parts = [node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inner = {name for each in node.generators for name in target_names(each.target)}
        return holds_all([*parts, *(each.iter for each in node.generators)]) - inner
    if isinstance(node, ast.Lambda):
        return frozenset(part.id for part in ast.walk(node.body) if isinstance(part, ast.Name))
    return NOTHING


def holds_all(nodes: Iterable[ast.expr | None]) -> Names:
    """Return what any of several expressions may refer to."""
    return NOTHING.union(*map(holds, nodes))


def plain_if(node: ast.expr | None) -> Names | None:
    """Return the names that must be numbers or texts for the value to be one; None: it may be anything."""
    if isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare)):
        return NOTHING
    if isinstance(node, ast.Name):
        return frozenset([node.id])
    if isinstance(node, ast.UnaryOp):
        return plain_if(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known.FRESH:
        return None if node.func.id == "deepcopy" else NOTHING
    if isinstance(node, (ast.BinOp, ast.IfExp)):
        both = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.body, node.orelse]
        first, second = map(plain_if, both)
        return None if first is None or second is None else first | second
    return None


def origin(node: ast.expr | None) -> str:
    """Return the dotted name of the call that makes a value, ``<generator>``, or ""."""
    if isinstance(node, ast.GeneratorExp):
        return "<generator>"
    return known.dotted(node.func) if isinstance(node, ast.Call) else ""


def target_names(node: ast.expr) -> Iterator[str]:
    """Yield the names that a target of an assignment binds."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
