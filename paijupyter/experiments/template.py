"""A template, taken apart once: the text between its placeholders, and how a value stands in each of them.

Values are put in as text (T2). Where a whole unquoted scalar is one placeholder, a number stays a number
only where the field wants one; a text that would be read as something else gets quotes. Inside of quotes what
would end them is escaped. So no value changes the structure of the document around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paijupyter.errors import InvalidDocument, Problem
from paijupyter.experiments.placeholders import Placeholder, as_text, placeholders, replaced
from paijupyter.protocol.document import parse_values
from paijupyter.protocol.editing import edit_mapping
from paijupyter.protocol.findings import did_you_mean
from paijupyter.protocol.scalars import resolve
from paijupyter.protocol.source import Node, parse
from paijupyter.protocol.values import keys_of, pointer
from paijupyter.protocol.writing import inline, is_plain_text, quoted

_NUMBERS = frozenset(
    [
        "instances", "cpu", "memoryMB", "gpu", "shmMB", "minFailedInstances", "minSucceededInstances",
        "taskRetryCount", "jobRetryCount", "timeLimit", "barrierTimeout",
    ]
)  # fmt: skip
_MANIFEST_NUMBERS = frozenset(
    [
        "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes", "completions", "parallelism",
        "activeDeadlineSeconds", "ttlSecondsAfterFinished", "terminationGracePeriodSeconds", "containerPort",
        "hostPort", "runAsUser", "runAsGroup", "fsGroup", "defaultMode", "priority",
    ]
)  # fmt: skip
_TRUTHS = frozenset(["readOnly", "suspend", "hostNetwork", "infiniband", "service", "privileged"])


class BadValue(Exception):
    """A value cannot stand where its placeholder is; the reason is its text."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a value.

    Attributes:
        name: of the value.
        line: 1-based line in the template.
        style: ``whole`` (an unquoted scalar), ``part`` (of one), ``typed`` (a scalar of ours), the quote or
            block character of the scalar around it, or ``#`` in a comment.
        keeps: types of values that stay what they are in a whole scalar.
        indent: what each further line of a value begins with, in a block scalar.
    """

    name: str
    line: int
    style: str
    keeps: tuple[type, ...] = ()
    indent: str = ""

    def text(self, value: Any) -> str:
        """Return a value as it stands here.

        Raises:
            BadValue: if it cannot.
        """
        if self.style == "typed":
            return inline(value)
        said = as_text(value)
        if self.style == "whole":
            return self._whole(value, said)
        if self.style == '"':
            return quoted(said)[1:-1]
        if self.style == "'":
            if "\n" in said:
                raise BadValue("has a line break, which single quotes do not keep; use double quotes")
            return said.replace("'", "''")
        if self.style in ("|", ">"):
            return said.replace("\n", ("\n" if self.style == "|" else "\n\n") + self.indent)
        if self.style == "#":
            return said.replace("\n", " ")
        if re.search(r": |:$| #|[\n\r\t\[\]{},]|^[#&*!|>%@`'\"]", said):
            raise BadValue("has signs of YAML in it; put quotes around the text that it is a part of")
        return said

    def _whole(self, value: Any, said: str) -> str:
        if self.keeps == (object,):
            return (
                said if isinstance(value, str) and is_plain_text(said) and said.isalnum() else inline(value)
            )
        is_kept = isinstance(value, self.keeps) and (bool in self.keeps or not isinstance(value, bool))
        if is_kept and resolve(said) == value:
            return said
        return said if is_plain_text(said) and not set(said) & set("[]{},") else quoted(said)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names that a template may use.

    Attributes:
        names: with a value for at least one experiment.
        unordered: why numbers have no value, where values have no stated order; else "".
        literal: words in braces that are no placeholders.
    """

    names: frozenset[str]
    unordered: str = ""
    literal: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Template:
    """A template ready to be filled.

    Attributes:
        is_manifest: whether it is a ``batch/v1`` Job, and not a job document.
        parts: texts and slots in turn.
        used: names that its placeholders take.
        name: its own name, up to the first placeholder in it.
        members: JSON Pointer of the members that get a value, by the value's name.
    """

    is_manifest: bool
    parts: tuple[str | Slot, ...]
    used: frozenset[str]
    name: str = ""
    members: Mapping[str, str] = field(default_factory=dict)

    def text(self, values: Mapping[str, Any]) -> str:
        """Fill in the values of one experiment.

        Raises:
            InvalidDocument: for each that is missing or cannot stand where it is used.
        """
        found, problems = list[str](), list[Problem]()
        for part in self.parts:
            if isinstance(part, str):
                found.append(part)
            elif part.name not in values:
                message = f"Placeholder `{{{part.name}}}` has no value in this experiment."
                problems.append(Problem("error", "no-value", message, line=part.line))
            else:
                try:
                    found.append(part.text(values[part.name]))
                except BadValue as error:
                    message = f"Value of `{{{part.name}}}` {error}."
                    problems.append(Problem("error", "bad-value", message, line=part.line))
        if problems:
            raise InvalidDocument(dict.fromkeys(problems))
        return "".join(found)


