"""Tables of jobs and profiles as plain text and as HTML; columns are facts, named as everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from paijupyter.client import card, words

JOB_COLUMNS = ("state", "name", "profile", "tasks", "time", "what")
PROFILE_COLUMNS = ("profile", "kind", "from", "what")
_LONGEST = 60
_BY = {"built-in": "built in", "administrator": "administrator", "user": "you"}


def job_rows(views: Sequence[Mapping[str, Any]], now: datetime | None = None) -> list[tuple[str, ...]]:
    """Return one row per job: state, name, profile, tasks ready of all, time, and the line of its state.

    A group among them has its number of experiments, and how many are in each state.
    """
    rows: list[tuple[str, ...]] = []
    for view in views:
        if "counts" in view:
            rows.append(_group_row(view, now))
            continue
        found = card.facts(view, now=now)
        state = f"{found.icon} {found.state}"
        profile = str(view.get("profile") or "")
        rows.append((state, found.name, profile, _ready(view), found.time, _what(found)))
    return rows


def _group_row(view: Mapping[str, Any], now: datetime | None) -> tuple[str, ...]:
    from paijupyter.client.group_card import counted

    state = f"{words.ICONS.get(str(view['state']), '○')} {view['state']}"
    name, profile = f"{view['name']} ({view['total']})", str(view.get("profile") or "")
    time = words.elapsed(view.get("submittedAt"), view.get("endedAt"), now)
    return (state, name, profile, "", time, counted(view))


def _ready(view: Mapping[str, Any]) -> str:
    total = there = 0
    for role in (view.get("roles") or {}).values():
        states = role.get("states") or {}
        total += int(role.get("instances") or 0)
        there += int(states.get("running") or 0) + int(states.get("succeeded") or 0)
    return str(total) if view["state"] in words.FINAL else f"{there}/{total}"


def _what(found: card.Facts) -> str:
    if found.state in ("running", "succeeded") and found.metrics:
        return "  ".join(f"{name} {value}" for name, value, _ in found.metrics[:2])
    line = found.line.replace("\n", " ").replace("`", "")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def profile_rows(profiles: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return one row per profile."""
    rows: list[tuple[str, ...]] = []
    for each in profiles:
        by = {source["by"] for source in (each.get("sources") or {}).values()}
        said = " + ".join(words for key, words in _BY.items() if key in by)
        settings = ", ".join(f"{key} {value}" for key, value in (each.get("settings") or {}).items())
        what = each.get("reason") or settings
        default = "default" if each.get("default") else ""
        shown = ": ".join(part for part in (default, str(what)) if part)
        rows.append((str(each.get("name")), str(each.get("kind") or ""), said, shown))
    return rows


def plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Draw a table as text: columns two spaces apart, names of columns first."""
    widths = [
        max(len(column), *(len(row[place]) for row in rows)) if rows else len(column)
        for place, column in enumerate(columns)
    ]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [columns, *rows]
    ]
    return "\n".join(lines)


def html(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Draw a table as HTML; the page's own style of tables applies."""
    head = "".join(f'<th style="text-align:left">{escape(column)}</th>' for column in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
