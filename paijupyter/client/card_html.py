"""The cards as HTML: self-contained, escaped, readable in light and dark, in static pages and without styles.

Colours are JupyterLab's own variables. Where there are none (a static page, VS Code) the fallbacks are middle
tones that stand out on white and on black, and text keeps the page's colour. Each is written twice, plain and
as a variable: a notebook that is not trusted loses what has a variable and keeps the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from paijupyter.client.card import Facts, PlanFacts
from paijupyter.client.words import SEVERITIES, count
from paijupyter.errors import Problem

_Colour = tuple[str, str]  # JupyterLab's variable, and the plain colour.
_COLOURS: dict[str, _Colour] = {
    "waiting": ("--jp-ui-font-color2", "#8a8a8a"),
    "running": ("--jp-info-color0", "#2f80d0"),
    "succeeded": ("--jp-success-color0", "#3a9150"),
    "failed": ("--jp-error-color0", "#d64545"),
    "stopped": ("--jp-warn-color0", "#c07a1e"),
}
_EDGE: _Colour = ("--jp-border-color2", "#8a8a8a66")
_SEVERITY_COLOURS = {
    "error": _COLOURS["failed"],
    "warning": _COLOURS["stopped"],
    "hint": _COLOURS["waiting"],
}
_SENTENCES = frozenset({"starts", "left out"})
_QUIET = "opacity:.72"
_MONO = "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:.92em"
_PRE = (
    f"{_MONO};margin:.5em 0 0;padding:.5em .7em;border-radius:3px;background:rgba(128,128,128,.12);"
    "color:inherit;white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.4"
)


def _painted(prefix: str, colour: _Colour) -> str:
    variable, plain = colour
    return f"{prefix}{plain};{prefix}var({variable},{plain})"


def _frame(colour: _Colour, inside: Iterable[str]) -> str:
    style = (
        "font-family:var(--jp-ui-font-family,system-ui,-apple-system,'Segoe UI',sans-serif);"
        "font-size:var(--jp-ui-font-size1,13px);line-height:1.5;color:var(--jp-ui-font-color1,inherit);"
        f"{_painted('border:1px solid ', _EDGE)};{_painted('border-left:4px solid ', colour)};"
        "border-radius:4px;padding:.55em .85em;margin:.25em 0;max-width:60em"
    )
    return f'<div class="paijupyter-card" style="{style}">{"".join(part for part in inside if part)}</div>'


def _line(content: str, style: str = "margin-top:.3em") -> str:
    return f'<div style="{style}">{content}</div>' if content else ""


def rich(text: str) -> str:
    """Escape a sentence; names in backticks become ``<code>``."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # An odd backtick is only text.
        return escape(text)
    style = f"{_MONO};background:none;color:inherit;padding:0"
    return "".join(
        f'<code style="{style}">{part}</code>' if place % 2 else part for place, part in enumerate(parts)
    )


def _header(colour: _Colour, icon: str, state: str, name: str, where: str, time: str) -> str:
    flex = "display:flex;flex-wrap:wrap;gap:0 .9em;align-items:baseline"
    paint = _painted("color:", colour)
    sign = f'<span aria-hidden="true" style="{paint}">{icon}</span> <strong>{escape(state)}</strong> '
    return (
        f'<div style="{flex}"><span>{sign}</span>'
        f'<strong style="{_MONO};font-weight:600">{escape(name)}</strong> '
        f'<span style="{_QUIET};flex:1 1 auto">{escape(where)}</span> '
        f'<span style="{_QUIET};font-variant-numeric:tabular-nums">{escape(time)}</span></div>'
    )


def _metrics(metrics: Sequence[tuple[str, str, str]], left: str) -> str:
    together = "display:inline-block;white-space:nowrap;margin-right:1.2em"
    drawn = " ".join(
        f'<span style="{together}">{escape(name)} <strong>{escape(value)}</strong> '
        f'<span aria-hidden="true" style="opacity:.6">{escape(course)}</span></span>'
        for name, value, course in metrics
    )
    return f'{drawn} <span style="{_QUIET}">{escape(left)}</span>' if left else drawn


