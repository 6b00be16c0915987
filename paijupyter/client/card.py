"""What the card of a job and of a plan say: pure functions from the API's JSON to facts and to plain text.

Both forms, text here and HTML in :mod:`paijupyter.client.card_html`, are drawn from the same facts, so that
no screen says more than another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any

from paijupyter.client import card_files, going, words
from paijupyter.client.card_place import place
from paijupyter.client.cells_source import told_rows
from paijupyter.client.jupyter import server_address, server_base
from paijupyter.errors import Problem, in_order
from paijupyter.notebook.cell import ENTRY
from paijupyter.protocol.names import split_suffix

MIME = "application/vnd.paijupyter.job+json"
_LAST_LINES = 8
_LEFT_OUT = 4
_OBJECTS = 6
_WORK = re.compile(r'"[^"]*/tasks/[^"/]+/\d+/work/')


@dataclass(frozen=True, slots=True)
class Facts:
    """What a card says of a job, top to bottom.

    Attributes:
        state: one of the five states.
        name: the full name.
        where: profile, and per role ready of all instances.
        time: how long it has run or ran, or waits.
        line: one sentence: the reason, or the progress.
        metrics: name, latest value, course as small bars.
        left: how long it may still run.
        last_lines: end of the log of the task that failed.
        failed_task: key of that task.
        place: where in the notebook it failed, and the address of that cell.
        advice: what to do next.
        ports: name and address of each port that can be opened.
        rows: label and value of the quieter facts.
        problems: what the plan found, worst first.
    """

    state: str
    name: str
    where: str
    time: str
    line: str = ""
    metrics: tuple[tuple[str, str, str], ...] = ()
    left: str = ""
    failed_task: str = ""
    last_lines: tuple[str, ...] = ()
    place: tuple[str, str] = ("", "")
    advice: str = ""
    ports: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def icon(self) -> str:
        """The sign of the state."""
        return words.ICONS.get(self.state, "○")


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What a card says of a plan: whether it can be submitted, of what it is made, and every problem."""

    name: str
    profile: str
    verdict: str
    possible: bool
    tasks: str
    rows: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    documents: Mapping[str, str] = field(default_factory=dict)


