"""From the options of ``sweep`` to a round of experiments. Nothing here prints."""

from __future__ import annotations

import json
import re
import uuid
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client.sources import WRITES, Origin, Source, package_root, read_text, whole
from paijupyter.client.submission import Ask, PlanRefused, Progress, packed, prepare, resolve
from paijupyter.errors import PaiJupyterError, Problem, UsageProblem, in_order

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient
    from paijupyter.protocol.secrets import SecretReference

_SCRIPTS = (".py", ".sh", ".ipynb")
_TABLE = re.compile(r"^rows:[ \t]*([\w./-]+\.csv)[ \t]*$", re.MULTILINE)
_HAS_DATA = re.compile(r"^\s*data\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Round:
    """Experiments that are ready to be planned or run.

    Attributes:
        request: the request without values of secrets.
        secrets: the references to resolve.
        left_out: what the package leaves out.
        problems: warnings found before the engine was asked.
    """

    request: Mapping[str, Any]
    secrets: tuple[SecretReference, ...] = ()
    left_out: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=())


def round_of(
    options: Namespace, origin: Origin, body: str | None = None, progress: Progress | None = None
) -> Round:
    """Make the request of ``sweep``; the package goes into the store of this host.

    With a template the cell below is the list of experiments; without one it is what every job runs.

    Args:
        options: parsed options.
        origin: where they come from.
        body: the cell below the line of the magic, or None.
        progress: called with bytes done and bytes in all while the package is made.

    Raises:
        PaiJupyterError: an option, the cell, the template or the package folder cannot be used.
    """
    from paijupyter.client.folder import with_defaults
    from paijupyter.protocol.secrets import parse_secret

    if options.template is None and body is None:
        raise UsageProblem("Sweep needs a template.", "Name a job document, a manifest or a script.")
    is_document = options.template is not None and Path(options.template).suffix not in _SCRIPTS
    experiments = _experiments(options, origin, body if options.template is not None else None)
    submit = _as_submit(options, origin, is_document=is_document)
    if is_document:
        text = read_text(origin.folder / Path(options.template).expanduser())
        submit, hints = with_defaults(submit, origin.folder, document=lambda: "{}")
        secrets = tuple(parse_secret(each) for each in submit.secret)
        source = _template(text, submit, origin)
        found = packed(source, submit, origin, progress, _documents(text, experiments, options))
        problems = (*found.problems, *hints)
    else:
        submit.param = [*_declared(experiments, options), *submit.param]
        found = prepare(submit, origin, body if options.template is None else None, progress)
        secrets, problems = found.secrets, found.problems
    kept = {name: found.request[name] for name in ("profile", "package", "data", "context")}
    request = {
        "template": found.request["document"],
        "placeholders": is_document,
        "experiments": experiments,
        "set": dict(_pair(each, "--set") for each in options.constants),
        "requestId": str(uuid.uuid4()),
        **{"name": options.group, "names": options.names, "only": options.only},
        **{name: getattr(options, name) for name in ("failed", "again", "replace", "resume")},
        "atOnce": whole(options.at_once, "--at-once"),
        "stopAfter": whole(options.stop_after, "--stop-after"),
        "limit": whole(options.limit, "--limit"),
        **kept,
    }
    given = {name: value for name, value in request.items() if value not in (None, "")}
    return Round(given, secrets, found.left_out, problems)


def plan(client: JobsClient, wanted: Round, *, texts: bool = False) -> dict[str, Any]:
    """Return what running a round would do, with the problems found here; no value of a secret is sent.

    Args:
        client: client of the engine.
        wanted: the round.
        texts: with every filled document.
    """
    references = {each.name: {"reference": each.text} for each in wanted.secrets}
    found = client.groups.plan({**wanted.request, "secrets": references, "texts": texts})
    both = in_order([*wanted.problems, *(Problem.from_json(each) for each in found.get("problems") or ())])
    found["problems"] = [each.to_json() for each in both]
    return found


