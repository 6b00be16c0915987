"""Spaces of values, and the experiments in them: every combination, some by chance, side by side."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from paijupyter.errors import UsageProblem

Values = dict[str, Any]
_MOST_DIGITS = 6  # of a number by chance: what a person can read, and what a log shows


def grid(space: Mapping[str, Any]) -> tuple[int, Iterator[Values]]:
    """Return number and values of all combinations; the last name changes fastest.

    >>> count, each = grid({"lr": [0.1, 0.01], "batch": [32, 64]})
    >>> count, next(each)
    (4, {'lr': 0.1, 'batch': 32})
    """
    lists = [_several(name, values) for name, values in space.items()]
    count = math.prod(map(len, lists)) if lists else 0
    found = (dict(zip(space, each, strict=True)) for each in itertools.product(*lists)) if lists else iter(())
    return count, found


def zipped(space: Mapping[str, Any]) -> tuple[int, Iterator[Values]]:
    """Return number and values of lists that belong together, item by item.

    Raises:
        UsageProblem: if they are not of the same length.
    """
    lists = {name: _several(name, values) for name, values in space.items()}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise UsageProblem(f"Lists of `zip` must be of the same length: {said}.")
    count = next(iter(lengths.values()), 0)
    return count, ({name: values[place] for name, values in lists.items()} for place in range(count))


def by_chance(space: Mapping[str, Any]) -> tuple[int, Iterator[Values]]:
    """Return number and values drawn at random; the same seed draws the same.

    Args:
        space: ``count``, ``seed`` (default 0), and per name a list to choose from or one of
            ``{uniform: [low, high]}``, ``{log: [low, high]}``, ``{int: [low, high]}``, ``{choice: [..]}``.

    Raises:
        UsageProblem: if one of them is none of these.
    """
    rest = dict(space)
    count, seed = rest.pop("count", None), rest.pop("seed", 0)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise UsageProblem("Space `random` needs `count`, the number of experiments.")
    if isinstance(seed, bool) or not isinstance(seed, (int, str)):
        raise UsageProblem("Space `random` needs a number or a text as `seed`.")
    if not rest:
        raise UsageProblem("Space `random` names no value to draw.")
    # Chance for experiments, not for secrets; text seeds alike on every Python.
    chance = random.Random(str(seed))  # noqa: S311
    draws = {name: _draw(name, given, chance) for name, given in rest.items()}
    return count, ({name: draw() for name, draw in draws.items()} for _ in range(count))


def _draw(name: str, given: Any, chance: random.Random) -> Callable[[], Any]:
    kind, bounds = "choice", given
    if isinstance(given, Mapping) and len(given) == 1:
        kind, bounds = next(iter(given.items()))
    if kind == "choice" and isinstance(bounds, list) and bounds:
        return lambda: chance.choice(bounds)
    if kind not in ("uniform", "log", "int") or not _are_bounds(bounds):
        raise UsageProblem(
            f"Space of `{name}` cannot be drawn from.",
            "Give a list, or one of {uniform: [low, high]}, {log: [low, high]}, {int: [low, high]}.",
        )
    low, high = bounds
    if kind == "int":
        if not (isinstance(low, int) and isinstance(high, int)):
            raise UsageProblem(f"Space of `{name}` needs two whole numbers.")
        return lambda: chance.randint(low, high)
    if kind == "log":
        if low <= 0:
            raise UsageProblem(f"Space of `{name}` must begin above 0, for its logarithm.")
        return lambda: _rounded(math.exp(chance.uniform(math.log(low), math.log(high))), low, high)
    return lambda: _rounded(chance.uniform(low, high), low, high)


def _are_bounds(bounds: Any) -> bool:
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        return False
    numbers = all(isinstance(each, (int, float)) and not isinstance(each, bool) for each in bounds)
    return numbers and math.isfinite(bounds[0]) and math.isfinite(bounds[1]) and bounds[0] <= bounds[1]


def _rounded(value: float, low: float, high: float) -> float:
    return min(max(float(f"{value:.{_MOST_DIGITS}g}"), low), high)


def _several(name: str, values: Any) -> list[Any]:
    if isinstance(values, list):
        if not values:
            raise UsageProblem(f"List of `{name}` is empty.")
        return values
    if isinstance(values, Mapping):
        raise UsageProblem(f"Values of `{name}` must be a list.", "Write [0.1, 0.01].")
    return [values]  # one value is a list of one: a constant beside what varies
