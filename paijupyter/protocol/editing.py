"""Edits by JSON Patch that change only the bytes of what they change.

Every change is first made where it stands, by the parser's marks; then the text is read again, and only a
text that says exactly what was asked is kept. Where the place is shared (an anchor, a merge), the smallest
part around it is written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paijupyter.errors import InvalidDocument, Problem, UsageProblem, in_order
from paijupyter.protocol.checking import check
from paijupyter.protocol.document import parse_values, read
from paijupyter.protocol.patching import Step, get, make, path_of, same, steps_of
from paijupyter.protocol.placing import Edited, replaced, with_step
from paijupyter.protocol.source import decode
from paijupyter.protocol.values import Place
from paijupyter.protocol.writing import write


def edit(text: str | bytes, patch: Iterable[Mapping[str, Any]]) -> tuple[str, list[Problem]]:
    """Return the text with a JSON Patch applied, and what is then wrong with the document.

    Comments, order, quotes and line ends of everything else stay. ``replace`` of a member that does not
    exist adds it, and mappings on its way that do not exist are made.

    Args:
        text: the source document; paths refer to its values as they stand there, not as corrected.
        patch: operations of RFC 6902.

    Raises:
        InvalidDocument: if the text is no document to begin with.
        UsageProblem: if the patch is wrong or cannot be applied.
    """
    source = edit_mapping(text, patch)
    document = read(source)
    return source, in_order([*document.corrections, *check(document)])


def edit_mapping(text: str | bytes, patch: Iterable[Mapping[str, Any]]) -> str:
    """Do what :func:`edit` does to any YAML mapping; whether it is a job document does not matter.

    Raises:
        InvalidDocument: if the text is no mapping to begin with.
        UsageProblem: if the patch is wrong or cannot be applied.
    """
    source = decode(text)
    if not isinstance(patch, Iterable) or isinstance(patch, (str, bytes, Mapping)):
        raise UsageProblem("Patch must be a list of operations.")
    data, places = _values(source)
    for operation in patch:
        for step in steps_of(operation, data):
            source, data, places = _apply(source, data, places, step)
    return source


def _values(source: str) -> tuple[dict[str, Any], dict[str, Place]]:
    data, places, problems = parse_values(source)
    if problems:
        raise InvalidDocument(problems)
    return data, places


def _apply(
    source: str, data: dict[str, Any], places: dict[str, Place], step: Step
) -> tuple[str, dict[str, Any], dict[str, Place]]:
    wanted = make(data, step)
    if same(data, wanted):
        return source, data, places
    for text in _attempts(source, wanted, places, step):
        try:
            found, found_places = _values(text)
        except InvalidDocument:
            continue
        if same(found, wanted):
            return text, found, found_places
    raise UsageProblem(
        f"Edit of `{step.path}` cannot be made without touching other parts of the text.",
        "It is shared by an anchor or written in an unusual way; change the text itself.",
    )


def _attempts(source: str, wanted: Any, places: dict[str, Place], step: Step) -> Iterator[str]:
    """Texts that may say what is wanted, the one with the fewest changed bytes first."""
    if not step.keys:
        yield write(wanted)
        return
    edited = Edited(source, places)
    yield from with_step(edited, step, wanted)
    for length in range(len(step.keys) - 1, 0, -1):
        keys = step.keys[:length]
        if path_of(keys) in places:
            yield from replaced(edited, path_of(keys), get(wanted, keys))
