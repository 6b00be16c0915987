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

Kind = Literal["read", "bind", "delete", "change", "link", "item", "call"]
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
        kind: ``read``, ``bind``, ``delete``, ``change`` (of what the names refer to), ``link`` (they may
            share what they refer to), ``item`` (one of it is read), ``call``.
        line: of the cell, from 1.
        names: what it is about; of a call the names that its receiver or function refers to.
        holds: what a bound value may refer to; of a call what its arguments refer to.
        text: how a person would point at it: ``model.fit``; of a bind the dotted name of the value, or "".
        certain: whether it happens whenever the cell runs; a read that is not may stay unresolved.
        bare: of a call: it is a statement of its own, so it is there for what it does.
        inplace: of a call: it says ``inplace=True``.
        empty: of a call: it has no arguments.
        seeded: of a call: it says from which random state it draws.
        module: of a bind: the module that is imported, or from which a name is; of what a function does, the
            module that it has imported itself, and ``text`` begins with its true name.
        function: of a bind: what it does when it is called.
        origin: of a bind: dotted name of the call whose result it is, ``<generator>``, or "".
        plain: of a bind: it is a number, a text or the like if all these names are; None: it may be anything.
        method: of a call: it is one of an attribute.
        writes: of a call: it writes a file.
        opens: of a bind: paths, and names of paths, that are written by what changes it.
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
    seeded: bool = False
    module: str = ""
    function: Function | None = None
    origin: str = ""
    plain: Names | None = None
    method: bool = False
    writes: bool = False
    opens: tuple[Names, Names] = (NOTHING, NOTHING)


@dataclass(frozen=True, slots=True)
class Function:
    """What a function, or the methods of a class, do when they are called.

    Attributes:
        reads: names outside of it that it reads, with a line of each.
        events: what it changes and calls; what it is given is named ``<argument>``.
        generator: whether calling it gives an iterator.
        methods: of a class, by name.
        is_class: whether calling it makes an object of it.
        gives: names outside of it to whose objects its result, or an object of the class, may refer.
        keeps: whether it has a state of its own, which a call may change: a default that is a list, a count;
            of a class whether its objects share what may change.
        own: whether a method changes its own object.
        cached: whether it gives the same object again (``lru_cache``).
        restless: of a class: reading one of its objects (an item, its length) may change it.
    """

    reads: Mapping[str, int] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    generator: bool = False
    methods: Mapping[str, Function] = field(default_factory=dict)
    is_class: bool = False
    gives: Names = NOTHING
    keeps: bool = False
    own: bool = False
    cached: bool = False
    restless: bool = False


@dataclass(slots=True)
class Facts:
    """All that is known of one cell.

    Attributes:
        events: what happens, in order.
        reads: names that must come from elsewhere, each with its line.
        certain: those of them that are read whenever the cell runs.
        used: all names that it or a function of it reads, also those that it binds itself.
        later: names that its functions read when they are called, with a line.
        binds: names it binds, and whether it does so whenever it runs.
        partly: names to whose modules it adds one (``import xml.dom``): what bound them before is needed.
        deleted: names that are gone after it.
        stars: modules of ``from m import *``, with level and line.
        unknown: what may bind or read any name (``exec``), with its line.
        lists: what may read any name and binds none (``dir()``), with its line.
        mentions: words of texts that may be read as names (``df.query("x > @y")``), with a line.
        asks: calls that wait for somebody at the keyboard, with their line.
        files: words of constants, any of which may be the path of a file, with their line.
        written: those that a call writes.
        awaits: whether ``await`` stands at its top level.
        futures: what it imports from ``__future__``, with its line.
        calls: whether a function may run while it runs.
    """

    events: list[Event] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    later: dict[str, int] = field(default_factory=dict)
    binds: dict[str, bool] = field(default_factory=dict)
    partly: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    stars: list[tuple[str, int, int]] = field(default_factory=list)
    unknown: list[tuple[int, str]] = field(default_factory=list)
    lists: list[tuple[int, str]] = field(default_factory=list)
    mentions: dict[str, int] = field(default_factory=dict)
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
    if isinstance(node, ast.NamedExpr):
        return holds(node.value) | holds(node.target)
    if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Await)):
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
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        return NOTHING
    if isinstance(node, ast.Compare):  # Of arrays it is an array.
        if all(isinstance(each, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for each in node.ops):
            return NOTHING
        return _all_plain_if([node.left, *node.comparators])
    if isinstance(node, ast.Name):
        return frozenset([node.id])
    if isinstance(node, ast.UnaryOp):
        return plain_if(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known.FRESH:
        if node.func.id in ("abs", "divmod", "pow", "round", "sum"):  # Of arrays they give an array.
            return _all_plain_if(node.args)
        return None if node.func.id == "deepcopy" else NOTHING
    if isinstance(node, ast.BinOp):
        return _all_plain_if([node.left, node.right])
    if isinstance(node, ast.IfExp):
        return _all_plain_if([node.body, node.orelse])
    return None


def _all_plain_if(nodes: Iterable[ast.expr]) -> Names | None:
    found = [plain_if(node) for node in nodes]
    return None if None in found else NOTHING.union(*filter(None, found))


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