def take_apart(
    text: str, vocabulary: Vocabulary, typed: Mapping[str, str], replacing: Collection[str] = ()
) -> Template:
    """Make a template of its text.

    Args:
        text: a job document, or a ``batch/v1`` Job manifest.
        vocabulary: names that its placeholders may have.
        typed: names of values by the JSON Pointer of the member that gets them, for a job document only; a
            member that a placeholder is in stays the placeholder's,
        replacing: but for these.

    Raises:
        InvalidDocument: it is no YAML, or has placeholders that stand for nothing, each with its line.
    """
    found = list(placeholders(text, vocabulary.literal))
    problems = [_unknown(each, vocabulary) for each in found if each.name not in vocabulary.names]
    if problems:
        raise InvalidDocument(dict.fromkeys(problems))
    mark = _mark(text)
    names = [each.name for each in found]
    lines = [each.line for each in found]
    marked = replaced(text, found, lambda number, _: f"{mark}{number}q")
    data, _, wrong = parse_values(marked)
    if wrong:
        raise InvalidDocument(wrong)
    is_manifest = data.get("kind") == "Job" and str(data.get("apiVersion", "")).startswith("batch/")
    own = str(_member(data, "/metadata/name" if is_manifest else "/name") or "").partition(mark)[0]
    members = {}
    if not is_manifest:
        for path, name in typed.items():
            if mark in str(_member(data, path) or "") and path not in replacing:
                continue
            members[name] = path
            marked = edit_mapping(marked, [{"op": "add", "path": path, "value": f"{mark}{len(names)}q"}])
            names.append(name)
            lines.append(0)
    slots = _slots(marked, mark, names, lines, len(found), is_manifest=is_manifest)
    return Template(is_manifest, tuple(slots), frozenset(each.name for each in found), own, members)


def _unknown(each: Placeholder, vocabulary: Vocabulary) -> Problem:
    message = f"Placeholder `{{{each.name}}}` stands for nothing."
    if each.name.isdecimal() and vocabulary.unordered:
        return Problem("error", "unknown-placeholder", message, line=each.line, hint=vocabulary.unordered)
    hint = did_you_mean(each.name, sorted(vocabulary.names, key=lambda name: (not name.isdecimal(), name)))
    hint = f"{hint} If it is no placeholder, name it under `literal:`.".strip()
    return Problem("error", "unknown-placeholder", message, line=each.line, hint=hint)


def _mark(text: str) -> str:
    number = 0
    while f"pj{number}x" in text:
        number += 1
    return f"pj{number}x"


def _member(data: Any, path: str) -> Any:
    for key in keys_of(path):
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _slots(
    marked: str,
    mark: str,
    names: Sequence[str],
    lines: Sequence[int],
    given: int,
    *,
    is_manifest: bool,
) -> Iterator[str | Slot]:
    """Yield the texts and slots of a marked text."""
    around = dict(_scalars(parse(marked), ""))
    starts = sorted(around)
    end = 0
    for match in re.finditer(rf"{mark}(\d+)q", marked):
        number = int(match[1])
        node, path = _around(match.start(), starts, around)
        start, stop = match.span()
        if node is not None and number >= given:
            slot = Slot(names[number], node.line, "typed")
            start, stop = node.start, node.end
        else:
            slot = _slot(names[number], lines[number], match, marked, node, path, is_manifest)
        yield marked[end:start]
        yield slot
        end = stop
    yield marked[end:]


def _slot(
    name: str, line: int, match: re.Match[str], marked: str, node: Node | None, path: str, is_manifest: bool
) -> Slot:
    if node is None:
        return Slot(name, line, "#")
    if node.style in ("|", ">"):
        begin = marked.rfind("\n", 0, match.start()) + 1
        written = marked[begin : match.start()]
        return Slot(name, line, node.style, indent=written[: len(written) - len(written.lstrip(" "))])
    if node.style:
        return Slot(name, line, node.style)
    if marked[node.start : node.end] != match[0]:
        return Slot(name, line, "part")
    return Slot(name, line, "whole", _kept(path, is_manifest))


def _kept(path: str, is_manifest: bool) -> tuple[type, ...]:
    """Return the types that a field takes besides text (T2)."""
    keys = keys_of(path)
    last = keys[-1] if keys else ""
    if is_manifest:
        return (int, float) if last in _MANIFEST_NUMBERS else (bool,) if last in _TRUTHS else ()
    if keys[:1] == ["parameters"]:
        return (object,)
    if last in _NUMBERS or "ports" in keys[:-1]:
        return (int, float)
    return (bool,) if last in _TRUTHS else ()


def _scalars(node: Node, path: str) -> Iterator[tuple[int, tuple[Node, str]]]:
    """Yield the scalars of a tree by their start; what an alias repeats is only where it stands."""
    if node.kind == "scalar":
        yield node.start, (node, path)
    elif node.kind == "sequence":
        for index, item in enumerate(node.children):
            yield from _scalars(item, pointer(path, index))
    elif node.kind == "mapping":
        for key, item in node.entries:
            yield from _scalars(key, "")
            yield from _scalars(item, pointer(path, key.text))


def _around(
    place: int, starts: Sequence[int], scalars: Mapping[int, tuple[Node, str]]
) -> tuple[Node | None, str]:
    from bisect import bisect_right

    index = bisect_right(starts, place) - 1
    if index < 0:
        return None, ""
    node, path = scalars[starts[index]]
    return (node, path) if place < node.end else (None, "")


def values_json(values: Iterable[Any]) -> str:
    """Return values as one text that is equal for equal values."""
    return json.dumps(list(values), sort_keys=True, ensure_ascii=False, default=str)
