"""Problems of many experiments: each said once, with the experiments that have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from paijupyter.errors import Problem, in_order
from paijupyter.experiments.selection import spans


class Gathered:
    """Gathers problems.

    Args:
        keys: of all experiments that are looked at.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._found: dict[Problem, dict[str, None]] = {}

    def add(self, key: str, problems: Iterable[Problem]) -> None:
        """Note what was found in an experiment; found again, it counts once."""
        for problem in problems:
            self._found.setdefault(problem, {})[key] = None

    def problems(self) -> list[Problem]:
        """Return them, errors first; one that not all experiments have names those that have it."""
        return in_order(self._said(problem, list(keys)) for problem, keys in self._found.items())

    def _said(self, problem: Problem, keys: Sequence[str]) -> Problem:
        if len(keys) == len(self._keys) and len(keys) > 1:
            return problem
        one = "Experiment" if len(keys) == 1 else "Experiments"
        return replace(problem, message=f"{one} {spans(keys)}: {problem.message}")