def _ports(ports: Sequence[tuple[str, str]]) -> str:
    link = "color:var(--jp-content-link-color,inherit);margin-right:1.2em"
    drawn = " ".join(
        f'<a href="{escape(address)}" target="_blank" rel="noopener" style="{link}">{escape(name)}</a>'
        if not address.startswith("paijob ")
        else f'<span style="{link}">{escape(name)}</span> <code>{escape(address)}</code>'
        for name, address in ports
    )
    return _line(f'<span style="{_QUIET};margin-right:1.2em">ports</span> {drawn}') if drawn else ""


def _rows(rows: Sequence[tuple[str, str]]) -> str:
    """Draw label and value as a table without lines, for it must also read well where styles are removed."""
    if not rows:
        return ""
    cell = "border:none;background:none;text-align:left;vertical-align:top;padding:.05em 0;color:inherit"
    drawn = "".join(
        f'<tr style="background:none;border:none">'
        f'<td style="{cell};{_QUIET};padding-right:1.2em;white-space:nowrap">{escape(label)}</td>'
        f'<td style="{cell};overflow-wrap:anywhere;white-space:normal">{_value(label, value)}</td></tr>'
        for label, value in rows
    )
    table = "border-collapse:collapse;border:none;margin:.45em 0 0;font-size:1em;table-layout:auto"
    return f'<table style="{table}"><tbody>{drawn}</tbody></table>'


def _value(label: str, value: str) -> str:
    return rich(value) if label in _SENTENCES else escape(value)


def _problem(problem: Problem) -> str:
    paint = _painted("color:", _SEVERITY_COLOURS[problem.severity])
    sign = SEVERITIES[problem.severity]
    place = f'<span style="{_QUIET}">{escape(problem.place)}:</span> ' if problem.place else ""
    hint = f' <span style="{_QUIET}">{rich(problem.hint)}</span>' if problem.hint else ""
    mark = f'<span style="{paint}" title="{problem.severity}">{sign}</span>'
    return f'<li style="margin:.15em 0;list-style:none">{mark} {place}{rich(problem.message)}{hint}</li>'


def _problems(problems: Sequence[Problem]) -> str:
    drawn = "".join(_problem(problem) for problem in problems)
    return f'<ul style="margin:.3em 0 0;padding:0">{drawn}</ul>' if problems else ""


def _folded(summary: str, content: str) -> str:
    style = "margin-top:.45em"
    head = f'<summary style="cursor:pointer;{_QUIET}">{escape(summary)}</summary>'
    return f'<details style="{style}">{head}{content}</details>' if content else ""


def _counted(problems: Sequence[Problem]) -> str:
    said = []
    for severity in ("error", "warning", "hint"):
        found = sum(problem.severity == severity for problem in problems)
        if found:
            said.append(count(found, severity))
    return "plan: " + ", ".join(said)


def job_html(found: Facts) -> str:
    """Draw the card of a job."""
    colour = _COLOURS.get(found.state, _COLOURS["waiting"])
    lines = "\n".join(f"{found.failed_task} │ {line}" for line in found.last_lines)
    advice = f'<span aria-hidden="true">→</span> {rich(found.advice)}' if found.advice else ""
    return _frame(
        colour,
        [
            _header(colour, found.icon, found.state, found.name, found.where, found.time),
            _line(rich(found.line)),
            _line(_metrics(found.metrics, found.left)),
            f'<pre style="{_PRE}">{escape(lines)}</pre>' if lines else "",
            _line(_place(*found.place)),
            _line(advice, "margin-top:.5em;font-weight:500"),
            _ports(found.ports),
            _rows(found.rows),
            _folded(_counted(found.problems), _problems(found.problems)),
        ],
    )


def _place(said: str, address: str) -> str:
    """Draw where in the notebook it failed, as a link to that cell where its id is known."""
    if not said:
        return ""
    return f'at <a href="{escape(address)}">{escape(said)}</a>' if address else f"at {escape(said)}"


def plan_html(found: PlanFacts) -> str:
    """Draw the card of a plan: the verdict first, problems in the open, documents folded."""
    state = "succeeded" if found.possible else "failed"
    colour = _COLOURS[state]
    icon = "✓" if found.possible else "✕"
    documents = [
        _folded(f"show {name}", f'<pre style="{_PRE}">{escape(text)}</pre>')
        for name, text in found.documents.items()
    ]
    return _frame(
        colour,
        [
            _header(colour, icon, found.verdict, found.name, f"on {found.profile}", ""),
            _line(escape(found.tasks)),
            _rows(found.rows),
            _problems(found.problems),
            *documents,
        ],
    )
