"""What a form says beside its fields, as HTML: the plan, the files that travel, what a button would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from paijupyter.client.card import plan_facts
from paijupyter.client.card_html import plan_html
from paijupyter.client.words import count, size
from paijupyter.errors import Problem
from paijupyter.forms.controls import said
from paijupyter.forms.draft import Plan


def plan(found: Plan) -> str:
    """Draw a plan: the verdict, every problem, the objects, and the files that travel."""
    return plan_html(plan_facts(found.data, found.left_out)) + _files(found.files)


def _files(files: Sequence[tuple[str, int]]) -> str:
    if not files:
        return ""
    cell = "padding:0 .9em 0 0;text-align:left"
    rows = "".join(
        f'<tr><td style="{cell}"><code>{escape(path)}</code></td><td style="{cell}">{size(length)}</td></tr>'
        for path, length in files
    )
    return f"<details><summary>files, the largest first</summary><table>{rows}</table></details>"


def unreadable(problems: Sequence[Problem]) -> str:
    """Say what forbids reading the text, each with its line."""
    return "".join(said(each.severity, str(each)) for each in problems)


def action(roles: Sequence[Mapping[str, Any]]) -> str:
    """Say what the button does: ``Submit 5 tasks, 4 GPUs``.

    >>> action([{"instances": 4, "gpu": 1}, {"instances": 1}])
    'Submit 5 tasks, 4 GPUs'
    """
    tasks = sum(int(role.get("instances") or 1) for role in roles)
    gpus = sum(int(role.get("instances") or 1) * int(role.get("gpu") or 0) for role in roles)
    return f"Submit {count(tasks, 'task')}" + (f", {count(gpus, 'GPU')}" if gpus else "")


def question(found: Plan) -> str:
    """Ask what a person confirms."""
    facts = plan_facts(found.data)
    what = action(found.data.get("roles") or ())
    return f"{what} as <code>{escape(facts.name)}</code> to {escape(facts.profile)}?"


def state(text: str) -> str:
    """Return the first lines of a card's text: how the job is, and why."""
    head = [line.strip() for line in text.split("\n")[:2] if line.strip()]
    return f'<div role="status">{"<br>".join(map(escape, head))}</div>'
