"""What each cell changes besides what it binds, with what is known of every name when the cell runs.

Cells are gone through once, in their order. For each name it is known what it is (a module, a function of
the notebook, a number, anything) and to what it may refer; so it is known what ``step(model)`` may do to
``weights``. Where that cannot be known, the answer is that it may change it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from paijupyter.notebook import known, paths
from paijupyter.notebook.names import ARGUMENT, BUILTIN, NOTHING, Event, Facts, Function, Names

_IN_PLACE = frozenset(
    {"heapq", "bisect"}
)  # Their functions change what they are given, whatever they return.
# What classes of the notebook may have, and nothing else does anything by it.
_HOOKS = frozenset(["__init_subclass__"])
WRITES = "writes a file, as it"
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
        written: files that it may write by what was opened before.
    """

    changes: dict[str, tuple[int, str]] = field(default_factory=dict)
    process: list[tuple[int, str]] = field(default_factory=list)
    draws: dict[str, int] = field(default_factory=dict)
    binds: set[str] = field(default_factory=set)
    written: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Thing:
    """What a name stands for."""

    module: str = ""
    function: Function | None = None
    plain: bool = False
    once: bool = False  # an iterator: going through it changes it
    drawn: bool = False  # a picture
    maker: str = ""  # true name of what made it
    instance: str = ""  # the class of the notebook of which it is an object
    opens: tuple[Names, Names] = (NOTHING, NOTHING)  # paths and names of paths that it writes


