"""The list of experiments: what varies, what is constant, and in which order numbers count (T1, T3).

It is a YAML or JSON text; its members are in ``docs/reference/experiments``.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.errors import InvalidDocument, PaiJupyterError, Problem, UsageProblem
from paijupyter.experiments import spaces
from paijupyter.protocol import scalars
from paijupyter.protocol.document import parse_values
from paijupyter.protocol.findings import did_you_mean
from paijupyter.protocol.values import Place

LIMIT = 1000  # experiments, unless the user raises it
MOST = 10_000
_SPACES: Mapping[str, Callable[[Mapping[str, Any]], tuple[int, Iterator[dict[str, Any]]]]] = {
    "grid": spaces.grid,
    "random": spaces.by_chance,
    "zip": spaces.zipped,
}
_MEMBERS = (
    "fields", "common", "experiments", *_SPACES, "rows", "overrides", "names", "group", "literal", "atOnce",
    "stopAfter",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment.

    Attributes:
        key: what tells it from others of its group; ``{0}`` in the template.
        values: its values by name.
        items: its values in the order of their numbers, from ``{1}``; None where no order is stated.
        patch: changes of single nodes of its filled template, by JSON Pointer.
    """

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Any, ...] | None = None
    patch: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listing:
    """All experiments, and what they share.

    Attributes:
        experiments: in their order.
        common: constants by name.
        common_items: constants by number, which follow those of an experiment.
        names: pattern of the jobs' names, or "".
        group: name of the group, or "".
        literal: words in braces that are no placeholders.
        at_once: how many may run at the same time; None: no limit.
        stop_after: how many failures end the group; None: it goes on.
    """

    experiments: tuple[Experiment, ...]
    common: Mapping[str, Any] = field(default_factory=dict)
    common_items: tuple[Any, ...] = ()
    names: str = ""
    group: str = ""
    literal: frozenset[str] = frozenset()
    at_once: int | None = None
    stop_after: int | None = None

    @property
    def keys(self) -> list[str]:
        """The keys of all experiments."""
        return [each.key for each in self.experiments]


def read_listing(text: str, constants: Mapping[str, Any] | None = None, limit: int = LIMIT) -> Listing:
    """Read a list of experiments.

    Args:
        text: YAML or JSON.
        constants: further constants, of ``--set``; they go before those of the text.
        limit: how many experiments there may be.

    Raises:
        InvalidDocument: with everything that is wrong with it, each with its line.
    """
    data, places = _values(text)
    if "experiments" not in data and not any(name in data for name in (*_SPACES, "rows")):
        # A body that is the mapping of experiments itself, as in the article's script.
        data = {"experiments": data}
        places = {f"/experiments{path}": place for path, place in places.items()}
    reader = _Reader(data, places, min(limit, MOST))
    listing = reader.listing(constants or {})
    if reader.problems:
        raise InvalidDocument(reader.problems)
    return listing


def read_table(text: str) -> list[dict[str, Any]]:
    """Return the rows of a CSV text, its values typed as in YAML; an empty cell is no value.

    Raises:
        UsageProblem: if it has no header, or a row has more cells than it.
    """
    rows = list(csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True))
    if not rows:
        raise UsageProblem("Table has no rows.", "Its first line has the names, each further line a row.")
    if any(None in row for row in rows):
        raise UsageProblem("Table has a row with more cells than its first line has names.")
    return [
        {name: scalars.resolve(cell) for name, cell in row.items() if cell not in (None, "")} for row in rows
    ]