def reference(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a notebook keeps of a job: how to find it again, and nothing of its data."""
    return {
        "schema": 1,
        "id": view["id"],
        "name": view["name"],
        "profile": view.get("profile"),
        "packageSha256": view.get("packageSha256"),
        "submittedAt": view.get("submittedAt"),
    }


def facts(
    view: Mapping[str, Any], problems: Iterable[Problem] = (), now: datetime | None = None, base: str = ""
) -> Facts:
    """Gather what the card of a job says.

    Args:
        view: a JobView.
        problems: what the plan found when the job was submitted.
        now: the time of the snapshot.
        base: address or path of the Jupyter server, below which ports are opened.
    """
    state = str(view["state"])
    failed = view.get("failedTask") or {}
    return Facts(
        state=state,
        name=str(view["name"]),
        where=" · ".join([str(view.get("profile") or "local"), *_roles(view)]),
        time=_time(view, now),
        line=_line(view, failed),
        metrics=going.metrics(view),
        left=going.left(view),
        ports=going.ports(view, base),
        failed_task=f"{failed['role']}-{failed['index']}" if failed else "",
        last_lines=tuple(_shown(line) for line in (failed.get("lastLines") or ())[-_LAST_LINES:]),
        place=place(view),
        advice=str(view.get("advice") or ""),
        rows=tuple(_rows(view)),
        problems=tuple(in_order(problems)),
    )


def _roles(view: Mapping[str, Any]) -> list[str]:
    said = []
    for name, role in (view.get("roles") or {}).items():
        if view["state"] in words.FINAL:  # Nothing is ready any more; how each task ended is not a count.
            said.append(f"{name} ×{role.get('instances', 1)}")
            continue
        states = role.get("states") or {}
        there = states.get("running", 0) + states.get("succeeded", 0)
        said.append(f"{name} {there}/{role.get('instances', 1)}")
    return said


def _time(view: Mapping[str, Any], now: datetime | None) -> str:
    state = view["state"]
    if state == "waiting":
        return words.elapsed(view.get("since") or view.get("submittedAt"), None, now)
    start = view.get("startedAt") or view.get("submittedAt")
    said = words.elapsed(start, view.get("endedAt"), now)
    return f"after {said}" if state in ("failed", "stopped") and said else said


def _line(view: Mapping[str, Any], failed: Mapping[str, Any]) -> str:
    state = view["state"]
    said = words.reason(view)
    if state == "failed" and not view.get("message"):
        said = str(failed.get("message") or "") or outcome(view)
    said = _with_clock(said, view)
    # The entry file has the line numbers of its cell.
    said = said.replace(f"`{ENTRY}`", _cell(view))
    position = view.get("position")
    if state == "waiting" and isinstance(position, int) and not words.says_place(said):
        said = f"{said} · position {position}" if said else f"position {position}"
    if view.get("staleSince"):
        stale = f"`{view.get('profile')}` cannot be reached since {words.clock(view['staleSince'])}"
        said = f"{said} · {stale}" if said else stale
    return said


def _with_clock(said: str, view: Mapping[str, Any]) -> str:
    """Say of the cell of a notebook that runs since when it does; a snapshot says the time itself."""
    running = view.get("execution") or {}
    if view["state"] != "running" or not running or running.get("done") or not said:
        return said
    return f"{said} · since {words.clock(running['since'])}"


def _cell(view: Mapping[str, Any]) -> str:
    number = (view.get("cell") or {}).get("number")
    return f"cell {number}" if number else "the cell"


def _shown(line: object) -> str:
    """Leave out where a task's folder lies on this host: it says nothing, and a notebook may be published."""
    return _WORK.sub('"', str(line))


def _rows(view: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if view.get("parameters"):
        yield "parameters", _pairs(view["parameters"])
    if view.get("secretNames"):
        yield "secrets", _secrets(view)
    if view["state"] == "running":
        yield from going.rows(view)
    if view.get("packageSha256"):
        yield "package", str(view["packageSha256"])[:12]
    if view.get("executedNotebook"):
        yield "notebook", PurePath(str(view["executedNotebook"])).name
    yield from card_files.rows(view)
    if view.get("attempt"):
        yield "attempt", str(int(view["attempt"]) + 1)
    if view.get("endedAt"):
        yield "ended", words.clock(view["endedAt"])
    elif view.get("submittedAt"):
        yield "submitted", words.clock(view["submittedAt"])


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {words.number(value)}" for name, value in values.items())


def outcome(view: Mapping[str, Any]) -> str:
    """Say how a job ended, in one clause: ``failed: worker-0 ended with exit code 3``."""
    state = str(view["state"])
    failed = view.get("failedTask") or {}
    if state == "failed" and view.get("execution") and view.get("message"):
        return f"failed: {str(view['message']).rstrip('.')}"  # the cell says more than a status
    if state == "failed" and failed:
        return f"failed: {failed['role']}-{failed['index']}{_ending(failed)}"
    said = words.reason(view).rstrip(".")
    return f"{state}: {said}" if said and state in ("failed", "stopped") else state


def _ending(failed: Mapping[str, Any]) -> str:
    if failed.get("signal"):
        return f" was ended by signal {failed['signal']}"
    if failed.get("code") is not None:
        return f" ended with exit code {failed['code']}"
    said = words.reason(failed).rstrip(".")
    return f": {said}" if said else ""


def text(found: Facts) -> str:
    """Draw the card of a job as plain text."""
    head = f"{found.icon} {found.state}  {found.name}   {found.where}"
    lines = [f"{head} · {found.time}" if found.time else head]
    if found.line:
        lines.append(f"  {found.line}")
    if found.metrics or found.left:
        shown = [" ".join(filter(None, metric)) for metric in found.metrics]
        lines.append("  " + "   ".join([*shown, *filter(None, [found.left])]))
    lines += [f"    {found.failed_task} │ {line}" for line in found.last_lines]
    if found.place[0]:
        lines.append(f"  at {found.place[0]}")
    if found.advice:
        lines.append(f"  → {found.advice}")
    rows = found.rows
    if found.ports:
        rows = (("ports", ", ".join(f"{name} {address}" for name, address in found.ports)), *rows)
    width = max((len(label) for label, _ in rows), default=0)
    lines += [f"  {label:<{width}}  {value}" for label, value in rows]
    lines += [f"  {problem_text(problem)}" for problem in found.problems]
    return "\n".join(lines)


def problem_text(problem: Problem) -> str:
    """Draw one problem: its sign, its place, the sentence, and what to do."""
    return f"{words.SEVERITIES[problem.severity]} {problem}"


def _secrets(found: Mapping[str, Any]) -> str:
    """Name the secrets, each with where its value comes from: ``HF_TOKEN (keyring)``."""
    references = found.get("secretReferences") or {}
    schemes = {name: str(references.get(name) or "").partition(":")[0] for name in found["secretNames"]}
    return ", ".join(f"{name} ({scheme})" if scheme else str(name) for name, scheme in schemes.items())


def plan_facts(plan: Mapping[str, Any], excluded: Sequence[str] = ()) -> PlanFacts:
    """Gather what the card of a plan says.

    Args:
        plan: a Plan.
        excluded: what the package leaves out, each in words.
    """
    problems = tuple(in_order(Problem.from_json(each) for each in plan.get("problems") or ()))
    errors = sum(problem.severity == "error" for problem in problems)
    possible = bool(plan.get("ok", not errors))
    verdict = (
        "can be submitted" if possible else f"cannot be submitted: {words.count(max(errors, 1), 'error')}"
    )
    documents = {"document": plan.get("document"), "submitted document": plan.get("submittedDocument")}
    return PlanFacts(
        name=split_suffix(str(plan.get("name") or "job"))[0],  # The suffix is drawn at submission.
        profile=str(plan.get("profile") or "local"),
        verdict=verdict,
        possible=possible,
        tasks=_tasks(plan.get("roles") or ()),
        rows=tuple(_plan_rows(plan, excluded)),
        problems=problems,
        documents={name: str(found) for name, found in documents.items() if found},
    )


def _tasks(roles: Sequence[Mapping[str, Any]]) -> str:
    total = sum(int(role.get("instances") or 1) for role in roles)
    gpus = sum(int(role.get("instances") or 1) * int(role.get("gpu") or 0) for role in roles)
    said = ", ".join(f"{role['name']} ×{role.get('instances', 1)} ({resources(role)})" for role in roles)
    return f"{words.count(total, 'task')}: {said}" + (f" · {gpus} GPU" if gpus else "") if roles else ""


def resources(role: Mapping[str, Any]) -> str:
    """Say what one instance of a role gets."""
    parts = [f"{role['gpu']} GPU"] if role.get("gpu") else []
    if role.get("cpu"):
        parts.append(f"{role['cpu']} CPU")
    if role.get("memoryMB"):
        parts.append(words.memory(role["memoryMB"]))
    return ", ".join(parts)


def _plan_rows(plan: Mapping[str, Any], excluded: Sequence[str]) -> Iterable[tuple[str, str]]:
    if going.starts(plan):
        yield "starts", going.starts(plan)
    cost = going.cost(plan.get("estimate") or {})
    if cost:
        yield "cost", cost
    package = plan.get("package")
    if package:
        content = f"{words.count(int(package['files']), 'file')}, {words.size(int(package['bytes']))}"
        yield "package", f"{str(package['sha256'])[:12]}: {content}"
    if excluded:
        more = [f"{len(excluded) - _LEFT_OUT} more"] if len(excluded) > _LEFT_OUT else []
        yield "left out", "; ".join([*(each.rstrip(".") for each in excluded[:_LEFT_OUT]), *more])
    if plan.get("parameters"):
        yield "parameters", _pairs(plan["parameters"])
    if plan.get("secretNames"):
        yield "secrets", _secrets(plan)
    if plan.get("resumes"):
        earlier = plan["resumes"]
        content = f"{words.count(int(earlier['files']), 'file')}, {words.size(int(earlier['bytes']))}"
        yield "resumes", f"{earlier['name']}: {content} in $PAI_CHECKPOINT_DIR"
    yield from card_files.plan_rows(plan)
    if plan.get("objects"):
        yield "objects", _objects(plan["objects"])
    if plan.get("cells"):
        yield from told_rows(plan["cells"])


def _objects(objects: Sequence[object]) -> str:
    if len(objects) <= _OBJECTS:
        return ", ".join(map(_object, objects))
    kinds = Counter(str(each["kind"]) if isinstance(each, Mapping) else str(each) for each in objects)
    return ", ".join(words.count(number, kind) for kind, number in kinds.items())


def _object(found: object) -> str:
    if isinstance(found, Mapping):
        return " ".join(str(found[key]) for key in ("count", "kind", "name") if found.get(key))
    return str(found)


def plan_text(found: PlanFacts) -> str:
    """Draw the card of a plan as plain text."""
    sign = "✓" if found.possible else "✕"
    lines = [f"{found.name} on {found.profile}   {sign} {found.verdict}"]
    if found.tasks:
        lines.append(f"  {found.tasks}")
    width = max((len(label) for label, _ in found.rows), default=0)
    lines += [f"  {label:<{width}}  {value}" for label, value in found.rows]
    lines += [f"  {problem_text(problem)}" for problem in found.problems]
    return "\n".join(lines)


def bundle(view: Mapping[str, Any], problems: Iterable[Problem] = ()) -> dict[str, Any]:
    """Return the MIME bundle of a job: the reference, and snapshots for where nothing draws it live."""
    from paijupyter.client.card_html import job_html

    found = facts(view, problems, base=server_base() if view.get("ports") else "")
    if found.state not in words.FINAL:
        # Nothing redraws a snapshot until the state changes: a clock would stand still, a time stays true.
        since = view.get("startedAt") if found.state == "running" else view.get("since")
        found = replace(found, time=f"since {words.clock(since or view.get('submittedAt'))}", left="")
    return {
        MIME: reference(view),
        "text/html": job_html(found),
        "text/plain": text(replace(found, ports=going.ports(view, server_address()))),
    }


def plan_bundle(plan: Mapping[str, Any], excluded: Sequence[str] = ()) -> dict[str, Any]:
    """Return the MIME bundle of a plan."""
    from paijupyter.client.card_html import plan_html

    found = plan_facts(plan, excluded)
    return {"text/html": plan_html(found), "text/plain": plan_text(found)}
