"""What one line of a log says: numbers with names, and how far the work is. Pure, and never raises.

A line of JSON is an object of numbers. In other lines numbers are found as ``name=value``, ``name: value``
and ``'name': value``; after the usual words also as ``loss 0.14``. How far the work is, is said by
``Epoch 3/20``, ``step 10/100`` and the bars of tqdm and keras.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_NUMBER = r"[-+]?(?:\d{1,15}(?:\.\d{0,17})?|\.\d{1,17})(?:[eE][-+]?\d{1,3})?|[-+]?(?:nan|inf)"
_WORDS = (
    r"(?:loss|acc|accuracy|auc|f1|error|err|ppl|perplexity|lr|learning_rate|mse|rmse|mae|bleu|rouge|iou|map|psnr|"
    r"ssim|wer|cer|r2|precision|recall|score|reward|return|throughput|metric)"
)
_USUAL = rf"(?:[\w./-]{{0,24}}[_/-])?{_WORDS}"
_PAIR = re.compile(
    rf"(?<![\w./%-])['\"]?([A-Za-z][\w./-]{{0,47}})['\"]?(?:\s?=\s?|\s?:\s+)({_NUMBER})"
    r"(?:%(?!\|)|m?s|it/s|s/it)?(?=$|[\s,;)\]}|]|\.(?:\s|$))",
    re.IGNORECASE,
)
_SPACED = re.compile(rf"(?<![\w./-])({_USUAL})\s+({_NUMBER})%?(?=$|[\s,;)\]}}|]|\.(?:\s|$))", re.IGNORECASE)
_MAY_BE_SPACED = re.compile(rf"{_WORDS}\s+[-+.\d]", re.IGNORECASE)
_IS_USUAL = re.compile(_USUAL, re.IGNORECASE)
_NO_METRICS = frozenset(
    [
        "at",
        "code",
        "date",
        "eta",
        "exit",
        "file",
        "gpu",
        "id",
        "index",
        "line",
        "pid",
        "port",
        "rank",
        "seed",
        "size",
        "status",
        "time",
        "ts",
        "version",
        "v_num",
    ]
)
_OUTER = ("epoch", "round", "fold", "trial", "episode")
_INNER = ("step", "iteration", "batch")
_UNITS = {"iter": "iteration", "it": "iteration", "its": "iteration"}
_OF = re.compile(
    r"\b(epoch|round|fold|trial|episode|step|iteration|iter|batch)(?:es|s)?\b\s?[:#=]?\s?[\[(]?\s?"
    r"(\d{1,12})\s?(?:/|of|out of)\s?(\d{1,12})(?![\w.]*/)",
    re.IGNORECASE,
)
_EPOCH_STEP = re.compile(
    r"\bepoch\b\s?[:#=]?\s?\d{1,9}\s?(?::|,|\[|\()\s{0,4}\[?(\d{1,12})/(\d{1,12})", re.IGNORECASE
)
_TQDM = re.compile(
    r"\d{1,3}%\|[^|]{0,300}\|\s{0,8}([\d.]{1,14}[kMGT]?)/([\d.]{1,14}[kMGT]?)\s?\[[\d:?]{1,12}<([\d:?]{1,12})"
    r"(?:,\s{0,8}[\d.?]{1,14}\s?([^\s/,\]]{1,12})/([^\s/,\]]{1,12}))?"
)
_KERAS = re.compile(r"^\s{0,4}(\d{1,12})/(\d{1,12})\s+(?:\[[=>.]+\]|[━─╸╺ ]{3,})")
_KERAS_ETA = re.compile(r"ETA:\s(\d[\d:]{0,10})(s?)")
_ANSI = re.compile(rb"\x1b\[[0-9;?]{0,16}[A-Za-z]")
_TELLING = re.compile(rb"\d")
_OWN = b"[paijupyter] "
LONGEST = 1 << 11  # bytes of a line that is looked at
LONGEST_JSON = 1 << 16
_LATEST = 2**40  # seconds; what is later is no time


@dataclass(frozen=True, slots=True)
class Count:
    """How far something is: ``done`` of ``total`` units, with what the bar itself expects, in seconds."""

    unit: str
    done: float
    total: float
    left: float | None = None

    @property
    def is_outer(self) -> bool:
        """Whether it goes around others: an epoch has steps, not the other way round."""
        return self.unit in _OUTER


@dataclass(frozen=True, slots=True)
class Reading:
    """What a line says.

    Attributes:
        values: numbers by name.
        structured: whether they come from JSON, and not from text.
        counts: what is how far, the outer one first.
        unusual: names that may be no metric at all: a setting that is printed once.
        execution: which cell of a notebook runs, as the notebook's own runner tells it.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    structured: bool = False
    counts: tuple[Count, ...] = ()
    unusual: frozenset[str] = frozenset()
    execution: Mapping[str, Any] | None = None


