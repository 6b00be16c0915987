"""``paijob sweep`` and waiting for a group, on a command line."""

from __future__ import annotations

import getpass
import json
from argparse import Namespace
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from paijupyter.cli import terminal
from paijupyter.client import group_card
from paijupyter.client.sources import Origin

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

SUCCESS, FAILED, USAGE, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130


def sweep(client: JobsClient, parsed: Namespace, origin: Origin) -> int:
    """Carry out ``sweep`` and return its exit code: 0 only if all is well.

    Args:
        client: client of the engine.
        parsed: its options.
        origin: where they come from.

    Raises:
        PaiJupyterError: a template, a list or an option is wrong, or the engine refuses.
    """
    from paijupyter.client import sweeping

    wanted = sweeping.round_of(parsed, origin, None, terminal.package_progress())
    if parsed.delete_only:
        name, found = sweeping.delete(client, wanted)
        terminal.say(f"experiments of group `{name}` are deleted" if found else "")
        return SUCCESS
    shows = parsed.print or parsed.verbose
    planned = sweeping.plan(client, wanted, texts=shows)
    if parsed.json and (parsed.plan or parsed.print):
        _json(planned)
        return SUCCESS if planned["ok"] else USAGE
    if parsed.plan or parsed.print or not planned["ok"]:
        if shows:
            terminal.say(group_card.printed(planned))
        say = terminal.say if planned["ok"] else terminal.complain
        say(group_card.plan_text(planned))
        return SUCCESS if planned["ok"] else USAGE
    view = sweeping.run(client, wanted, planned, getpass.getpass)
    if not parsed.json:
        terminal.say(group_card.printed(planned))
        for problem in planned["problems"]:
            terminal.complain(group_card.problem_text(problem))
    return _submitted(client, view, parsed, [str(each["key"]) for each in planned["experiments"]])


def _submitted(client: JobsClient, view: Mapping[str, Any], parsed: Namespace, keys: Collection[str]) -> int:
    if parsed.wait:
        return wait(client, view, parsed.json, None, keys)
    if parsed.json:
        _json(view)
        return SUCCESS
    terminal.say(f"{view['name']}  id {view['id']}")
    terminal.say(f"runs on {view.get('profile') or 'local'}: {group_card.counted(view)}")
    terminal.say(f"next: paijob wait --group {view['name']}")
    return SUCCESS


def wait(
    client: JobsClient,
    view: Mapping[str, Any],
    as_json: bool,
    timeout: float | None,
    keys: Collection[str] | None = None,
) -> int:
    """Say every change until a group has ended, then show its table; 0 only if all succeeded.

    Args:
        client: client of the engine.
        view: the group.
        as_json: print JSON for machines at the end.
        timeout: seconds to wait at most.
        keys: the experiments that the exit code is about; None: all.
    """
    said = ""

    def tell(now: Mapping[str, Any]) -> None:
        nonlocal said
        line = group_card.counted(now)
        if line != said:
            said = line
            terminal.complain(f"{now['name']}: {line}")

    try:
        final = client.groups.wait(str(view["id"]), timeout, tell)
    except KeyboardInterrupt:
        terminal.complain(f"`{view['name']}` goes on. Stop it with: paijob stop --group {view['name']}")
        return INTERRUPTED
    experiments = client.groups.experiments(str(view["id"]))
    if as_json:
        _json({**final, "experiments": list(experiments)})
    else:
        terminal.say(group_card.text(group_card.facts(final, experiments, len(experiments))))
    ends = {each["state"] for each in experiments if keys is None or each["key"] in keys}
    return FAILED if "failed" in ends else STOPPED if "stopped" in ends else SUCCESS


def _json(data: Any) -> None:
    terminal.say(json.dumps(data, indent=2, ensure_ascii=False))