def run(client: JobsClient, wanted: Round, planned: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
    """Run a round that was planned; return the group's view.

    Raises:
        PlanRefused: the plan has errors; they are those of all experiments.
        PaiJupyterError: a secret cannot be resolved, or the engine refuses.
    """
    if not planned["ok"]:
        raise PlanRefused(planned, wanted.left_out)
    return client.groups.submit({**wanted.request, "secrets": resolve(wanted.secrets, ask)})


def delete(client: JobsClient, wanted: Round) -> tuple[str, bool]:
    """Stop and delete the jobs of a round's experiments; nothing to delete is no failure (T6, T7).

    Returns:
        Name of the group, and whether there was anything.
    """
    planned = client.groups.plan({**wanted.request, "replace": True, "failed": False})
    context, name = wanted.request["context"], str(planned["name"])
    groups = client.groups.list(folder=context.get("folder"), limit=1000)["groups"]
    group = next((each for each in groups if each["name"] == name), None)
    if group is None:
        return name, False
    rows = client.groups.experiments(group["id"])
    chosen = {each["key"] for each in planned["experiments"]}
    keys = [
        each["key"]
        for each in rows
        if each["key"] in chosen and (not wanted.request.get("failed") or each["state"] == "failed")
    ]
    return name, bool(keys) and client.groups.remove(group["id"], ",".join(keys))


def _as_submit(options: Namespace, origin: Origin, *, is_document: bool) -> Namespace:
    """Return the options as ``submit`` has them."""
    from paijupyter.client.options import parse_verb

    submit = parse_verb("submit", [], "cli" if origin.surface == "cli" else "magic")
    for name in vars(submit):
        if name in vars(options) and name not in ("verb", "again", "replace"):
            setattr(submit, name, getattr(options, name))
    submit.name = options.group
    if is_document:
        submit.file = options.template
    else:
        submit.script, submit.arguments = options.template, []
    return submit


def _declared(experiments: str, options: Namespace) -> list[str]:
    """Return every name of a value as a parameter, with its first value: each job sets its own."""
    from paijupyter.experiments import read_listing

    constants = dict(_pair(each, "--set") for each in options.constants)
    listing = read_listing(experiments, constants, whole(options.limit, "--limit") or 1000)
    first: dict[str, Any] = {}
    for values in (listing.common, *(each.values for each in listing.experiments)):
        for name, value in values.items():
            first.setdefault(name, value)
    own = {each.partition("=")[0] for each in options.param}
    return [f"{name}={json.dumps(value)}" for name, value in first.items() if name not in own]


def _template(text: str, options: Namespace, origin: Origin) -> Source:
    clash = [name for attribute, name in WRITES.items() if getattr(options, attribute)]
    if clash:
        raise UsageProblem(f"Option `{clash[0]}` does not go with a template.", "Write it in the template.")
    folder = (origin.folder / Path(options.file).expanduser()).parent
    named = re.search(r"^\s*package\s*:\s*['\"]?[0-9a-f]{64}", text, re.MULTILINE)
    root = None if named else package_root(options, origin.folder if options.package else folder)
    return Source(text, root)


def _documents(text: str, experiments: str, options: Namespace) -> Sequence[str]:
    """Return the filled documents whose files travel as data; what is wrong with them the plan will say."""
    if not _HAS_DATA.search(text):
        return ()
    from paijupyter.experiments import fill, read_listing

    constants = dict(_pair(each, "--set") for each in options.constants)
    try:
        made = fill(text, read_listing(experiments, constants, whole(options.limit, "--limit") or 1000))
    except PaiJupyterError:
        return ()
    return list(dict.fromkeys(each.document for each in made.filled if each.document))


def _experiments(options: Namespace, origin: Origin, body: str | None) -> str:
    """Return the list of experiments that options and cell give, in one text."""
    given = [name for name in ("--experiments", "--rows") if getattr(options, name[2:])]
    given += ["--grid"] if options.grid else []
    given += ["the cell"] if body is not None and body.strip() else []
    if len(given) > 1:
        raise UsageProblem(f"Experiments come from {given[0]} and from {given[1]}.", "Give one of them.")
    if not given:
        raise UsageProblem(
            "Sweep has no experiments.", "Give --experiments FILE, --grid NAME=V1,V2, --rows FILE or a cell."
        )
    if options.grid:
        return json.dumps({"grid": dict(_values(each) for each in options.grid)})
    if options.rows:
        return _rows(options.rows, origin)
    if options.experiments:
        path = origin.folder / Path(options.experiments).expanduser()
        text = read_text(path)
        return json.dumps({"rows": text}) if path.suffix == ".csv" else _with_tables(text, path.parent)
    return _with_tables(body or "", origin.folder)


def _rows(given: str, origin: Origin) -> str:
    if given.lstrip()[:1] in "[{":
        try:
            rows = json.loads(given)
        except ValueError:
            raise UsageProblem("Option `--rows` is neither a file nor JSON.") from None
        return json.dumps({"rows": rows if isinstance(rows, list) else [rows]})
    return json.dumps({"rows": read_text(origin.folder / Path(given).expanduser())})


def _with_tables(text: str, folder: Path) -> str:
    """Put the content of a table that is named into the list itself; all lines stay where they are."""
    return _TABLE.sub(lambda match: f"rows: {json.dumps(read_text(folder / match[1]))}", text)


def _values(text: str) -> tuple[str, list[Any]]:
    name, value = _halves(text, "--grid")
    if value.startswith("["):
        try:
            found = json.loads(value)
        except ValueError:
            raise UsageProblem(f"Values of `{name}` are no JSON list.") from None
        return name, list(found)
    from paijupyter.protocol.scalars import resolve as typed

    return name, [typed(each.strip()) for each in value.split(",")]


def _pair(text: str, option: str) -> tuple[str, Any]:
    from paijupyter.protocol.scalars import resolve as typed

    name, value = _halves(text, option)
    return name, typed(value)


def _halves(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageProblem(f"Option `{option}` needs NAME=VALUE, not `{text[:40]}`.")
    return name.strip(), value
