"""What the table of a group says: pure functions from the API's JSON to facts, plain text and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from paijupyter.client import card, tables, words
from paijupyter.errors import Problem, in_order

ROWS = 200  # experiments of a table in a notebook; all of them are in the data frame
_COLUMNS = 6  # names of values that have a column of their own each
_METRICS = 3
_LONGEST = 70
_STATES = ("running", "waiting", "failed", "stopped", "succeeded")
_QUIET = "opacity:.75"
# Sorts by the cells' values when a head is clicked, where a page runs scripts; else the order is the group's.
_SORT = (
    '<script>(function(){{var t=document.getElementById("{0}");if(!t)return;'
    't.querySelectorAll("th").forEach(function(h,i){{h.style.cursor="pointer";h.onclick=function(){{'
    'var b=t.tBodies[0],d=h.dataset.d=h.dataset.d==="1"?"-1":"1",r=Array.from(b.rows);'
    "r.sort(function(x,y){{var a=x.cells[i].dataset.v,c=y.cells[i].dataset.v,n=a-c;"
    "return d*(isNaN(n)?a.localeCompare(c):n)}});"
    "r.forEach(function(e){{b.appendChild(e)}})}}}})}})();</script>"
)


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What the table of a group says, top to bottom.

    Attributes:
        head: state, name, where and how many.
        counts: how many are in each state, in words.
        lines: what there is to say of all of them.
        columns: names of the columns.
        rows: shown and raw value of each cell.
        more: how many experiments are not shown.
        problems: what the plan found, worst first.
    """

    state: str
    name: str
    where: str
    counts: str
    lines: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[str, Any], ...], ...]
    more: int = 0
    problems: tuple[Problem, ...] = ()


def facts(view: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]], most: int = ROWS) -> GroupFacts:
    """Gather what the table of a group says.

    Args:
        view: a Group.
        experiments: its experiments.
        most: how many of them are shown.
    """
    names = list(view.get("parameters") or ())
    metrics = _metric_names(experiments)
    columns = ["experiment", *(names if len(names) <= _COLUMNS else ["values"]), "state", "time"]
    has_nodes = len({each.get("node") for each in experiments}) > 1
    has_restarts = any(each.get("restarts") for each in experiments)
    columns += ["node"] if has_nodes else []
    columns += ["restarts"] if has_restarts else []
    columns += [*metrics, "what"]
    rows = []
    for each in experiments[:most]:
        values = each.get("values") or {}
        row: list[tuple[str, Any]] = [(str(each["key"]), each["key"])]
        if len(names) <= _COLUMNS:
            row += [(_shown(values.get(name)), values.get(name)) for name in names]
        else:
            row.append((_pairs(values), _pairs(values)))
        row += [_state(each), _time(each)]
        row += [(str(each.get("node") or ""), each.get("node"))] if has_nodes else []
        row += [(str(each.get("restarts") or ""), each.get("restarts"))] if has_restarts else []
        found = each.get("metrics") or {}
        row += [(_shown(found.get(name)), found.get(name)) for name in metrics]
        rows.append((*row, (_what(each), _what(each))))
    limits = [f"at most {view['atOnce']} at once"] if view.get("atOnce") else []
    limits += [f"ends after {view['stopAfter']} failures"] if view.get("stopAfter") else []
    where = [str(view.get("profile") or "local"), words.count(int(view["total"]), "experiment"), *limits]
    kept = int(view.get("kept") or 0)
    lines = [str(view["message"])] if view.get("message") else []
    lines += [f"{words.count(kept, 'experiment')} unchanged since the last run, so kept."] if kept else []
    return GroupFacts(
        state=str(view["state"]),
        name=str(view["name"]),
        where=" · ".join(where),
        counts=counted(view),
        lines=tuple(lines),
        columns=tuple(columns),
        rows=tuple(rows),
        more=max(len(experiments) - most, 0),
        problems=tuple(in_order(Problem.from_json(each) for each in view.get("problems") or ())),
    )


