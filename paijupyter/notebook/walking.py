"""Read the statements of a cell in the order in which they run; note what happens and execute nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from paijupyter.notebook import known
from paijupyter.notebook.expressions import Expressions
from paijupyter.notebook.names import (
    ARGUMENT,
    NOTHING,
    Facts,
    Function,
    holds,
    holds_all,
    target_names,
)
from paijupyter.notebook.scopes import CHANGEABLE, ClassScope

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EXPLICIT = frozenset(["__init__", "__post_init__", "__new__", "__call__", "__del__", "__init_subclass__"])
_FILLS = frozenset(["redirect_stdout", "redirect_stderr"])  # contexts that write into what they are given
_ENDS = (ast.Raise, ast.Return, ast.Continue, ast.Break)


def facts_of(tree: ast.Module) -> Facts:
    """Return what a cell reads, binds and changes.

    Args:
        tree: the cell as plain Python.
    """
    walker = Walker(Facts())
    walker.block(tree.body)
    found = walker.facts
    found.used = {name for event in found.events if event.kind == "read" for name in event.names}
    found.used |= set(found.later)
    found.calls = not all(map(_is_inert, tree.body))
    found.binds = {
        name: name in walker.bound - found.partly for name in found.binds if name not in found.deleted
    }
    return found


class Walker(Expressions):
    """Goes through statements."""

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Read statements."""
        for statement in body:
            method = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if method is not None:
                method(statement)
            else:
                for child in ast.iter_child_nodes(statement):
                    self._any(child)

    def _expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Await):
            self._awaited(True)
            value = value.value
        if isinstance(value, ast.Call):
            self._call(value, bare=True)
        else:
            self._expression(value)

    def _assign(self, node: ast.Assign) -> None:
        self._expression(node.value)
        for target in node.targets:
            self._target(target, node.value)
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        self._event("link", node.lineno, frozenset(names[:1]), frozenset(names[1:]))

    def _return(self, node: ast.Return) -> None:
        if node.value is not None:
            self._expression(node.value)
            self.gives |= holds(node.value)

    def _annassign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        if node.value is not None:
            self._expression(node.value)
            self._target(node.target, node.value)

    def _augassign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self._expression(node.value)
            self._target(node.target, node.value)
            return
        name = node.target.id
        self._read(name, node.lineno)
        self._expression(node.value)
        self._event("change", node.lineno, frozenset([name]), text=name)
        read = ast.copy_location(ast.Name(name, ast.Load()), node.target)
        value = ast.copy_location(ast.BinOp(read, ast.Add(), node.value), node)
        self._bind(name, node, holds(value), value)

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self._target(target, None)
            elif self._is_outer(target.id):
                self._read(target.id, target.lineno)
                self.bound.discard(target.id)
                if not self._conditional:
                    self.facts.deleted.add(target.id)
                self._event("delete", target.lineno, frozenset([target.id]))

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self._expression(node.iter)
        with self._maybe():
            self._target(node.target, node.iter)
            self.block(node.body)
        with self._maybe():
            self.block(node.orelse)

    def _asyncfor(self, node: ast.AsyncFor) -> None:
        self._awaited(True)
        self._for(node)

    def _while(self, node: ast.While) -> None:
        self._expression(node.test)
        with self._maybe():
            self.block(node.body)
        with self._maybe():
            self.block(node.orelse)

    def _if(self, node: ast.If) -> None:
        self._expression(node.test)
        if _is_main(node.test):
            self.block(node.body)
            with self._maybe():
                self.block(node.orelse)
        else:
            self._branches([node.body, node.orelse])

    def _branches(self, bodies: Iterable[Sequence[ast.stmt]]) -> None:
        before, ends = set(self.bound), []
        for body in bodies:
            self.bound = set(before)
            with self._conditionally():
                self.block(body)
            ends.append(self.bound)
        self.bound = set.intersection(*ends)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self._expression(item.context_expr)
            if not isinstance(item.context_expr, ast.Call):
                what = f"{known.dotted(item.context_expr)}.__enter__"
                self._event("call", node.lineno, holds(item.context_expr), text=what, method=True)
            elif known.dotted(item.context_expr.func).rpartition(".")[2] in _FILLS:
                given = holds_all(item.context_expr.args)
                self._event("change", node.lineno, given, text="what is redirected")
            if item.optional_vars is not None:
                self._target(item.optional_vars, item.context_expr)
        with self._maybe() if any(map(_swallows, node.items)) else nullcontext():
            self.block(node.body)

    def _asyncwith(self, node: ast.AsyncWith) -> None:
        self._awaited(True)
        self._with(node)

    def _try(self, node: ast.Try) -> None:
        before = set(self.bound)
        with self._softly(any(map(_catches_names, node.handlers))):
            self.block(node.body)
        self.block(node.orelse)
        ends = [self.bound]
        for handler in node.handlers:
            self.bound = set(before)
            with self._conditionally():
                self._handler(handler)
            if not isinstance(handler.body[-1], _ENDS):
                ends.append(self.bound)
        self.bound = set.intersection(*ends)
        self.block(node.finalbody)

    _trystar = _try

    def _handler(self, handler: ast.ExceptHandler) -> None:
        if handler.type is not None:
            self._expression(handler.type)
        if handler.name:
            self._bind(handler.name, handler, NOTHING)
        self.block(handler.body)
        if handler.name:  # Python itself deletes it.
            self.bound.discard(handler.name)

    def _match(self, node: ast.Match) -> None:
        self._expression(node.subject)
        before, ends, complete = set(self.bound), list[set[str]](), False
        for case in node.cases:
            self.bound = set(before)
            with self._conditionally():
                self._case(case, node.subject)
            ends.append(self.bound)
            complete |= case.guard is None and getattr(case.pattern, "pattern", "") is None
        self.bound = set.intersection(*ends) if complete else before

    def _case(self, case: ast.match_case, subject: ast.expr) -> None:
        for part in ast.walk(case.pattern):
            for key in part.keys if isinstance(part, ast.MatchMapping) else []:
                self._expression(key)
            name = getattr(part, "rest", None) or getattr(part, "name", None)
            if isinstance(name, str):
                self._bind(name, case.pattern, holds(subject))
            elif isinstance(part, (ast.MatchValue, ast.MatchClass)):
                self._expression(part.value if isinstance(part, ast.MatchValue) else part.cls)
        if case.guard is not None:
            self._expression(case.guard)
        self.block(case.body)

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        function = self._function(node)
        if any("cache" in ast.unparse(each) for each in node.decorator_list):
            function = replace(function, cached=True)
        arguments = node.args
        used = [*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults)]
        self._bind(node.name, node, holds_all(used), function=function)
        self._decorated(node)

    _asyncfunctiondef = _functiondef

    def _decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Decorators are called with what is defined."""
        for each in node.decorator_list:
            called = each.func if isinstance(each, ast.Call) else each
            owner = called.value if isinstance(called, ast.Attribute) else called
            text, method = known.dotted(called), isinstance(called, ast.Attribute)
            given = frozenset([node.name])
            self._event("call", node.lineno, holds(owner), given, text=text, method=method, inplace=True)

    def _classdef(self, node: ast.ClassDef) -> None:
        for each in [*node.decorator_list, *node.bases, *(word.value for word in node.keywords)]:
            self._expression(each)
        scope = ClassScope()
        methods: dict[str, Function] = {}
        for statement in node.body:
            self._scopes.append(scope)
            if isinstance(statement, _FUNCTIONS):
                methods[statement.name] = _method(self._function(statement), statement)
                scope[statement.name] = NOTHING
            else:
                self.block([statement])
            self._scopes.pop()
        reads = {name: line for each in methods.values() for name, line in each.reads.items()}
        events = tuple(event for each in methods.values() for event in each.events)
        gives = {name for event in events if event.kind == "change" for name in event.holds} - {ARGUMENT}
        implicit = [each for each in node.body if isinstance(each, _FUNCTIONS) and _is_implicit(each)]
        restless = any(methods[each.name].own for each in implicit)
        found = Function(
            reads,
            events,
            methods=methods,
            is_class=True,
            gives=frozenset(gives),
            keeps=any(map(_is_shared, node.body)),
            restless=restless,
        )
        self._bind(node.name, node, holds_all([*node.decorator_list, *node.bases]), function=found)
        self._decorated(node)
        for word in node.keywords:
            if word.arg == "metaclass":  # It makes the class.
                text = f"{known.dotted(word.value)}.__new__"
                self._event("call", node.lineno, holds(word.value), text=text, method=True)
        for base in node.bases:
            text = f"{known.dotted(base)}.__init_subclass__"
            self._event("call", node.lineno, holds(base), frozenset([node.name]), text=text, method=True)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._bind(alias.asname or top, node, NOTHING, module=alias.name if alias.asname else top)
            if "." in alias.name and not alias.asname:
                self.facts.partly.add(top)

    def _importfrom(self, node: ast.ImportFrom) -> None:
        if node.module == "__future__":
            self.facts.futures.append((node.lineno, node.names[0].name))
            return
        for alias in node.names:
            if alias.name == "*":
                self.facts.stars.append((node.module or "", node.level, node.lineno))
                continue
            module = "." * node.level + ".".join(filter(None, [node.module, alias.name]))
            self._bind(alias.asname or alias.name, node, NOTHING, module=module)

    def _target(self, node: ast.expr, value: ast.expr | None) -> None:
        if isinstance(node, ast.Name):
            self._bind(node.id, node, holds(value), value)
        elif isinstance(node, (ast.Tuple, ast.List)):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
            for number, each in enumerate(node.elts):
                self._target(each, parts[number] if len(parts) == len(node.elts) else value)
            if isinstance(value, ast.Call):  # What is made together may belong together: figure and axes.
                names = list(target_names(node))
                self._event("link", node.lineno, frozenset(names[:1]), frozenset(names[1:]))
        elif isinstance(node, ast.Starred):
            self._target(node.value, value)
        elif (name := known.looked_up(node)) is not None:
            self._bind(name, node, holds(value), value)
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            self._expression(node.value)
            if isinstance(node, ast.Subscript):
                self._expression(node.slice)
            owner = holds(node.value)
            text = known.dotted(node) or known.dotted(node.value) or "a part"
            self._event("change", node.lineno, owner, holds(value), text=text)


def _is_main(test: ast.expr) -> bool:
    """Say whether it is ``__name__ == "__main__"``, which holds in a notebook and in a script."""
    return isinstance(test, ast.Compare) and getattr(test.left, "id", "") == "__name__" and len(test.ops) == 1


def _catches_names(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in ("NameError", "Exception") for kind in kinds)


def _method(function: Function, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    """Leave out what a method does to its own object: that is changed by calling it, in any case."""
    if any(getattr(each, "id", "") == "staticmethod" for each in node.decorator_list):
        return function
    own = any(
        ARGUMENT in event.names
        and (event.kind == "change" or event.text.rpartition(".")[2] not in known.READING)
        for event in function.events
    )
    function = replace(function, own=own)
    others = [part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)][1:]
    if others:
        return function
    events = (replace(each, names=each.names - {ARGUMENT}) for each in function.events)
    return replace(function, events=tuple(each for each in events if each.names or each.holds))


def _swallows(item: ast.withitem) -> bool:
    """Say whether a context goes on after its body has failed."""
    call = item.context_expr
    name = known.dotted(call.func) if isinstance(call, ast.Call) else ""
    return name.rpartition(".")[2] in ("suppress", "raises", "assertRaises")


def _is_shared(node: ast.stmt) -> bool:
    """Say whether a statement in the body of a class makes what its objects share, and what may change."""
    if isinstance(node, _FUNCTIONS):
        return any("classmethod" in ast.unparse(each) for each in node.decorator_list)
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    return isinstance(value, CHANGEABLE)


def _is_implicit(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Say whether a method is called by what looks like reading: an item, a length, a property."""
    if any(known.dotted(each) in ("property", "functools.cached_property") for each in node.decorator_list):
        return True
    return node.name.startswith("__") and node.name not in _EXPLICIT


def _is_inert(node: ast.stmt) -> bool:
    """Say whether a statement only defines, so that no function of the notebook can run in it."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return not node.decorator_list and (
            not isinstance(node, ast.ClassDef) or all(map(_is_inert, node.body))
        )
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
        return True
    value = getattr(node, "value", None)
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    simple = (ast.Constant, ast.Name, ast.Lambda, ast.List, ast.Tuple, ast.Dict, ast.Load)
    if isinstance(node, ast.Expr):
        return isinstance(value, ast.Constant)
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not all(
        isinstance(each, ast.Name) for each in targets
    ):
        return False
    return isinstance(value, ast.Lambda) or all(
        isinstance(part, simple) for part in ast.walk(value or ast.Load())
    )
