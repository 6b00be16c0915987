"""The document of a request: read, checked, its commands rendered."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from paijupyter.errors import InvalidDocument, Problem
from paijupyter.jobs.request import Request
from paijupyter.protocol import check, read, render_commands, short_name, split_suffix


class ReadDocument(NamedTuple):
    """A document: plain values, the command of each role, all problems."""

    data: dict[str, Any]
    commands: dict[str, str]
    problems: tuple[Problem, ...]


def read_document(request: Request) -> ReadDocument:
    """Read, check and render the document of a request."""
    found = _read_text(request.document)
    return found._replace(data=copy.deepcopy(found.data), commands=dict(found.commands))


@lru_cache(maxsize=16)
def _read_text(text: str) -> ReadDocument:
    """Read a text once: a submission comes right after the plan of the same."""
    try:
        document = read(text)
    except InvalidDocument as error:
        return ReadDocument({}, {}, tuple(error.problems))
    problems = [*document.corrections, *check(document)]
    commands: dict[str, str] = {}
    try:
        commands = dict(render_commands(document))
    except InvalidDocument as error:
        problems += error.problems
    return ReadDocument(dict(document.data), commands, tuple(problems))


def short_name_of(data: Mapping[str, Any], request: Request) -> str:
    """Return the document's name without a suffix of ours, else the notebook's (P39)."""
    if request.name:
        return short_name(request.name)
    given = data.get("name")
    if isinstance(given, str) and given:
        return short_name(split_suffix(given)[0])
    return short_name(Path(request.context.notebook).stem if request.context.notebook else "job")
