"""The names of a function: which are its own, and what those of outside have to do with them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from paijupyter.notebook.names import ARGUMENT, Event, Names


class ClassScope(dict[str, Names]):
    """Names of the body of a class, which functions in it do not see."""


CHANGEABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.Call)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Own:
    """Names of a function: its parameters, what it binds, what it declares as of outside."""

    def __init__(self) -> None:
        self.parameters: set[str] = set()
        self.local: set[str] = set()
        self.outer: set[str] = set()
        self.generator = False
        self.shares = False  # it binds a name of the function around it


def own_names(node: AnyFunction) -> Own:
    """Return the names of a function."""
    own = Own()
    own.parameters = {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    waiting: list[ast.AST] = list(node.body) if not isinstance(node, ast.Lambda) else [node.body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            own.outer |= set(part.names) if isinstance(part, ast.Global) else set()
            own.shares |= isinstance(part, ast.Nonlocal)
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
        elif isinstance(part, COMPREHENSIONS):
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


class Resolver:
    """Says in terms of what is outside of a function what happens to its own names."""

    def __init__(
        self, aliases: dict[str, Names], parameters: set[str], local: set[str], modules: dict[str, str]
    ) -> None:
        self._aliases = aliases
        self._modules = modules
        self._parameters = parameters
        self._local = local

    def all(self, events: Sequence[Event]) -> Iterator[Event]:
        """Yield the events that matter outside."""
        for event in events:
            names, held = self.outside(event.names), self.outside(event.holds)
            first, dot, rest = event.text.partition(".")
            module = event.module or self._modules.get(first, "")
            text = event.text if event.module or not module else module + dot + rest
            if event.kind in ("read", "link", "item") or (
                not names and not held and event.method and not module
            ):
                continue
            yield replace(event, names=names, holds=held, certain=False, module=module, text=text)

    def outside(self, names: Names) -> Names:
        """Return the names outside of the function to which its own ones may lead."""
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