class Flow:
    """Follows names from cell to cell."""

    def __init__(self) -> None:
        self._things: dict[str, _Thing] = {}
        self._held: dict[str, set[str]] = {}
        self._holders: dict[str, set[str]] = {}
        self._methods: dict[str, list[Function]] = defaultdict(list)
        self._found = Effects()
        self._called: set[int] = set()
        self._by = ""  # of what a function does: how it came to be called
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
        elif event.kind == "item":
            if any(self._thing(name).maker.endswith("defaultdict") for name in event.names):
                self._change(event.names, event.line, f"reads an item of `{event.text}`")
        elif event.kind == "bind":
            (name,) = event.names
            self._bind(name, event)
        elif event.kind == "change":
            self._assigned(event)
            self._link(event.names, event.holds)
        elif event.kind == "link":
            self._link(event.names, event.holds)
        elif event.kind == "call":
            self._call(event, 0)
            self._by = ""

    def _read(self, name: str, line: int) -> None:
        thing = self._things.get(name)
        if thing is None or thing.plain:
            return
        if thing.once:
            self._change(frozenset([name]), line, f"goes through `{name}`")
        for each in self._reached([name], self._held) if self._acting else ():
            function = self._thing(each).function
            if function is not None and function.events:  # Whoever has a function may call it.
                self._by = f"uses `{name}`, by which it "
                self._run(function, NOTHING, line, 0)
                self._by = ""

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
        process = event.text if known.is_process_wide(self._true_name(event.text)) else ""
        for each, other in known.REGISTERING.items():
            if event.module == each or event.module.startswith(f"{each}."):
                self._found.changes.setdefault(f"module:{other}", (event.line, f"imports `{each}`"))
        thing = _Thing(
            module=event.module or (self._true_name(process) if process else ""),
            function=event.function,
            plain=plain,
            once=self._is_once(event, makes),
            maker=self._true_name(event.origin) if makes.module else "",
            instance=event.origin if makes.function is not None and makes.function.is_class else "",
            opens=event.opens,
            drawn=makes.module.partition(".")[0] in known.DRAWING
            or any(self._thing(each).drawn for each in event.holds),
        )
        if not event.certain and name in self._things:
            before = self._things[name]
            thing = replace(thing, plain=plain and before.plain, once=thing.once or before.once)
        else:
            if name in event.holds and event.function is None:  # ``f = decorated(f)``
                thing = replace(thing, function=self._thing(name).function)
            self._forget(name)
        self._things[name] = thing
        if not plain:
            self._hold(name, event.holds | (event.function.gives if event.function else NOTHING))
        self._acting |= event.function is not None and bool(event.function.events)
        for method, function in (event.function.methods if event.function else {}).items():
            self._methods[method].append(function)

    def _is_once(self, event: Event, makes: _Thing) -> bool:
        """Say whether going through what is bound changes it."""
        if not event.origin:  # Another name for it, or what has it.
            return any(self._thing(each).once for each in event.holds)
        if event.origin == "<generator>" or event.origin in known.ITERATORS:
            return True
        first, _, method = event.origin.rpartition(".")
        if makes.module:
            return known.gives_iterator(self._true_name(event.origin))
        if first:
            made = self._methods.get(method, ())
            return method in known.ITERATING or any(each.generator for each in made)
        return makes.function is not None and (makes.function.generator or makes.function.restless)

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
            if each in BUILTIN and each not in self._things:
                continue
            thing = self._thing(each)
            does = thing.function
            inert = does is not None and not (does.events or does.methods or does.gives or does.cached)
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
            builtin = name in BUILTIN and name not in self._things
            if name == ARGUMENT or builtin or thing.plain or thing.module:
                continue
            led = self._reached([name], self._held)
            shared = [each for each in led if each == name or not self._is_apart(each)]
            for reached in self._reached(shared, self._holders):
                if reached == name or not self._is_function(reached) or not self._is_apart(reached):
                    self._found.changes.setdefault(reached, (line, how))
                files, names = self._thing(reached).opens
                self._found.written.update(dict.fromkeys(files, line))
                for each in names:
                    if not self._thing(each).module:
                        self._found.changes.setdefault(each, (line, f"{WRITES} {how}"))

    def _is_function(self, name: str) -> bool:
        function = self._thing(name).function
        return function is not None and not function.is_class

    def _is_apart(self, name: str) -> bool:
        """Say whether what a function or class has made has nothing in common with what else it makes."""
        function = self._thing(name).function
        return function is not None and not (function.keeps or function.cached)

    def _given_away(self, event: Event, how: str) -> None:
        """Something is given to a function that may change it; functions themselves are only called."""
        self._change((each for each in event.holds if not self._is_function(each)), event.line, how)

    def _assigned(self, event: Event) -> None:
        """A part of something is assigned or deleted, or a name by ``+=``."""
        true_name = event.text if event.module else self._true_name(event.text)
        if known.is_process_wide(true_name):
            self._found.process.append((event.line, f"changes `{true_name}`"))
            return
        if event.module or self._thing(event.text.partition(".")[0]).module:
            top = true_name.partition(".")[0]
            self._found.changes.setdefault(f"module:{top}", (event.line, f"changes `{event.text}`"))
            return
        objects: list[str] = []  # Of a class that changes, all its objects.
        if any(map(self._is_class, event.names)):
            objects = [each for each, thing in self._things.items() if thing.instance in event.names]
        self._change([*event.names, *objects], event.line, f"{self._by}changes `{event.text}`")

    def _true_name(self, text: str) -> str:
        """Return a dotted name with its module by its true name: ``np.random`` is ``numpy.random``."""
        first, dot, rest = text.partition(".")
        return (self._thing(first).module or first) + dot + rest

    def _call(self, event: Event, depth: int) -> None:
        first = event.text.partition(".")[0]
        thing = self._thing(first)
        by = f"calls `{event.text}`, which " if depth == 0 and event.text else self._by
        if event.writes:  # Whoever names the same file may read it.
            for name in event.holds - {ARGUMENT}:
                self._found.written.update(dict.fromkeys(self._thing(name).opens[0], event.line))
                if not (self._thing(name).module or self._thing(name).function or name in BUILTIN):
                    self._found.changes.setdefault(name, (event.line, f"{WRITES} calls `{event.text}`"))
        before, self._by = self._by, by
        for name in event.holds if self._acting else ():
            function = self._thing(name).function  # Whoever gets a function may call it with the others.
            if function is not None and function.events and self._is_function(name):
                self._run(function, (event.holds | event.names) - {name}, event.line, depth)
        self._by = before
        if event.module or thing.module or first == "paicells":
            self._module_call(event)
        elif event.method:
            self._method_call(event, depth)
        elif thing.function is not None:
            self._by = by
            self._run(thing.function, event.holds, event.line, depth)
            wrappers = (self._thing(each).function for each in self._held.get(first, ()))
            kept = any(each is not None and (each.methods or each.keeps) for each in wrappers)
            if thing.function.keeps or kept:
                self._change([first], event.line, f"calls `{first}`")
        elif first in self._things:
            self._change([first], event.line, f"calls `{first}`")
        elif not first:  # ``handlers["a"](x)``
            called = [each for each in event.names if not self._is_function(each)]
            self._change(called, event.line, f"calls a part of `{min(called, default='')}`")
            self._given_away(event, "calls something")
        elif first not in known.QUIET:
            self._given_away(event, f"calls `{first}`")

    def _module_call(self, event: Event) -> None:
        true_name = event.text if event.module else self._true_name(event.text)
        top, *parts = true_name.split(".")
        how = f"calls `{event.text}`"
        if known.is_process_wide(true_name) or any("seed" in part for part in parts):
            self._found.process.append((event.line, how))
            return
        if true_name == "importlib.reload":
            for module in {self._thing(each).module.partition(".")[0] for each in event.holds} - {""}:
                self._found.changes.setdefault(f"module:{module}", (event.line, how))
        drawn = known.draws_from(true_name)
        if drawn and not event.seeded:
            self._found.draws.setdefault(drawn, event.line)
        writes = bool(parts) and parts[-1] in paths.WRITING
        tells = writes or (bool(parts) and parts[-1].startswith(("assert", "print", "show")))
        sets = any(part in known.SETTING or part.startswith("register") for part in parts)
        if sets or (event.bare and top not in known.STATELESS and not tells):
            self._found.changes.setdefault(f"module:{top}", (event.line, how))
            if top in known.SETTING_OTHERS:
                self._found.changes.setdefault(f"module:{known.SETTING_OTHERS[top]}", (event.line, how))
        reads = top in known.READERS or parts[-1:] == [] or parts[-1][:1].isupper()
        acts = event.bare and top not in known.DRAWING and not writes
        if top in _IN_PLACE or event.inplace or acts or not (event.bare or reads):
            self._given_away(event, how)

    def _method_call(self, event: Event, depth: int) -> None:
        name = event.text.rpartition(".")[2]
        how = f"{self._by}calls `{event.text}`"
        methods = self._methods.get(name, ())
        if name in _HOOKS and not methods:
            return
        if depth == 0:
            self._by = f"calls `{event.text}`, which "
        for method in methods:
            self._run(method, event.holds, event.line, depth)
        makers = {self._thing(each).maker.partition(".")[0] for each in event.names}
        if name in ("sample", "rvs") and not event.seeded and not makers & {"random", "numpy"}:
            self._found.draws.setdefault("torch" if "torch" in makers else "numpy", event.line)
        elif name.startswith("fit") and any(
            known.draws_from(self._thing(each).maker) for each in event.names
        ):
            self._found.draws.setdefault("numpy", event.line)
        reads = name in known.READING or (name == "get" and not event.empty)
        reads &= not any(method.own for method in methods)
        reads &= name != "sample" or not makers & {"random", "numpy"}
        reads |= name in known.DRAWN and not any(self._thing(each).drawn for each in event.names)
        if event.inplace or not reads:
            self._change(event.names, event.line, how)
            if not any(self._thing(each).drawn for each in event.names):
                self._link(event.names, event.holds)
        for each in event.names:  # ``logging.getLogger("a").setLevel(…)``
            module = self._thing(each).module.partition(".")[0]
            if module and name.startswith(("set", "add", "remove")):
                self._found.changes.setdefault(f"module:{module}", (event.line, how))
        classes = {each for each in event.names if each in BUILTIN or self._is_class(each)}
        if reads or (name in known.KEEPS and not classes):
            return
        given = {each for each in event.holds if self._thing(each).instance}
        self._change(event.holds if classes or name in known.TAKES_APART else given, event.line, how)

    def _is_class(self, name: str) -> bool:
        function = self._thing(name).function
        return function is not None and function.is_class

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
                    {name: (line, f"{self._by}binds `{name}`") for name in event.names}
                )
                for name in event.names:
                    self._things[name] = _Thing()
                    self._hold(name, _given(event.holds, arguments))
            elif event.kind == "call":
                self._call(
                    replace(event, names=names, holds=_given(event.holds, arguments), line=line), depth + 1
                )
            elif event.kind == "change":
                self._assigned(replace(event, names=names, line=line))
                self._link(names, _given(event.holds, arguments))
        for name in function.reads:
            inner = self._thing(name).function
            if inner is not None and inner is not function:
                self._run(inner, NOTHING, line, depth + 1)


def _given(names: Names, arguments: Names) -> Names:
    return (names - {ARGUMENT}) | arguments if ARGUMENT in names else names
