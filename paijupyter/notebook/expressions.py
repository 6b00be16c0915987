"""Read the expressions of a cell in the order in which they are evaluated, and note what happens."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from paijupyter.notebook import known
from paijupyter.notebook.names import (
    ARGUMENT,
    NOTHING,
    Event,
    Facts,
    Function,
    Names,
    holds,
    holds_all,
    origin,
    plain_if,
    target_names,
)

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Expressions:
    """Reads expressions; :class:`~paijupyter.notebook.walking.Walker` adds the statements.

    Args:
        facts: where what it finds goes.
        local: names of a function that are its own; None at the top level of a cell.
    """

    def __init__(self, facts: Facts, local: set[str] | None = None) -> None:
        self.facts = facts
        self.bound: set[str] = set()
        self.aliases: dict[str, Names] = {}  # what the own names of a function may refer to
        self._local = local
        self._scopes: list[set[str]] = []  # of comprehensions and class bodies
        self._conditional = 0
        self._soft = 0

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Read statements."""
        raise NotImplementedError

    def _any(self, node: ast.AST) -> None:
        if isinstance(node, ast.expr):
            self._expression(node)
        elif isinstance(node, ast.stmt):
            self.block([node])
        else:
            for child in ast.iter_child_nodes(node):
                self._any(child)

    def _expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Name):
            self._read(node.id, node.lineno)
        elif isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.Constant):
            if known.is_path(node.value):
                self.facts.files.setdefault(str(node.value), node.lineno)
        elif isinstance(node, ast.Lambda):
            self._function(node)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node)
        elif isinstance(node, ast.NamedExpr):
            self._expression(node.value)
            scopes, self._scopes = self._scopes, []  # It binds outside of its comprehension.
            self._bind(node.target.id, node, holds(node.value))
            self._scopes = scopes
        elif isinstance(node, (ast.IfExp, ast.BoolOp)):
            self._shortcut(node)
        elif (name := known.looked_up(node)) is not None:
            with self._softly(not isinstance(node, ast.Subscript)):
                self._read(name, node.lineno)
        else:
            self._awaited(isinstance(node, ast.Await))
            for child in ast.iter_child_nodes(node):
                self._any(child)

    def _awaited(self, yes: object) -> None:
        self.facts.awaits |= bool(yes) and self._local is None

    def _shortcut(self, node: ast.IfExp | ast.BoolOp) -> None:
        parts = [node.test, node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        self._expression(parts[0])
        for each in parts[1:]:
            with self._maybe():
                self._expression(each)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        scope: set[str] = set()
        for number, part in enumerate(node.generators):
            self._expression(part.iter)
            if number == 0:  # Only the first is evaluated outside.
                self._scopes.append(scope)
            self._awaited(part.is_async)
            scope.update(target_names(part.target))
            with self._conditionally():
                for condition in part.ifs:
                    self._expression(condition)
        with self._conditionally():
            for each in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
                self._expression(each)
        self._scopes.pop()

    def _call(self, node: ast.Call, bare: bool = False) -> None:
        function, name = node.func, known.dotted(node.func)
        text = known.looked_up(node)
        if text is not None:
            with self._softly():
                self._read(text, node.lineno)
            return
        self._expression(function)
        values = [*node.args, *(word.value for word in node.keywords)]
        for each in values:
            self._expression(each.value if isinstance(each, ast.Starred) else each)
        self._reaches_by_text(node, name)
        if name in known.ASKING:
            self.facts.asks.append((node.lineno, name))
        writes = known.writes(node)
        if writes:
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and known.is_path(part.value):
                    self.facts.written.setdefault(str(part.value), part.lineno)
        self._event(
            "call",
            node.lineno,
            holds(function.value if isinstance(function, ast.Attribute) else function),
            holds_all(values),
            text=name or (function.attr if isinstance(function, ast.Attribute) else ""),
            bare=bare,
            inplace=any(word.arg == "inplace" and getattr(word.value, "value", 1) for word in node.keywords),
            empty=not values,
            method=isinstance(function, ast.Attribute),
            writes=writes,
        )

    def _reaches_by_text(self, node: ast.Call, name: str) -> None:
        """Look into what reaches names by their text."""
        text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        if name in ("exec", "eval") and isinstance(text, str) and len(node.args) == 1:
            try:
                body = ast.parse(text).body
            except (SyntaxError, ValueError):
                self.facts.unknown.append((node.lineno, name))
                return
            for part in ast.walk(ast.Module(body, [])):
                if isinstance(part, (ast.expr, ast.stmt)):
                    part.lineno = part.end_lineno = node.lineno
            self.block(body)
        elif name in ("exec", "eval", "globals") or (
            name in ("locals", "vars") and not node.args and self._local is None
        ):
            self.facts.unknown.append((node.lineno, name))

    # Names

    def _read(self, name: str, line: int) -> None:
        if not self._is_outer(name):
            return
        self._event("read", line, frozenset([name]))
        if name not in self.bound:
            self.facts.reads.setdefault(name, line)
            if not self._conditional and not self._soft:
                self.facts.certain.add(name)

    def _bind(
        self,
        name: str,
        node: ast.AST,
        held: Names,
        value: ast.expr | None = None,
        module: str = "",
        function: Function | None = None,
    ) -> None:
        if self._scopes:
            self._scopes[-1].add(name)
            return
        if not self._is_outer(name):
            self.aliases[name] = self.aliases.get(name, NOTHING) | held
            return
        if isinstance(value, ast.Lambda):
            function, _ = self._inside(value)
        self._event(
            "bind",
            getattr(node, "lineno", 1),
            frozenset([name]),
            held,
            certain=not self._conditional,
            module=module,
            function=function,
            origin=origin(value),
            plain=plain_if(value),
        )
        self.bound.add(name)
        self.facts.binds[name] = True
        self.facts.deleted.discard(name)

    def _event(self, kind: Any, line: int, names: Names, held: Names = NOTHING, **more: Any) -> None:
        if self._scopes:  # Names of comprehensions and class bodies are nobody else's.
            inner = set().union(*self._scopes)
            names, held = names - inner, held - inner
        self.facts.events.append(Event(kind, line, names, held, **more))

    def _is_outer(self, name: str) -> bool:
        if any(name in scope for scope in self._scopes):
            return False
        return self._local is None or name not in self._local

    # Functions

    def _function(self, node: AnyFunction) -> Function:
        """Read a function: what happens at its definition happens here and now."""
        arguments = node.args
        for each in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
            self._expression(each)
        if not isinstance(node, ast.Lambda):
            for each in node.decorator_list:
                self._expression(each)
        with self._softly():
            for part in ast.walk(arguments):
                if isinstance(part, ast.arg) and part.annotation is not None:
                    self._expression(part.annotation)
            if not isinstance(node, ast.Lambda) and node.returns is not None:
                self._expression(node.returns)
        found, inner = self._inside(node)
        mine = self.facts
        for name, line in found.reads.items():
            mine.later.setdefault(name, line)
        if self._local is not None:  # It may run as soon as the one around it does, or later by its result.
            mine.events += found.events
        mine.asks += inner.asks
        mine.unknown += inner.unknown
        for ours, theirs in ((mine.files, inner.files), (mine.written, inner.written)):
            for path, line in theirs.items():
                ours.setdefault(path, line)
        return found

    def _inside(self, node: AnyFunction) -> tuple[Function, Facts]:
        """Read the body of a function, which runs when it is called."""
        own = _own_names(node)
        visible = set().union(self._local or (), *self._scopes)
        body: list[ast.stmt] = (
            [ast.Expr(node.body, lineno=node.lineno)] if isinstance(node, ast.Lambda) else node.body
        )
        reader = type(self)(Facts(), (visible - own.outer) | own.local)
        reader.block(body)
        resolve = _Resolver(reader.aliases, own.parameters, own.local | visible)
        facts = reader.facts
        reads = {**facts.later, **{name: line for name, line in facts.reads.items()}}
        reads = {name: line for name, line in reads.items() if name not in own.local | (visible - own.outer)}
        for name in own.outer & set(facts.binds):
            reads.setdefault(name, node.lineno)
        events = tuple(resolve.all(facts.events))
        return Function(reads, events, own.generator), facts

    # What may not happen

    @contextmanager
    def _maybe(self) -> Iterator[None]:
        """What is bound in it may not be bound after it."""
        before = set(self.bound)
        with self._conditionally():
            yield
        self.bound = before

    @contextmanager
    def _conditionally(self) -> Iterator[None]:
        self._conditional += 1
        yield
        self._conditional -= 1

    @contextmanager
    def _softly(self, soft: bool = True) -> Iterator[None]:
        """What is read in it may be missing."""
        self._soft += soft
        yield
        self._soft -= soft


class _Own:
    """Names of a function: its parameters, what it binds, what it declares as of outside."""

    def __init__(self) -> None:
        self.parameters: set[str] = set()
        self.local: set[str] = set()
        self.outer: set[str] = set()
        self.generator = False


def _own_names(node: AnyFunction) -> _Own:
    own = _Own()
    own.parameters = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    waiting: list[ast.AST] = list(node.body) if not isinstance(node, ast.Lambda) else [node.body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            own.outer |= set(part.names) if isinstance(part, ast.Global) else set()
        elif isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            own.local.add(part.id)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            own.local |= {(each.asname or each.name).partition(".")[0] for each in part.names}
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own.local.add(part.name)
            waiting += part.decorator_list
            continue
        elif isinstance(part, ast.Lambda):
            continue
        elif isinstance(part, ast.ExceptHandler) and part.name:
            own.local.add(part.name)
        elif isinstance(part, (ast.Yield, ast.YieldFrom)):
            own.generator = True
        elif isinstance(part, _COMPREHENSIONS):
            # Only what a walrus binds gets out of a comprehension.
            own.local |= {each.target.id for each in ast.walk(part) if isinstance(each, ast.NamedExpr)}
            continue
        else:
            name = getattr(part, "name", None) or getattr(part, "rest", None)
            if isinstance(part, (ast.MatchAs, ast.MatchStar, ast.MatchMapping)) and isinstance(name, str):
                own.local.add(name)
        waiting += ast.iter_child_nodes(part)
    own.local = (own.local | own.parameters) - own.outer
    return own


class _Resolver:
    """Says in terms of what is outside of a function what happens to its own names."""

    def __init__(self, aliases: dict[str, Names], parameters: set[str], local: set[str]) -> None:
        self._aliases = aliases
        self._parameters = parameters
        self._local = local

    def all(self, events: Sequence[Event]) -> Iterator[Event]:
        """Yield the events that matter outside."""
        from dataclasses import replace

        for event in events:
            names, held = self._outside(event.names), self._outside(event.holds)
            if event.kind == "read" or (not names and not held and event.method):
                continue
            yield replace(event, names=names, holds=held, certain=False)

    def _outside(self, names: Names) -> Names:
        seen: set[str] = set()
        waiting, found = list(names), set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._parameters:
                found.add(ARGUMENT)
            elif name not in self._local:
                found.add(name)
            waiting += self._aliases.get(name, ())
        return frozenset(found)
