"""What each cell changes besides what it binds, with what is known of every name when the cell runs.

Cells are gone through once, in their order. For each name it is known what it is (a module, a function of
the notebook, a number, anything) and to what it may refer; so it is known what ``step(model)`` may do to
``weights``. Where that cannot be known, the answer is that it may change it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from paijupyter.notebook import known
from paijupyter.notebook.names import ARGUMENT, NOTHING, Event, Facts, Function, Names

_IN_PLACE = frozenset(
    {"heapq", "bisect"}
)  # Their functions change what they are given, whatever they return.
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Effects:
    """What a cell does besides binding names.

    Attributes:
        changes: names whose objects it may change, and ``module:numpy`` for the state of a module; each with
            the line and the words that say how.
        process: what it changes of the whole process.
        draws: modules from whose random state it draws.
        binds: names that functions it calls bind.
    """

    changes: dict[str, tuple[int, str]] = field(default_factory=dict)
    process: list[tuple[int, str]] = field(default_factory=list)
    draws: dict[str, int] = field(default_factory=dict)
    binds: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Thing:
    """What a name stands for."""

    module: str = ""
    function: Function | None = None
    plain: bool = False
    once: bool = False  # an iterator: going through it changes it
    drawn: bool = False  # a picture


class Flow:
    """Follows names from cell to cell."""

    def __init__(self) -> None:
        self._things: dict[str, _Thing] = {}
        self._held: dict[str, set[str]] = {}
        self._holders: dict[str, set[str]] = {}
        self._methods: dict[str, list[Function]] = defaultdict(list)
        self._found = Effects()
        self._called: set[int] = set()
        self._acting = False  # whether any function of the notebook does something to what is outside of it

    def module(self, name: str) -> str:
        """Return the module behind a name, or ""."""
        return self._things.get(name, _Thing()).module

    def go_through(self, facts: Facts) -> Effects:
        """Return what the next cell does."""
        self._found, self._called = Effects(), set()
        for event in facts.events:
            self._happen(event)
        return self._found

    def _happen(self, event: Event) -> None:
        if event.kind == "read":
            (name,) = event.names
            self._read(name, event.line)
        elif event.kind == "bind":
            (name,) = event.names
            self._bind(name, event)
        elif event.kind == "change":
            self._assigned(event)
            self._link(event.names, event.holds)
        elif event.kind == "call":
            self._call(event, 0)

    def _read(self, name: str, line: int) -> None:
        thing = self._things.get(name)
        if thing is None or thing.plain:
            return
        if thing.once:
            self._change(frozenset([name]), line, f"goes through `{name}`")
        for each in self._reached([name], self._held) if self._acting else ():
            function = self._thing(each).function
            if function is not None and function.events:  # Whoever has a function may call it.
                self._run(function, NOTHING, line, 0)

    def _reached(self, names: Iterable[str], links: Mapping[str, Collection[str]]) -> set[str]:
        """Return names and all to which links lead from them."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += links.get(name, ())
        return found

    # What names stand for

    def _bind(self, name: str, event: Event) -> None:
        plain = event.plain is not None and all(self._thing(each).plain for each in event.plain)
        makes = self._thing(event.origin.partition(".")[0])
        thing = _Thing(
            module=event.module,
            function=event.function,
            plain=plain,
            once=event.origin == "<generator>" or event.origin in known.ITERATORS or _generates(makes, event),
            drawn=makes.module.partition(".")[0] in known.DRAWING
            or any(self._thing(each).drawn for each in event.holds),
        )
        if not event.certain and name in self._things:
            before = self._things[name]
            thing = replace(thing, plain=plain and before.plain, once=thing.once or before.once)
        else:
            self._forget(name)
        self._things[name] = thing
        if not plain:
            self._hold(name, event.holds)
        self._acting |= event.function is not None and bool(event.function.events)
        for method, function in (event.function.methods if event.function else {}).items():
            self._methods[method].append(function)

    def _thing(self, name: str) -> _Thing:
        return self._things.get(name, _Thing())

    def _forget(self, name: str) -> None:
        """Let a name lead nowhere; what leads to it still leads to what it led to."""
        held = self._held.pop(name, set())
        for each in held:
            self._holders[each].discard(name)
        for holder in self._holders.get(name, ()):
            self._hold(holder, held)

    def _hold(self, name: str, names: Iterable[str]) -> None:
        """Note that a name may lead to the objects of others."""
        for each in list(names):
            thing = self._thing(each)
            inert = thing.function is not None and not thing.function.events and not thing.function.methods
            if each not in (ARGUMENT, name) and not thing.plain and not thing.module and not inert:
                self._held.setdefault(name, set()).add(each)
                self._holders.setdefault(each, set()).add(name)

    def _link(self, owners: Names, held: Names) -> None:
        for owner in owners:
            thing = self._thing(owner)
            if held and owner != ARGUMENT and not thing.plain and not thing.module:
                self._hold(owner, held)

    # What is changed

    def _change(self, names: Iterable[str], line: int, how: str) -> None:
        for name in names:
            thing = self._thing(name)
            # What was made by a module is not the module: that changes by its own functions only.
            if (
                name == ARGUMENT
                or thing.plain
                or thing.module
                or (thing.function and not thing.function.methods)
            ):
                continue
            for reached in self._reached(self._reached([name], self._held), self._holders):
                self._found.changes.setdefault(reached, (line, how))

    def _assigned(self, event: Event) -> None:
        """A part of something is assigned or deleted, or a name by ``+=``."""
        true_name = self._true_name(event.text)
        if known.is_process_wide(true_name):
            self._found.process.append((event.line, f"changes `{true_name}`"))
            return
        if self._thing(event.text.partition(".")[0]).module:
            top = true_name.partition(".")[0]
            self._found.changes.setdefault(f"module:{top}", (event.line, f"changes `{event.text}`"))
            return
        self._change(event.names, event.line, f"changes `{event.text}`")

    def _true_name(self, text: str) -> str:
        """Return a dotted name with its module by its true name: ``np.random`` is ``numpy.random``."""
        first, dot, rest = text.partition(".")
        return (self._thing(first).module or first) + dot + rest

    def _call(self, event: Event, depth: int) -> None:
        first = event.text.partition(".")[0]
        thing = self._thing(first)
        if event.writes:  # Whoever names the same file may read it.
            for name in event.holds - {ARGUMENT}:
                self._found.changes.setdefault(name, (event.line, f"writes a file by `{event.text}`"))
        if thing.module or first == "paicells":
            self._module_call(event)
        elif event.method:
            self._method_call(event, depth)
        elif thing.function is not None:
            self._run(thing.function, event.holds, event.line, depth)
        elif first in self._things:
            self._change([first], event.line, f"calls `{first}`")
        elif first not in known.QUIET:
            self._change(event.holds, event.line, f"calls `{first}`")

    def _module_call(self, event: Event) -> None:
        true_name = self._true_name(event.text)
        top, *parts = true_name.split(".")
        how = f"calls `{event.text}`"
        if known.is_process_wide(true_name) or any("seed" in part for part in parts):
            self._found.process.append((event.line, how))
            return
        if any(part in known.DRAWS for part in (top, *parts)):
            self._found.draws.setdefault(top, event.line)
        if any(part in known.SETTING for part in parts) or (event.bare and top not in known.STATELESS):
            self._found.changes.setdefault(f"module:{top}", (event.line, how))
        writes = bool(parts) and parts[-1] in known.WRITING
        if top in _IN_PLACE or (event.bare and top not in known.DRAWING and not writes):
            self._change(event.holds, event.line, how)

    def _method_call(self, event: Event, depth: int) -> None:
        name = event.text.rpartition(".")[2]
        how = f"calls `{event.text}`"
        for method in self._methods.get(name, ()):
            self._run(method, event.holds, event.line, depth)
        reads = name in known.READING or (name == "get" and not event.empty)
        reads |= name in known.DRAWN and not any(self._thing(each).drawn for each in event.names)
        if event.inplace or not reads:
            self._change(event.names, event.line, how)
            self._link(event.names, event.holds)

    def _run(self, function: Function, arguments: Names, line: int, depth: int) -> None:
        """Do what a function of the notebook does to what is outside of it."""
        mark = hash((id(function), arguments))
        if depth > _DEEPEST or mark in self._called:
            return
        self._called.add(mark)
        for event in function.events:
            names = _given(event.names, arguments)
            if event.kind == "bind":
                self._found.binds.update(event.names)
                self._found.changes.update(
                    {name: (line, f"binds `{name}` in a function") for name in event.names}
                )
            elif event.kind == "call":
                self._call(
                    replace(event, names=names, holds=_given(event.holds, arguments), line=line), depth + 1
                )
            elif event.kind == "change":
                self._assigned(replace(event, names=names, line=line))
        for name in function.reads:
            inner = self._thing(name).function
            if inner is not None and inner is not function:
                self._run(inner, NOTHING, line, depth + 1)


def _given(names: Names, arguments: Names) -> Names:
    return (names - {ARGUMENT}) | arguments if ARGUMENT in names else names


def _generates(thing: _Thing, event: Event) -> bool:
    return thing.function is not None and thing.function.generator and "." not in event.origin
