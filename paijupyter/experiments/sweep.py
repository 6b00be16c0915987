"""One template and many experiments: what each becomes, and everything that is wrong with any of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paijupyter.errors import InvalidDocument, PaiJupyterError, Problem
from paijupyter.experiments.gathering import Gathered
from paijupyter.experiments.listing import Experiment, Listing
from paijupyter.experiments.manifest import convert
from paijupyter.experiments.placeholders import filled, placeholders
from paijupyter.experiments.template import Template, Vocabulary, take_apart
from paijupyter.protocol import Document, check, edit_mapping, read, render_commands, short_name
from paijupyter.protocol.document import parse_values
from paijupyter.protocol.values import keys_of, pointer
from paijupyter.protocol.writing import inline, quoted

_NAME = " name"  # no placeholder can be called so
_HIDDEN = "******"


@dataclass(frozen=True, slots=True)
class Filled:
    """One experiment, ready to become a job.

    Attributes:
        key: tells it from others of its group.
        values: what varies, by name, for tables and plots; constants are left out.
        text: the template with all values in it.
        document: the job document: the text, or what a manifest became.
        data: the document's values; {} where it cannot be read.
        same: what is equal where an experiment of this key was not changed since.
    """

    key: str
    values: Mapping[str, Any]
    text: str = ""
    document: str = ""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    same: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """All experiments of a template.

    Attributes:
        name: name of the group.
        filled: the experiments, in their order.
        problems: everything found, each once, with the experiments that have it.
        is_manifest: whether the template is a Job manifest.
    """

    name: str
    filled: tuple[Filled, ...]
    problems: tuple[Problem, ...]
    is_manifest: bool = False


def fill(
    text: str,
    listing: Listing,
    *,
    name: str = "",
    only: Collection[str] | None = None,
    has_placeholders: bool = True,
) -> Sweep:
    """Fill a template with every experiment, and check each of the documents.

    Args:
        text: the template.
        listing: the experiments.
        name: name of the group; else that of the list, else that of the template.
        only: keys of the experiments to fill; None: all.
        has_placeholders: False for a document that was written for the sweep: its braces are all its own.

    Raises:
        InvalidDocument: the template itself cannot be used, with every reason and its line.
    """
    template, group = _template(text, listing, name, has_placeholders=has_placeholders)
    chosen = [each for each in listing.experiments if only is None or each.key in only]
    gathered = Gathered([each.key for each in chosen])
    filler = _Filler(template, gathered)
    names = _names(listing, group)
    found = []
    for each in chosen:
        words = {**_words(each, listing), _NAME: names[each.key]}
        values = {key: value for key, value in (each.values or _by_number(each)).items()}
        try:
            one = filler.fill(each, words)
        except PaiJupyterError as error:
            problems = error.problems or [Problem("error", error.code, error.message, hint=error.hint)]
            gathered.add(each.key, problems)
            one = Filled(each.key, values)
        found.append(replace(one, values=values))
    _note_equals(found, gathered)
    return Sweep(group, tuple(found), tuple(gathered.problems()), template.is_manifest)


def _template(text: str, listing: Listing, name: str, *, has_placeholders: bool) -> tuple[Template, str]:
    """Take the template apart; values that no placeholder takes become parameters of the job."""
    vocabulary = _vocabulary(listing)
    if not has_placeholders:
        braces = frozenset(each.name for each in placeholders(text))
        vocabulary = replace(vocabulary, literal=vocabulary.literal | braces)
    plain = take_apart(text, vocabulary, {})
    typed = {} if plain.is_manifest else {"/name": _NAME, **_parameters(listing, plain.used)}
    replacing = ["/name"] if listing.names else []
    template = take_apart(text, vocabulary, typed, replacing) if typed else plain
    return template, short_name(name or listing.group or plain.name or "sweep")


def _parameters(listing: Listing, used: Collection[str]) -> dict[str, str]:
    fields = next((each for each in listing.experiments if each.items is not None), None)
    numbered = {}
    if fields is not None:
        order = [n for n in fields.values] if len(fields.values) == len(fields.items or ()) else []
        numbered = {name: str(place) for place, name in enumerate(order, 1)}
    names = dict.fromkeys(name for each in listing.experiments for name in each.values)
    names.update(dict.fromkeys(listing.common))
    left = [n for n in names if n not in used and numbered.get(n) not in used and not n.isdecimal()]
    return {pointer("/parameters", name): name for name in left}


def _vocabulary(listing: Listing) -> Vocabulary:
    names = {"0", *listing.common}
    for each in listing.experiments:
        names |= _words(each, listing).keys()
    unordered = ""
    if all(each.items is None for each in listing.experiments):
        unordered = "Numbers after {0} need an order: name it under `fields:`, or give lists."
    return Vocabulary(frozenset(names), unordered, listing.literal)


def _words(each: Experiment, listing: Listing) -> dict[str, Any]:
    """Return the values of an experiment by every name that a placeholder may use (T1)."""
    words: dict[str, Any] = {"0": each.key, **listing.common, **each.values}
    if each.items is not None:
        numbered = [*each.items, *listing.common_items]
        words.update({str(place): value for place, value in enumerate(numbered, 1)})
    elif listing.common_items and not each.values:
        words.update({str(place): value for place, value in enumerate(listing.common_items, 1)})
    return words


def _by_number(each: Experiment) -> dict[str, Any]:
    return {str(place): value for place, value in enumerate(each.items or (), 1)}


def _names(listing: Listing, group: str) -> dict[str, str]:
    """Return a job name per key, all different."""
    found: dict[str, str] = {}
    taken: dict[str, int] = {}
    for each in listing.experiments:
        pattern = listing.names or f"{group}-{{0}}"
        name = short_name(filled(pattern, _words(each, listing)))
        found[each.key] = name
        taken[name] = taken.get(name, 0) + 1
    return {key: name if taken[name] == 1 else short_name(f"{name}-{key}") for key, name in found.items()}


class _Filler:
    """Fills a template, again and again.

    Where experiments differ by nothing but parameters, only the first document is read: the others have the
    same values but for these.
    """

    def __init__(self, template: Template, gathered: Gathered) -> None:
        self._template = template
        self._gathered = gathered
        self._first: Document | None = None

    def fill(self, each: Experiment, words: Mapping[str, Any]) -> Filled:
        text = self._template.text(words)
        if each.patch:
            text = edit_mapping(
                text, [{"op": "replace", "path": path, "value": value} for path, value in each.patch.items()]
            )
        document = text
        if self._template.is_manifest:
            document, lost = convert(text)
            self._gathered.add(each.key, lost)
        found = self._read(document, each, words)
        self._gathered.add(each.key, [*found.corrections, *check(found)])
        render_commands(found)
        return Filled(each.key, {}, text, document, found.data, _same(found.data))

    def _read(self, document: str, each: Experiment, words: Mapping[str, Any]) -> Document:
        is_alike = not (self._template.is_manifest or self._template.used or each.patch)
        if is_alike and self._first is not None:
            return self._like_the_first(document, words, self._first)
        found = read(document)
        if is_alike and not found.corrections:
            self._first = found
        return found

    def _like_the_first(self, text: str, words: Mapping[str, Any], first: Document) -> Document:
        data, parameters = dict(first.data), dict(first.data.get("parameters") or {})
        for name, path in self._template.members.items():
            value = _as_read(words[name])
            if name == _NAME:
                data["name"] = value
            else:
                parameters[keys_of(path)[-1]] = value
        if parameters:
            data["parameters"] = parameters
        return Document(text, data, [], data, first.places)


def _as_read(value: Any) -> Any:
    """Return a value as it is read from a document that it was written into."""
    if value is None or isinstance(value, (str, bool)):
        return value
    return parse_values(f"value: {inline(value)}")[0]["value"]


def _same(data: Mapping[str, Any]) -> str:
    """Return what is equal for equal work: all but the name and the notebook's cell."""
    extras = dict(data.get("extras") or {})
    if isinstance(extras.get("paijupyter"), Mapping):
        extras["paijupyter"] = {k: v for k, v in extras["paijupyter"].items() if k != "notebook"}
    content = {**data, "name": "", "extras": extras}
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def masked(text: str) -> str:
    """Return a filled template for people: what stands below ``secrets`` is hidden (T8)."""
    try:
        data, places, _ = parse_values(text)
    except InvalidDocument:
        return text
    secrets = data.get("secrets")
    spans_of = [
        places[pointer("/secrets", name)].node
        for name, value in (secrets.items() if isinstance(secrets, Mapping) else ())
        if value not in (None, "")
    ]
    for node in sorted(spans_of, key=lambda node: -node.start):
        text = text[: node.start] + quoted(_HIDDEN) + text[node.end :]
    return text


def _note_equals(found: Sequence[Filled], gathered: Gathered) -> None:
    """Hint at experiments that are the same work."""
    seen: dict[str, str] = {}
    for each in found:
        first = seen.setdefault(each.same, each.key) if each.same else each.key
        if first != each.key:
            said = f"It is equal to experiment `{first}`."
            gathered.add(each.key, [Problem("hint", "equal-experiments", said)])


def shape(data: Mapping[str, Any]) -> str:
    """Return what is equal for documents that a backend plans alike: all but names, values and commands."""
    roles = data.get("taskRoles")
    kept = {
        name: {key: value for key, value in role.items() if key != "commands"}
        for name, role in (roles.items() if isinstance(roles, Mapping) else ())
        if isinstance(role, Mapping)
    }
    extras = dict(data.get("extras") or {})
    ours = extras.get("paijupyter")
    if isinstance(ours, Mapping) and isinstance(ours.get("kubernetes"), Mapping):
        options = {key: value for key, value in ours["kubernetes"].items() if key != "manifest"}
        extras["paijupyter"] = {**ours, "kubernetes": options}
    return json.dumps(
        [kept, extras, data.get("prerequisites"), data.get("defaults")], default=str, sort_keys=True
    )