_NOTHING = Reading()


def read_line(line: bytes) -> Reading:
    """Return what a line says; one that says nothing costs little."""
    if len(line) > LONGEST_JSON or not _TELLING.search(line) or line.startswith(_OWN):
        return _NOTHING
    if line.lstrip()[:1] == b"{":
        found = read_object(line)
        if found is not None:
            return found
    if len(line) > LONGEST:
        return _NOTHING
    if b"\x1b" in line:
        line = _ANSI.sub(b"", line)
    text = line.decode("utf-8", "replace")
    counts = _counts(text)
    values, unusual = _values(text)
    return Reading(values, False, counts, unusual) if counts or values else _NOTHING


def read_object(line: bytes) -> Reading | None:
    """Return what a line of JSON says, or None if it is no object."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    return Reading(values, True, _counters(values), execution=_execution(values.get("notebook")))


def _execution(told: Any) -> dict[str, Any] | None:
    """Return ``{cell, cells, line, at, done}`` of a notebook that runs, or None if this tells of none."""
    if not isinstance(told, dict) or _count("cell", told.get("cell"), told.get("cells")) is None:
        return None
    line, at = told.get("line"), told.get("at")
    if not isinstance(line, str) or not isinstance(at, (int, float)) or not 0 <= at < _LATEST:
        return None
    return {
        "cell": int(told["cell"]),
        "cells": int(told["cells"]),
        "line": line[:200],
        "at": float(at),
        "done": told.get("done") is True,
    }


def _counters(values: Mapping[str, Any]) -> tuple[Count, ...]:
    """Find counters beside their totals: ``epoch`` and ``epochs``, ``step`` and ``max_steps``."""
    found = []
    for unit in (*_OUTER, *_INNER):
        done = values.get(unit)
        many = f"{unit}es" if unit == "batch" else f"{unit}s"
        names = (many, f"max_{many}", f"num_{many}", f"total_{many}")
        total = next((values[name] for name in names if name in values), None)
        count = _count(unit, done, total)
        if count is not None:
            found.append(count)
    return tuple(found[:2])


def _values(text: str) -> tuple[dict[str, float | int], frozenset[str]]:
    values: dict[str, float | int] = {}
    unusual = set()
    for name, number in _PAIR.findall(text) if "=" in text or ": " in text else ():
        if name.lower() in _NO_METRICS:
            continue
        values[name] = _number(number)
        if not _IS_USUAL.fullmatch(name):
            unusual.add(name)
    for name, number in _SPACED.findall(text) if _MAY_BE_SPACED.search(text) else ():
        values.setdefault(name, _number(number))
    return values, frozenset(unusual)


def _counts(text: str) -> tuple[Count, ...]:
    found: dict[bool, Count] = {}
    for count in _all_counts(text):
        found.setdefault(count.is_outer, count)
    return tuple(found[outer] for outer in (True, False) if outer in found)


def _all_counts(text: str) -> list[Count]:
    found: list[Count | None] = []
    if "/" not in text and " of " not in text:
        return []
    for unit, done, total in _OF.findall(text):
        found.append(_count(_unit(unit.lower()), int(done), int(total)))
    bar = _TQDM.search(text)
    if bar:
        first, second = bar[4] or "", bar[5] or ""
        unit = second if first == "s" else first  # 12it/s, or 1.2s/it
        found.insert(0, _count(_unit(unit or "it"), _scaled(bar[1]), _scaled(bar[2]), _seconds(bar[3])))
    keras = _KERAS.match(text)
    if keras:
        eta = _KERAS_ETA.search(text)
        found.append(_count("step", int(keras[1]), int(keras[2]), _seconds(eta[1]) if eta else None))
    inside = _EPOCH_STEP.search(text)
    if inside:
        found.append(_count("step", int(inside[1]), int(inside[2])))
    return [count for count in found if count is not None]


def _count(unit: str, done: object, total: object, left: float | None = None) -> Count | None:
    for number in (done, total):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return None
    if not 0 <= done <= total < 1e15 or total == 0:  # type: ignore[operator]  # both are numbers
        return None
    return Count(unit, done, total, left)  # type: ignore[arg-type]


def _unit(word: str) -> str:
    return _UNITS.get(word, word)


def _number(text: str) -> float | int:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _scaled(text: str) -> float | int | None:
    scale = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1], 0)
    try:
        return float(text[:-1]) * scale if scale else _number(text)
    except ValueError:
        return None


def _seconds(text: str) -> float | None:
    """Read ``1:02:03``, ``04:05`` or ``12``."""
    total = 0
    for part in text.split(":"):
        if not part.isdigit():
            return None
        total = 60 * total + int(part)
    return float(total)