def counted(view: Mapping[str, Any]) -> str:
    """Say how many experiments are in each state: ``3 running · 8 waiting · 1 failed``."""
    counts = view.get("counts") or {}
    return " · ".join(f"{counts[state]} {state}" for state in _STATES if counts.get(state))


def text(found: GroupFacts) -> str:
    """Draw the table of a group as plain text."""
    icon = words.ICONS.get(found.state, "○")
    lines = [f"{icon} {found.state}  {found.name}   {found.where}   {found.counts}"]
    lines += [f"  {line}" for line in found.lines]
    drawn = tables.plain(found.columns, [[shown for shown, _ in row] for row in found.rows])
    lines += [f"  {line}".rstrip() for line in drawn.split("\n")]
    lines += [f"  {words.count(found.more, 'more experiment')}"] if found.more else []
    lines += [f"  {card.problem_text(problem)}" for problem in found.problems]
    return "\n".join(lines)


def html(found: GroupFacts, ident: str) -> str:
    """Draw the table of a group as HTML; a click on a head sorts where the page runs scripts.

    Args:
        found: its facts.
        ident: id of the table, unique in the page.
    """
    from paijupyter.client.card_html import rich

    icon = words.ICONS.get(found.state, "○")
    head = (
        f'<div><span aria-hidden="true">{icon}</span> <strong>{escape(found.state)}</strong> '
        f'<strong style="font-family:monospace">{escape(found.name)}</strong> '
        f'<span style="{_QUIET}">{escape(found.where)}</span> <span>{escape(found.counts)}</span></div>'
    )
    lines = "".join(f"<div>{rich(line)}</div>" for line in found.lines)
    cell = "text-align:left;vertical-align:top;padding:.1em .9em .1em 0;border:none;background:none"
    heads = "".join(f'<th scope="col" style="{cell};{_QUIET}">{escape(name)}</th>' for name in found.columns)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-v="{escape(_raw(raw))}" style="{cell}">{escape(shown)}</td>' for shown, raw in row
        )
        + "</tr>"
        for row in found.rows
    )
    table = (
        f'<table id="{escape(ident)}" style="border-collapse:collapse;border:none;margin:.3em 0">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )
    more = f'<div style="{_QUIET}">{words.count(found.more, "more experiment")}</div>' if found.more else ""
    problems = "".join(f"<li>{rich(card.problem_text(problem))}</li>" for problem in found.problems)
    folded = f"<details><summary>plan: {len(found.problems)} found</summary><ul>{problems}</ul></details>"
    return (
        f'<div class="paijupyter-group" style="overflow-x:auto">{head}{lines}{table}{more}'
        f"{folded if problems else ''}{_SORT.format(escape(ident))}</div>"
    )


def bundle(view: Mapping[str, Any], experiments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the MIME bundle of a group."""
    found = facts(view, experiments)
    return {"text/html": html(found, f"paijupyter-{view['id']}-{view['round']}"), "text/plain": text(found)}


# -- the plan -------------------------------------------------------------------------------------------


def plan_text(plan: Mapping[str, Any], most: int = 20) -> str:
    """Draw what running experiments would do: count, GPU hours, names, every problem."""
    problems = in_order(Problem.from_json(each) for each in plan.get("problems") or ())
    errors = sum(problem.severity == "error" for problem in problems)
    sign, verdict = (
        ("✓", "can be submitted")
        if plan["ok"]
        else ("✕", f"cannot be submitted: {words.count(max(errors, 1), 'error')}")
    )
    lines = [f"{plan['name']} on {plan.get('profile') or 'local'}   {sign} {verdict}"]
    lines += [f"  {line}" for line in plan_lines(plan)]
    experiments = plan.get("experiments") or ()
    rows = [
        (str(each["key"]), str(each["name"]), _pairs(each["values"]), "kept" if each.get("keeps") else "")
        for each in experiments[:most]
    ]
    if rows:
        drawn = tables.plain(("experiment", "name", "values", ""), rows)
        lines += [f"  {line}".rstrip() for line in drawn.split("\n")]
    if len(experiments) > most:
        lines.append(f"  {words.count(len(experiments) - most, 'more experiment')}")
    lines += [f"  {card.problem_text(problem)}" for problem in problems]
    return "\n".join(lines)


def plan_lines(plan: Mapping[str, Any]) -> Iterable[str]:
    """Yield how many experiments would run, of what size, and what they would cost."""
    kept = int(plan.get("kept") or 0)
    said = words.count(int(plan["count"]), "experiment")
    limits = [f"at most {plan['atOnce']} at once"] if plan.get("atOnce") else []
    limits += [f"ends after {plan['stopAfter']} failures"] if plan.get("stopAfter") else []
    limits += [f"{kept} unchanged and kept"] if kept else []
    yield " · ".join([said, *limits])
    roles = plan.get("roles") or ()
    if roles:
        yield "each: " + ", ".join(
            f"{role['name']} ×{role['instances']} ({card.resources(role)})" for role in roles
        )
    found = plan.get("estimate") or {}
    if found.get("gpu"):
        hours = ""
        if found.get("gpuHours") is not None:
            hours = f" · about {words.number(float(found['gpuHours']))} GPU-h as {found['like']} took"
        elif found.get("atMostGpuHours") is not None:
            hours = f" · at most {words.number(float(found['atMostGpuHours']))} GPU-h within the time limits"
        yield f"{found['gpu']} GPU at once{hours}"
    if plan.get("secretNames"):
        yield "secrets " + ", ".join(plan["secretNames"])


def plan_bundle(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the MIME bundle of a plan of experiments."""
    drawn = plan_text(plan)
    return {"text/html": f"<pre>{escape(drawn)}</pre>", "text/plain": drawn}


def printed(plan: Mapping[str, Any]) -> str:
    """Return each experiment's header, with its filled document where the plan has it (T8)."""
    texts = plan.get("texts") or {}
    parts = []
    for each in plan.get("experiments") or ():
        parts.append(header(str(each["key"])))
        if each["key"] in texts:
            parts.append(str(texts[each["key"]]).rstrip("\n"))
    return "\n".join(parts)


def problem_text(problem: Mapping[str, Any]) -> str:
    """Draw one problem of a plan."""
    return card.problem_text(Problem.from_json(problem))


def header(key: str) -> str:
    """Return the line that the article's script prints before each experiment (T8)."""
    return f"---Running experiment {key}---"


def _metric_names(experiments: Iterable[Mapping[str, Any]]) -> list[str]:
    counted: dict[str, int] = {}
    for each in experiments:
        for name in each.get("metrics") or {}:
            counted[name] = counted.get(name, 0) + 1
    # Those that most of them have; a stable sort keeps the order in which they came.
    return sorted(counted, key=lambda name: -counted[name])[:_METRICS]


def _state(each: Mapping[str, Any]) -> tuple[str, Any]:
    state = str(each["state"])
    return f"{words.ICONS.get(state, '○')} {state}", state


def _time(each: Mapping[str, Any]) -> tuple[str, Any]:
    seconds = each.get("seconds")
    if seconds is None or (each["state"] == "running"):
        # Nothing redraws a snapshot until a state changes: a clock would stand still, a time stays true.
        since = words.clock(each.get("startedAt"))
        return (f"since {since}" if since and each["state"] == "running" else "", seconds or 0)
    return words.duration(float(seconds)), seconds


def _what(each: Mapping[str, Any]) -> str:
    message = str(each.get("message") or "") if each["state"] != "succeeded" else ""
    said = " ".join(filter(None, (message, str(each.get("lastLine") or ""))))
    said = said.replace("\n", " ").replace("`", "")
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    return "" if value is None else words.number(value)


def _raw(value: Any) -> str:
    return "" if value is None else str(value)
