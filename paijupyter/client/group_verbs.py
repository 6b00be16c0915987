"""The verbs on a group of experiments: what ``--group`` makes of ``list``, ``get``, ``stop`` and others."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client import group_card, tables, words
from paijupyter.client.sources import Origin, whole
from paijupyter.client.submission import Ask, again
from paijupyter.client.verbs import Reply
from paijupyter.errors import UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

_COLUMNS = ("state", "group", "profile", "experiments", "what")


def run(client: JobsClient, options: Namespace, origin: Origin, ask: Ask) -> Reply:
    """Carry out a verb on a group.

    Args:
        client: client of the engine.
        options: parsed options, with ``verb`` and ``group``.
        origin: where they come from.
        ask: asks for a secret without showing it.

    Raises:
        PaiJupyterError: the group does not exist, or the engine refuses.
    """
    if getattr(options, "job", None):
        raise UsageProblem("Option `--group` does not go with a job.", "Leave out one of them.")
    if options.verb == "list" and options.groups:
        return _list(client, options, origin)
    view = client.groups.get(options.group)
    if options.verb == "retry":
        return _retry(client, view, options, ask)
    return _VERBS[options.verb](client, view, options, origin)


def _list(client: JobsClient, options: Namespace, origin: Origin) -> Reply:
    folder = str(origin.folder) if options.here else None
    found = client.groups.list(folder=folder, limit=whole(options.limit, "--limit") or 20)["groups"]
    if not found:
        return Reply("No groups.", [], "No groups.")
    rows = [
        (
            f"{words.ICONS.get(str(each['state']), '○')} {each['state']}",
            str(each["name"]),
            str(each.get("profile") or ""),
            str(each["total"]),
            group_card.counted(each),
        )
        for each in found
    ]
    return Reply(tables.plain(_COLUMNS, rows), found, tables.html(_COLUMNS, rows))


def _show(client: JobsClient, view: Mapping[str, Any], options: Namespace, origin: Origin) -> Reply:
    experiments = client.groups.experiments(str(view["id"]))
    most = len(experiments) if origin.surface == "cli" else group_card.ROWS
    found = group_card.facts(view, experiments, most)
    html = group_card.html(found, f"paijupyter-{view['id']}-shown")
    return Reply(group_card.text(found), {**view, "experiments": list(experiments)}, html)


def _stop(client: JobsClient, view: Mapping[str, Any], options: Namespace, origin: Origin) -> Reply:
    after = client.groups.stop(str(view["id"]))
    return Reply(f"Group `{after['name']}`: {group_card.counted(after)}. Logs stay.", after)


def _retry(client: JobsClient, view: Mapping[str, Any], options: Namespace, ask: Ask) -> Reply:
    secrets = again(view.get("secretReferences") or {}, options.secret, ask)
    after = client.groups.retry(
        str(view["id"]), only=options.only, resume=options.resume, secrets=secrets or None
    )
    return Reply(f"Group `{after['name']}`: {group_card.counted(after)}.", after)


def _delete(client: JobsClient, view: Mapping[str, Any], options: Namespace, origin: Origin) -> Reply:
    client.groups.delete(str(view["id"]))
    said = words.count(int(view["total"]), "experiment")
    return Reply(
        f"Group `{view['name']}` is deleted: {said}, their records, logs and outputs are gone.", view
    )


def _pull(client: JobsClient, view: Mapping[str, Any], options: Namespace, origin: Origin) -> Reply:
    if options.path:
        raise UsageProblem("Option `--path` does not go with --group.", "Pull one job: pull JOB --path GLOB.")
    folder = origin.folder / Path(options.to or str(view["name"])).expanduser()
    found = client.groups.pull(str(view["id"]), folder)
    shown = [
        f"  {path.relative_to(origin.folder) if path.is_relative_to(origin.folder) else path}"
        for path in found
    ]
    said = f"{words.count(len(found), 'file')} of group `{view['name']}`:"
    return Reply("\n".join([said, *shown]), [str(path) for path in found])


def logs(client: JobsClient, options: Namespace) -> Iterator[str]:
    """Yield the logs of a group's experiments one after the other, each below its header (T8).

    Raises:
        UsageProblem: for a key that there is not, or ``--follow``: one cannot read many at once.
    """
    from paijupyter.client.follow import prefixed
    from paijupyter.experiments.selection import select

    if options.follow:
        raise UsageProblem("Option `--follow` is for one job.", "Watch a group with: wait --group NAME.")
    rows = {str(each["key"]): each for each in client.groups.experiments(options.group)}
    for key in select(list(rows), options.only or ""):
        yield group_card.header(key) + "\n"
        if rows[key]["job"] is not None:
            job, tail = str(rows[key]["job"]), whole(options.tail, "--tail")
            yield from prefixed(client.logs(job, options.task, tail=tail), client.get(job))


_VERBS: Mapping[str, Callable[[Any, Mapping[str, Any], Namespace, Origin], Reply]] = {
    "list": _show,
    "get": _show,
    "stop": _stop,
    "delete": _delete,
    "pull": _pull,
}