def _values(text: str) -> tuple[dict[str, Any], dict[str, Place]]:
    """Return values and places; JSON, which programs write, is read at once and has no places."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if isinstance(found, list):
            found = {"rows": found}
        if isinstance(found, dict):
            return found, {}
    try:
        data, places, problems = parse_values(text)
    except InvalidDocument as error:
        raise InvalidDocument([_of_a_list(each) for each in error.problems]) from None
    if problems:
        raise InvalidDocument([_of_a_list(each) for each in problems])
    return data, places


def _of_a_list(problem: Problem) -> Problem:
    said = problem.message.replace("Job document must be a mapping of keys like `name` and `taskRoles`.", "")
    said = said.replace("Job document", "List of experiments").replace("a job document", "such a list")
    return replace(problem, message=said or "List of experiments must be a mapping of keys to values.")


class _Reader:
    """Takes the members one by one, and notes what is wrong with each."""

    def __init__(self, data: Mapping[str, Any], places: Mapping[str, Place], limit: int) -> None:
        self.problems: list[Problem] = []
        self._data = data
        self._places = places
        self._limit = limit
        self._fields: tuple[str, ...] | None = None

    def listing(self, constants: Mapping[str, Any]) -> Listing:
        for name in self._data:
            if name not in _MEMBERS:
                hint = did_you_mean(str(name), _MEMBERS)
                self._wrong(f"/{name}", f"Member `{name}` is unknown in a list of experiments.", hint)
        self._fields = self._texts("fields") if "fields" in self._data else None
        common = self._data.get("common") or {}
        if not isinstance(common, (Mapping, list)):
            self._wrong("/common", "Member `common` must be a list or a mapping.")
            common = {}
        experiments = self._numbered(self._given(), self._spaces())
        if not experiments and not self.problems:
            self._wrong("", "List of experiments is empty.", "Name them below `experiments:`.")
        return Listing(
            experiments=tuple(self._overridden(experiments)),
            common={**(common if isinstance(common, Mapping) else {}), **constants},
            common_items=tuple(common) if isinstance(common, list) else (),
            names=self._text("names"),
            group=self._text("group"),
            literal=frozenset(self._texts("literal")),
            at_once=self._count("atOnce"),
            stop_after=self._count("stopAfter"),
        )

    # -- experiments ------------------------------------------------------------------------------------

    def _given(self) -> list[Experiment]:
        """Those that are written out, by their keys or, in a list, by their numbers."""
        given = self._data.get("experiments") or {}
        if isinstance(given, list):
            given = {str(place): each for place, each in enumerate(given, 1)}
        if not isinstance(given, Mapping):
            self._wrong("/experiments", "Member `experiments` must be a mapping or a list.")
            return []
        if self._too_many(len(given), "/experiments"):
            return []
        return [self._experiment(str(key), values, f"/experiments/{key}") for key, values in given.items()]

    def _experiment(self, key: str, values: Any, path: str) -> Experiment:
        if values is None:
            values = {}
        if isinstance(values, list):
            return self._of_items(key, values, path)
        if not isinstance(values, Mapping):
            values = [values]
            return self._of_items(key, values, path)
        named = {str(name): value for name, value in values.items()}
        if self._fields is None:
            return Experiment(key, named)
        missing = [name for name in self._fields if name not in named]
        if missing:
            self._wrong(path, f"Experiment `{key}` has no `{missing[0]}`, which `fields` names.")
        return Experiment(key, named, tuple(named.get(name) for name in self._fields))

    def _of_items(self, key: str, values: Sequence[Any], path: str) -> Experiment:
        named = {}
        if self._fields is not None:
            if len(values) != len(self._fields):
                said = f"Experiment `{key}` has {len(values)} values, and `fields` names {len(self._fields)}."
                self._wrong(path, said)
            named = dict(zip(self._fields, values))  # noqa: B905 - another length was just noted
        return Experiment(key, named, tuple(values))

    def _spaces(self) -> Iterator[dict[str, Any]]:
        """Yield the values of all experiments that are not written out."""
        for name, read in _SPACES.items():
            if name not in self._data:
                continue
            space = self._data[name]
            if not isinstance(space, Mapping):
                self._wrong(f"/{name}", f"Member `{name}` must be a mapping of names to values.")
                continue
            try:
                count, found = read({str(each): values for each, values in space.items()})
            except PaiJupyterError as error:
                self._wrong(f"/{name}", error.message, error.hint)
                continue
            if not self._too_many(count, f"/{name}"):
                yield from found
        yield from self._rows()

    def _rows(self) -> Iterator[dict[str, Any]]:
        rows = self._data.get("rows")
        if rows is None:
            return
        if isinstance(rows, str):
            try:
                rows = read_table(rows)
            except UsageProblem as error:
                self._wrong("/rows", error.message, error.hint)
                return
            if self._fields is None:
                # The columns of a table have an order of their own.
                self._fields = tuple(rows[0]) if all(row.keys() == rows[0].keys() for row in rows) else None
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            self._wrong("/rows", "Member `rows` must be a list of mappings, or a table as CSV.")
        elif not self._too_many(len(rows), "/rows"):
            yield from ({str(name): value for name, value in row.items()} for row in rows)

    def _numbered(self, given: list[Experiment], more: Iterable[dict[str, Any]]) -> list[Experiment]:
        """Give those without a key the numbers that follow."""
        found = list(given)
        number = max((int(each.key) for each in given if each.key.isdecimal()), default=0)
        for values in more:
            number += 1
            found.append(self._experiment(str(number), values, "/experiments"))
            if self._too_many(len(found), ""):
                break
        return found

    def _too_many(self, count: int, path: str) -> bool:
        if count <= self._limit:
            return False
        said = f"List of experiments has {count}, more than {self._limit}."
        hint = f"If that is meant: --limit {count}." if count <= MOST else f"At most {MOST} are possible."
        self._wrong(path, said, hint)
        return True

    def _overridden(self, experiments: Iterable[Experiment]) -> Iterator[Experiment]:
        """Change single experiments: values by name, nodes of the template by JSON Pointer."""
        overrides = self._data.get("overrides") or {}
        if not isinstance(overrides, Mapping) or not all(isinstance(e, Mapping) for e in overrides.values()):
            self._wrong("/overrides", "Member `overrides` must map keys of experiments to mappings.")
            overrides = {}
        changes = {str(key): each for key, each in overrides.items()}
        for each in experiments:
            change = changes.pop(each.key, {})
            yield self._changed(each, change) if change else each
        for key in changes:
            self._wrong(f"/overrides/{key}", f"Experiment `{key}`, which is overridden, does not exist.")

    def _changed(self, each: Experiment, change: Mapping[str, Any]) -> Experiment:
        patch = {str(name): value for name, value in change.items() if str(name).startswith("/")}
        values = {**each.values, **{str(n): v for n, v in change.items() if str(n) not in patch}}
        items = each.items
        if items is not None and self._fields is not None:
            items = tuple(values.get(name) for name in self._fields)
        return Experiment(each.key, values, items, patch)

    # -- plain members ----------------------------------------------------------------------------------

    def _text(self, name: str) -> str:
        value = self._data.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self._wrong(f"/{name}", f"Member `{name}` must be a text.")
        return ""

    def _texts(self, name: str) -> tuple[str, ...]:
        values = self._data.get(name) or ()
        if not isinstance(values, (list, tuple)):
            self._wrong(f"/{name}", f"Member `{name}` must be a list.")
            return ()
        return tuple(map(str, values))

    def _count(self, name: str) -> int | None:
        value = self._data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self._wrong(f"/{name}", f"Member `{name}` must be a whole number from 1.")
            return None
        return value

    def _wrong(self, path: str, message: str, hint: str = "") -> None:
        place = self._places.get(path)
        line = place.line if place else None
        self.problems.append(Problem("error", "experiments", message, path, line, hint=hint))
