"""Small pictures of a group's metrics, as SVG that reads on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from paijupyter.client.words import number
from paijupyter.errors import UsageProblem

_WIDTH, _HEIGHT = 480, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 24, 40
_COLOURS = ("#4c8dd6", "#d9822b", "#3d9970", "#c0504d", "#8e6bbf", "#8a7a4a", "#d36ba6", "#6b7f8c")
_LEGEND = 12  # courses that are named; of more, a pointer over one says which it is
_LOGARITHMIC = 50.0  # where the largest is so many times the smallest, steps are factors


class Plot:
    """A picture; notebooks show it, ``svg`` is its text."""

    def __init__(self, svg: str, what: str) -> None:
        self.svg = svg
        self._what = what

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Plot {self._what}>"


def scatter(points: Sequence[tuple[Any, Any, str]], parameter: str, metric: str) -> Plot:
    """Draw one point per experiment.

    Args:
        points: value of the parameter, of the metric, and key of each experiment.
        parameter: its name, below the picture; values that are no numbers stand side by side.
        metric: its name, beside the picture.

    Raises:
        UsageProblem: no experiment has both.
    """
    usable = [(x, float(y), key) for x, y, key in points if _is_number(y)]
    if not usable:
        raise UsageProblem(f"No experiment has both `{parameter}` and a number for `{metric}`.")
    if all(_is_number(x) for x, _, _ in usable):
        across = _Axis([float(x) for x, _, _ in usable])
        places = [float(x) for x, _, _ in usable]
        ticks = across.ticks()
    else:
        names = list(dict.fromkeys(str(x) for x, _, _ in usable))
        across = _Axis([-0.5, len(names) - 0.5])
        places = [float(names.index(str(x))) for x, _, _ in usable]
        ticks = [(float(place), name[:12]) for place, name in enumerate(names)]
    up = _Axis([y for _, y, _ in usable])
    marks = [
        f'<circle cx="{_x(across(place)):.1f}" cy="{_y(up(y)):.1f}" r="4" fill="{_COLOURS[0]}">'
        f"<title>{escape(f'{key}: {parameter} = {_said(x)}, {metric} = {number(y)}')}</title></circle>"
        for place, (x, y, key) in zip(places, usable, strict=True)
    ]
    return Plot(_frame(marks, across, ticks, up, parameter, metric), f"{metric} by {parameter}")


def lines(courses: Mapping[str, Sequence[Any]], metric: str) -> Plot:
    """Draw the course of a metric in each experiment.

    Args:
        courses: values over time by key of the experiment.
        metric: its name.

    Raises:
        UsageProblem: no experiment has it.
    """
    usable = {
        key: [(at, float(y)) for at, y in enumerate(each) if _is_number(y)] for key, each in courses.items()
    }
    usable = {key: each for key, each in usable.items() if each}
    if not usable:
        raise UsageProblem(f"No experiment has a course of `{metric}`.")
    longest = max(each[-1][0] for each in usable.values())
    across = _Axis([0.0, float(max(longest, 1))], linear=True)
    up = _Axis([y for each in usable.values() for _, y in each])
    marks = []
    for place, (key, each) in enumerate(usable.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        path = " ".join(f"{_x(across(at)):.1f},{_y(up(y)):.1f}" for at, y in each)
        title = f"<title>{escape(f'{key}: {number(each[-1][1])}')}</title>"
        marks.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5">{title}</polyline>'
        )
        if len(usable) <= _LEGEND:
            marks.append(
                f'<text x="{_WIDTH - _RIGHT}" y="{_TOP + 13 * place:.0f}" text-anchor="end" fill="{colour}">'
                f"{escape(key)}</text>"
            )
    return Plot(_frame(marks, across, across.ticks(), up, "", metric), f"course of {metric}")


class _Axis:
    """Maps values to 0…1; by factors where they span many and are positive."""

    def __init__(self, values: Sequence[float], *, linear: bool = False) -> None:
        low, high = min(values), max(values)
        self.is_logarithmic = not linear and low > 0 and high / low >= _LOGARITHMIC
        self._scale: Callable[[float], float] = math.log10 if self.is_logarithmic else float
        if low == high:
            margin = abs(low) / 2 or 1.0
            low, high = low - margin, high + margin
        self._low, self._high = self._scale(low), self._scale(high)

    def __call__(self, value: float) -> float:
        return (self._scale(value) - self._low) / (self._high - self._low)

    def ticks(self) -> list[tuple[float, str]]:
        """Return values worth a mark, and how they are said."""
        found = []
        for place in range(5):
            scaled = self._low + (self._high - self._low) * place / 4
            value = 10**scaled if self.is_logarithmic else scaled
            found.append((value, f"{value:.3g}"))
        return found


def _frame(
    marks: Sequence[str],
    across: _Axis,
    ticks: Sequence[tuple[float, str]],
    up: _Axis,
    below: str,
    beside: str,
) -> str:
    drawn = []
    for value, said in ticks:
        x = _x(across(value))
        drawn.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{escape(said)}</text>'
        )
    for value, said in up.ticks():
        y = _y(up(value))
        drawn.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(said)}</text>')
        drawn.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="currentColor" '
            'stroke-opacity=".15"/>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    title = f'<text x="{_LEFT}" y="{_TOP - 10}">{escape(beside)}</text>'
    name = f'<text x="{middle:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(below)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(f"{beside} {below}".strip())}" '
        'font-family="sans-serif" font-size="11" fill="#888" color="#888">'
        f"{''.join(drawn)}{title}{name}{''.join(marks)}</svg>"
    )


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _said(value: Any) -> str:
    return number(value) if isinstance(value, (int, float, str)) or value is None else str(value)
