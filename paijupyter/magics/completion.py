"""Completion of ``%paijob`` lines: verbs, options, names of jobs and profiles, folders' files by IPython."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from IPython.core.completer import SimpleCompletion

from paijupyter.client.options import VERBS, verb_named
from paijupyter.client.parser import Option, Verb
from paijupyter.errors import PaiJupyterError

_MANY = 100


def complete(shell: Any, context: Any) -> dict[str, Any]:
    """Return the completions of a line of ours, in IPython's shape of a matcher's result."""
    line = context.line_with_cursor[: context.cursor_position]
    start = line.find("%paijob")
    if start < 0:
        return {"completions": []}
    is_cell = line[:start].endswith("%")
    words = line[start + len("%paijob") :].split(" ")
    found = candidates(words[1:-1] if len(words) > 1 else [], words[-1], is_cell=is_cell)
    return {
        "completions": [SimpleCompletion(text, type="paijob") for text in found],
        "suppress": bool(found),
        "matched_fragment": words[-1],
    }


def candidates(before: list[str], fragment: str, *, is_cell: bool = False) -> list[str]:
    """Return what can stand at the end of a line.

    Args:
        before: the words before it.
        fragment: what is typed of it.
        is_cell: whether it is the line of a ``%%paijob`` cell, which needs no verb.

    >>> candidates(["logs", "last"], "--f")
    ['--follow']
    """
    words = [word for word in before if word]
    verb = _verb(words)
    if verb is None and not words and not is_cell:
        names = [each.name for each in VERBS]
        return [name for name in names if name.startswith(fragment)]
    verb = verb or verb_named("submit")
    option = _option_before(verb, words)
    if option is not None and option.kind in ("value", "list"):
        return _starting(_values(option), fragment)
    if fragment.startswith("-"):
        flags = [each.name for each in verb.options if each.name.startswith("-") and "magic" in each.surfaces]
        return _starting([*flags, "--help"], fragment)
    words_of_verb = [each for each in verb.options if each.kind == "word"]
    if len(words) == 1 and words_of_verb and words_of_verb[0].choices:
        return _starting(words_of_verb[0].choices, fragment)
    if verb.name == "profile" and len(words) == 2:
        return _starting(_profile_names(), fragment)
    if any(each.name == "job" for each in verb.options):
        return _starting(["last", *_job_names()], fragment)
    return []


def _verb(words: list[str]) -> Verb | None:
    if words and not words[0].startswith("-"):
        with contextlib.suppress(PaiJupyterError):
            return verb_named(words[0])
    return None


def _option_before(verb: Verb, words: list[str]) -> Option | None:
    last = words[-1] if words else ""
    return next((each for each in verb.options if last and last in (each.name, each.short)), None)


def _values(option: Option) -> Iterable[str]:
    if option.choices:
        return option.choices
    if option.name == "--profile":
        return _profile_names()
    return ()


def _starting(names: Iterable[str], fragment: str) -> list[str]:
    return list(dict.fromkeys(name for name in names if name.startswith(fragment)))


def _job_names() -> list[str]:
    """Return names of the latest jobs, where an engine runs; completion starts none."""
    with contextlib.suppress(PaiJupyterError, OSError):
        return [str(view["name"]) for view in _client().list(limit=_MANY)["jobs"]]
    return []


def _profile_names() -> list[str]:
    with contextlib.suppress(PaiJupyterError, OSError):
        return [str(each["name"]) for each in _client().profiles()]
    return ["local"]


def _client() -> Any:
    from paijupyter.client.client import JobsClient

    return JobsClient.connect(start=False)
