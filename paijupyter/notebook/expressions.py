"""Read the expressions of a cell in the order in which they are evaluated, and note what happens."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from paijupyter.notebook import known, paths
from paijupyter.notebook.names import (
    ARGUMENT,
    BUILTIN,
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
from paijupyter.notebook.scopes import (
    CHANGEABLE,
    COMPREHENSIONS,
    AnyFunction,
    ClassScope,
    Resolver,
    own_names,
)

_SEEDS = ("random_state", "seed", "rng", "generator")


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
        self.modules: dict[str, str] = {}  # what a function imports itself
        self.shares = False  # whether a function in it binds a name of it
        self.gives: Names = NOTHING  # what it may return
        self._scopes: list[dict[str, Names]] = []  # of comprehensions and class bodies
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
            for word in paths.named(node.value):
                self.facts.files.setdefault(word, node.lineno)
        elif isinstance(node, ast.Lambda):
            self._function(node)
        elif isinstance(node, COMPREHENSIONS):
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
            if isinstance(node, ast.Subscript):
                owner = node.value
                self._event("item", node.lineno, holds(owner), text=known.dotted(owner) or "a part")
            if known.is_main_module(node):
                self.facts.lists.append((node.lineno, ast.unparse(node)))
            self._awaited(isinstance(node, ast.Await))
            for child in ast.iter_child_nodes(node):
                self._any(child)

    def _annotation(self, node: ast.expr) -> None:
        """Read an annotation; names in one that is a text may be looked up by whoever asks for its type."""
        with self._softly():
            self._expression(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                for word in known.words(part.value):
                    self.facts.mentions.setdefault(word, node.lineno)

    def _awaited(self, yes: object) -> None:
        self.facts.awaits |= bool(yes) and self._local is None

    def _shortcut(self, node: ast.IfExp | ast.BoolOp) -> None:
        parts = [node.test, node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        self._expression(parts[0])
        for each in parts[1:]:
            with self._maybe():
                self._expression(each)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        scope: dict[str, Names] = {}
        for number, part in enumerate(node.generators):
            self._expression(part.iter)
            if number == 0:  # Only the first is evaluated outside.
                self._scopes.append(scope)
            self._awaited(part.is_async)
            scope.update(dict.fromkeys(target_names(part.target), holds(part.iter)))
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
            if isinstance(each, ast.Lambda):  # Whoever gets it may call it with the others.
                given = holds_all([function, *(other for other in values if other is not each)])
                for event in self._function(each).events:
                    names = (event.names - {ARGUMENT}) | (given if ARGUMENT in event.names else NOTHING)
                    self.facts.events.append(replace(event, names=names))
            else:
                self._expression(each.value if isinstance(each, ast.Starred) else each)
        self._reaches_by_text(node, name)
        if name in known.ASKING:
            self.facts.asks.append((node.lineno, name))
        writes = paths.writes(node)
        for path, line in paths.written(node):
            self.facts.written.setdefault(path, line)
        self._event(
            "call",
            node.lineno,
            holds(function.value if isinstance(function, ast.Attribute) else function),
            holds_all(values) | (paths.part_names(node) if writes else NOTHING),
            text=name or (function.attr if isinstance(function, ast.Attribute) else ""),
            bare=bare,
            inplace=any(
                word.arg == "out" or (word.arg == "inplace" and getattr(word.value, "value", 1))
                for word in node.keywords
            ),
            empty=not node.args,
            seeded=any(word.arg in _SEEDS for word in node.keywords),
            method=isinstance(function, ast.Attribute),
            writes=writes,
        )

    def _reaches_by_text(self, node: ast.Call, name: str) -> None:
        """Look into what reaches names by their text."""
        text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        if name in ("exec", "eval", "cProfile.run") and isinstance(text, str) and len(node.args) == 1:
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
        elif known.lists_names(node, name):
            self.facts.lists.append((node.lineno, f"{name or getattr(node.func, 'attr', '')}(…)"))
        for word in known.mentioned(node, name):
            self.facts.mentions.setdefault(word, node.lineno)

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
            self._scopes[-1][name] = held
            return
        if not self._is_outer(name):
            self.aliases[name] = self.aliases.get(name, NOTHING) | held
            if module:
                self.modules[name] = module
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
            text=known.dotted(value) if value is not None else "",
            opens=paths.opened(value),
        )
        self.bound.add(name)
        self.facts.binds[name] = True
        self.facts.deleted.discard(name)

    def _event(self, kind: Any, line: int, names: Names, held: Names = NOTHING, **more: Any) -> None:
        if self._scopes:  # Names of comprehensions and class bodies are nobody else's.
            names, held = self._beyond(names), self._beyond(held)
        self.facts.events.append(Event(kind, line, names, held, **more))

    def _beyond(self, names: Names) -> Names:
        """Return names with what those of comprehensions go through in their place."""
        for scope in reversed(self._scopes):
            names = (names - set(scope)).union(*(scope[name] for name in names & set(scope)))
        return names

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
                    self._annotation(part.annotation)
            if not isinstance(node, ast.Lambda) and node.returns is not None:
                self._annotation(node.returns)
        found, inner = self._inside(node)
        mine = self.facts
        for name, line in found.reads.items():
            mine.later.setdefault(name, line)
        if self._local is not None:  # It may run as soon as the one around it does, or later by its result.
            mine.events += found.events
        mine.asks += inner.asks
        mine.unknown += inner.unknown
        mine.lists += inner.lists
        for ours, theirs in (
            (mine.files, inner.files),
            (mine.written, inner.written),
            (mine.mentions, inner.mentions),
        ):
            for path, line in theirs.items():
                ours.setdefault(path, line)
        return found

    def _inside(self, node: AnyFunction) -> tuple[Function, Facts]:
        """Read the body of a function, which runs when it is called."""
        own = own_names(node)
        scopes = [scope for scope in self._scopes if not isinstance(scope, ClassScope)]
        visible = set().union(self._local or (), *scopes)
        body: list[ast.stmt] = (
            [ast.Expr(node.body, lineno=node.lineno)] if isinstance(node, ast.Lambda) else node.body
        )
        reader = type(self)(Facts(), (visible - own.outer) | own.local)
        reader.block(body)
        if isinstance(node, ast.Lambda):
            reader.gives = holds(node.body)
        resolve = Resolver(reader.aliases, own.parameters, own.local | visible, reader.modules)
        facts = reader.facts
        reads = {**facts.later, **{name: line for name, line in facts.reads.items()}}
        reads = {name: line for name, line in reads.items() if name not in own.local | (visible - own.outer)}
        for name in own.outer & set(facts.binds):
            reads.setdefault(name, node.lineno)
        events = tuple(resolve.all(facts.events))
        gives = resolve.outside(reader.gives) - {ARGUMENT} - BUILTIN
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        keeps = any(isinstance(each, CHANGEABLE) for each in defaults)
        keeps &= any(ARGUMENT in event.names for event in events)
        counts = (event.kind == "change" and not event.names and "." in event.text for event in events)
        keeps |= reader.shares or any(counts)
        self.shares |= own.shares
        return Function(reads, events, own.generator, gives=gives, keeps=keeps), facts

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
