"""Which cells the chosen ones need, and why; which are left out, and why.

From each cell that is in, go back for every name that it reads: to the cell that binds it, and to all in
between that may bind or change it. A function's names are looked up where it may be called. What changes
the whole process (``os.environ``, a seed) is in, as anything may depend on it. What cannot be known is a
problem with its cell, and says how to answer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from paijupyter.errors import Problem
from paijupyter.notebook.effects import WRITES
from paijupyter.notebook.names import BUILTIN
from paijupyter.notebook.parts import ALL, SKIP, Part
from paijupyter.notebook.paths import is_at

_HISTORY = frozenset(
    {"_", "__", "___", "_i", "_ii", "_iii", "_ih", "_oh", "_dh", "In", "Out", "exit", "quit"}
)
CHOSEN = "chosen"


@dataclass(slots=True)
class Slice:
    """The cells of a script.

    Attributes:
        included: the cells in the order in which they run, each with why.
        left_out: the others, each with why.
        problems: what cannot be known, or cannot be part of a script.
    """

    included: list[tuple[Part, list[str]]] = field(default_factory=list)
    left_out: list[tuple[Part, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        """Numbers of the cells that are in, in the order in which they run."""
        return [part.number for part, _ in self.included]


def slice_of(parts: Sequence[Part], chosen: Collection[int], carried: Collection[str] = ()) -> Slice:
    """Return the chosen cells and all that they need.

    Args:
        parts: the code cells, in the order in which they run.
        chosen: numbers of the cells that the script is for.
        carried: names whose objects come from the kernel.
    """
    return _Slicer(parts, chosen, carried).done()


class _Slicer:
    def __init__(self, parts: Sequence[Part], chosen: Collection[int], carried: Collection[str]) -> None:
        self._parts = parts
        self._chosen = set(chosen)
        self._carried = set(carried)
        self._why: dict[int, list[str]] = {}
        self._waiting: list[int] = []
        self._later: dict[str, tuple[int, int]] = {}  # name → a cell whose function reads it, and the line
        self._asked: set[tuple[int, str]] = set()
        self._modules: dict[str, list[int]] = defaultdict(list)  # module → the cells that use it
        self._unknowing: list[tuple[int, int, str]] = []  # a cell that may need any, the line, what does it
        self._problems: dict[tuple[int, str], Problem] = {}
        self._places: dict[str, list[int]] = defaultdict(list)
        self._binds_any: list[int] = []
        self._index()

    def _index(self) -> None:
        for place, part in enumerate(self._parts):
            if not self._usable(place):
                continue
            touched = {
                *part.facts.binds,
                *part.stars,
                *part.facts.deleted,
                *part.effects.changes,
                *part.effects.binds,
            }
            for name in touched:
                self._places[name].append(place)
            for top in part.effects.draws:
                self._places[f"draws:{top}"].append(place)
            if part.binds_any:
                self._binds_any.append(place)

    def _usable(self, place: int) -> bool:
        part = self._parts[place]
        return part.number in self._chosen or not (part.is_skipped or part.code.submits)

    def done(self) -> Slice:
        places = [place for place, part in enumerate(self._parts) if part.number in self._chosen]
        for place in places:
            self._include(place, CHOSEN)
        last = places[-1] if places else -1
        for place in range(last):
            if not self._usable(place):
                continue
            for line, how in self._parts[place].effects.process:
                self._include(place, f"{how} (line {line}), which anything may depend on")
            for line, name in self._parts[place].facts.futures:
                self._include(
                    place, f"imports `{name}` from `__future__` (line {line}), which holds for all cells"
                )
        self._follow(last)
        self._ask_for_all()
        found = Slice()
        for place, part in enumerate(self._parts):
            if place in self._why:
                found.included.append((part, self._why[place]))
            else:
                found.left_out.append((part, self._why_not(place, last)))
        found.problems = [*self._of_cells(), *self._of_magics(last), *self._problems.values()]
        return found

    def _follow(self, last: int) -> None:
        while self._waiting:
            while self._waiting:
                self._follow_one(self._waiting.pop())
            # Only now it is known in which cells functions may run: there, what these read has to be.
            callers = [place for place in sorted(self._why) if self._parts[place].facts.calls]
            for name in self._later:
                self._need_where_called(name, callers)
            for module, users in self._modules.items():
                self._need_state(module, users, last)

    def _follow_one(self, place: int) -> None:
        part = self._parts[place]
        for name, module in part.modules.items():
            if name in part.facts.used:
                self._modules[module.partition(".")[0]].append(place)
            self._need_made(place, module.partition(".")[0], part)
        for name, line in part.facts.reads.items():
            self._need(place, name, line, name in part.facts.certain)
        for name, line in part.facts.mentions.items():
            if name in self._places and name not in part.facts.binds:
                self._need(place, name, line, False)
        for name, line in part.facts.later.items():
            self._later.setdefault(name, (place, line))
        self._need_files(place)
        for top in part.effects.draws:
            self._need_all_before(
                place, f"draws:{top}", f"draws from `{top}`, as cell {part.number} does after it"
            )
        self._need_unknown(place)

    def _need_where_called(self, name: str, callers: Sequence[int]) -> None:
        """Need a name in those cells between whose needs something happens to it."""
        previous = -1
        for place in [*self._places.get(name, ()), len(self._parts)]:
            # All callers between two places see the same; one of them stands for all.
            first = bisect_right(callers, previous)
            if first < len(callers) and callers[first] <= place:
                self._need(callers[first], name, 0, False)
            previous = place

    def _include(self, place: int, why: str) -> None:
        if place not in self._why:
            self._why[place] = []
            self._waiting.append(place)
        if why not in self._why[place]:
            self._why[place].append(why)

    # One name

    def _need(self, place: int, name: str, line: int, certain: bool) -> None:
        if (place, name) in self._asked or name in self._carried:
            return
        self._asked.add((place, name))
        user = f"cell {self._parts[place].number}"
        found = False
        for earlier in self._back(place, name):
            part = self._parts[earlier]
            if name in part.facts.deleted and name in BUILTIN:
                return  # What Python has of that name is back.
            if name in part.facts.deleted:
                self._unresolved(place, name, line, certain, f"cell {part.number} deletes it")
                return
            binds = part.binds(name)
            if binds is None and name in part.effects.changes:
                at, how = part.effects.changes[name]
                if how.startswith(WRITES):
                    self._include(earlier, f"{how} (line {at}) with `{name}`, and {user} uses `{name}`")
                else:
                    self._include(earlier, f"{how} (line {at}), and so may change `{name}` of {user}")
            elif binds is None:
                self._include(earlier, f"{part.binds_any}; {user} uses `{name}`")
                found = True
            else:
                self._include(earlier, f"binds `{name}`, which {user} uses")
                found = True
            if binds is not None:
                self._need_module(place, name, part)
            if binds:
                return
        if not found and name not in BUILTIN:
            self._unresolved(place, name, line, certain, "")

    def _back(self, place: int, name: str) -> Iterator[int]:
        """Yield the cells before one that bind, change or delete a name, the nearest first."""
        known = self._places.get(name, [])
        both = known[: bisect_left(known, place)]
        if self._binds_any and name not in BUILTIN:
            both = sorted({*both, *self._binds_any[: bisect_left(self._binds_any, place)]})
        return reversed(both)

    def _need_module(self, place: int, name: str, part: Part) -> None:
        module = part.modules.get(name, "").partition(".")[0]
        if not module:
            return
        self._modules[module].append(place)
        self._need_made(place, module, part)

    def _need_made(self, place: int, module: str, part: Part) -> None:
        """Need what writes the files of a module that a cell imports."""
        for path, earlier in self._made_files():
            if earlier < place and module in path.removesuffix(".py").split("/"):
                self._include(earlier, f"writes `{path}`, which cell {part.number} imports")

    def _need_state(self, module: str, users: Sequence[int], last: int) -> None:
        """Need what sets something in a module, wherever it stands: what the module made may heed it, too."""
        for earlier in self._places.get(f"module:{module}", ()):
            if earlier < last:
                at, how = self._parts[earlier].effects.changes[f"module:{module}"]
                user = self._parts[next((each for each in users if each > earlier), last)].number
                self._include(earlier, f"{how} (line {at}), and so may change `{module}` for cell {user}")

    def _made_files(self) -> Iterator[tuple[str, int]]:
        for earlier, part in enumerate(self._parts):
            if self._usable(earlier):
                for path in part.facts.written:
                    if path.endswith(".py"):
                        yield path, earlier

    def _need_all_before(self, place: int, key: str, why: str) -> None:
        for earlier in self._places.get(key, ()):
            if earlier < place:
                self._include(earlier, why)

    def _need_files(self, place: int) -> None:
        part = self._parts[place]
        for path in part.missing:
            if not any(
                is_at(path, each) for earlier in self._parts[:place] for each in earlier.facts.written
            ):
                self._need_shell(place, path)
        for path in part.facts.files:
            for earlier in range(place):
                if not self._usable(earlier) or earlier in self._why:
                    continue
                for written in self._parts[earlier].facts.written:
                    if is_at(path, written):
                        named = f"and cell {part.number} names `{path}`"
                        if path == written:
                            named = f"which cell {part.number} names"
                        self._include(earlier, f"writes `{written}`, {named}")
                        break

    def _need_shell(self, place: int, path: str) -> None:
        """Need all shell lines that may make a file that is not there and that no cell is known to make."""
        for earlier in range(place):
            part = self._parts[earlier]
            if part.acts and self._usable(earlier):
                user = self._parts[place].number
                self._include(earlier, f"may make `{path}` (line {part.acts}), which cell {user} names")

    def _need_unknown(self, place: int) -> None:
        """A cell that reads names by their text needs what nobody can know."""
        part = self._parts[place]
        unknown = [
            *((line, f"{what}(…)") for line, what in part.facts.unknown),
            *part.facts.lists,
            *((line, what) for line, what in part.code.binds_any if " -i" in what),
        ]
        if not unknown:
            return
        if ALL in part.cell.tags:
            for earlier in range(place):
                if self._usable(earlier):
                    self._include(earlier, f"cell {part.number} is tagged `{ALL}`")
            return
        self._unknowing.append((place, *unknown[0]))

    def _ask_for_all(self) -> None:
        """Ask about cells that may need any other, unless all are in."""
        for place, line, what in self._unknowing:
            if all(earlier in self._why or not self._usable(earlier) for earlier in range(place)):
                continue
            self._problem(
                place,
                "unknown-names",
                f"`{what}` may use any name, so which cells it needs cannot be known.",
                line,
                f"Tag the cell `{ALL}` to take all cells before it, or `{SKIP}` to leave it out.",
            )

    def _unresolved(self, place: int, name: str, line: int, certain: bool, why: str) -> None:
        part = self._parts[place]
        if name in part.effects.binds:
            return  # A function that it calls binds it.
        hint = f"Bind it in a cell above, or bring the kernel's object along: --carry {name}"
        if name in _HISTORY or (name[:1] == "_" and name[1:].isdigit()):
            if not certain:
                return
            why, hint = "a script has no history of cells", "Give the value a name of its own in its cell."
        elif not why:
            others = [each for each in self._parts if each.binds(name) is not None]
            skipped = [each for each in others if each.is_skipped and each.number != part.number]
            below = [each for each in others if each.number != part.number]
            if skipped:
                why = f"cell {skipped[0].number}, which binds it, is tagged `{SKIP}`"
                hint = f"Remove the tag, or bring the kernel's object along: --carry {name}"
            elif below:
                why = f"only cell {below[0].number} binds it, which runs later"
                hint = f"Move that cell up, or bring the kernel's object along: --carry {name}"
            else:
                why = "no cell binds it"
        if line == 0:
            home, line = self._later[name]
            bound = any(self._parts[each].binds(name) is not None for each in self._why)
            if bound or self._parts[home].number != part.number:
                return  # It is there when the function is called; or it is said of the cell that has it.
        severity = "error" if certain else "warning"
        message = f"Name `{name}` is used here, and {why}."
        self._problem(place, "unresolved-name", message, line, hint, severity)

    # Whole cells

    def _of_cells(self) -> Iterator[Problem]:
        for place in sorted(self._why):
            part = self._parts[place]
            yield from part.code.problems
            for line, name in part.facts.asks:
                if name.partition(".")[0] in self._places and name == "input":
                    continue  # The notebook has a function of that name.
                yield Problem(
                    "error",
                    "asks-for-input",
                    f"`{name}()` waits for somebody at the keyboard, and a job has nobody.",
                    line=line,
                    cell=part.number,
                    hint="Use a parameter (--param NAME=VALUE), or a secret (--secret NAME=ask).",
                )

    def _of_magics(self, last: int) -> Iterator[Problem]:
        """Warn of magics without a rule in cells that are left out: nobody knows what they do."""
        for place in range(last):
            if place in self._why or not self._usable(place):
                continue
            for problem in self._parts[place].code.problems:
                if problem.code == "magic":
                    message = (
                        f"{problem.message.rstrip('.')}, so it is left out, and what it does is not known."
                    )
                    yield replace(problem, severity="warning", message=message)

    def _why_not(self, place: int, last: int) -> str:
        part = self._parts[place]
        if part.is_skipped:
            return f"tagged `{SKIP}`"
        if part.code.submits:
            return "submits a job itself"
        if place > last:
            return "comes after the chosen cells"
        if any(problem.code == "not-python" for problem in part.code.problems):
            return "cannot be read, and nothing that is known asks for it"
        if any(problem.code == "magic" for problem in part.code.problems):
            return "has a magic that cannot be part of a script, and nothing that is known asks for it"
        if part.code.is_empty:
            return part.code.notes[0][1] if part.code.notes else "has nothing to run"
        names = [name for name in part.facts.binds if not name.startswith("_")]
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return f"nothing uses {', '.join(f'`{name}`' for name in names[:3])}{more} from it"
        return "binds and changes nothing that is used"

    def _problem(
        self, place: int, code: str, message: str, line: int, hint: str, severity: str = "error"
    ) -> None:
        number = self._parts[place].number
        problem = Problem(severity, code, message, line=line or None, cell=number, hint=hint)  # type: ignore[arg-type]
        self._problems.setdefault((number, message), problem)
