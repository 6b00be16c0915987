"""``%%paijob sweep``: the preview, the submission, and a table that follows its group."""

from __future__ import annotations

import contextlib
import getpass
import threading
import uuid
from argparse import Namespace
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from paijupyter.client import group_card
from paijupyter.client.client import JobsClient
from paijupyter.client.group import Group
from paijupyter.client.groups import is_settled
from paijupyter.client.sources import Origin
from paijupyter.errors import PaiJupyterError, UsageProblem
from paijupyter.magics.live import pinned
from paijupyter.magics.show import Display, PackageProgress, show

if TYPE_CHECKING:
    from paijupyter.client.sweeping import Round

_PAUSE = 1.0  # seconds between two drawings of one table
_TRIES = 30


def run(shell: Any, client: JobsClient, parsed: Namespace, origin: Origin, cell: str | None) -> Group | None:
    """Carry out ``sweep`` and return the group's handle, or None if nothing was submitted.

    Args:
        shell: the user's shell.
        client: client of the engine.
        parsed: its options.
        origin: where the cell is.
        cell: the cell below the line, or None.

    Raises:
        PaiJupyterError: a template, a list or an option is wrong, or the engine refuses.
    """
    from paijupyter.client import sweeping

    if parsed.variable is not None and not parsed.variable.isidentifier():
        raise UsageProblem(f"Option `--as` needs a name of a variable, not `{parsed.variable[:40]}`.")
    display = Display(shell)
    wanted = sweeping.round_of(parsed, origin, cell, PackageProgress(display))
    if parsed.delete_only:
        name, found = sweeping.delete(client, wanted)
        show(shell, f"Experiments of group `{name}` are deleted." if found else "")
        return None
    planned = sweeping.plan(client, wanted, texts=parsed.print or parsed.verbose)
    if parsed.print or parsed.verbose:
        show(shell, group_card.printed(planned))
    if parsed.print or parsed.plan or not planned["ok"]:
        display.show(group_card.plan_bundle(planned))
        if planned["ok"] or parsed.print or parsed.plan:
            return None
    return _submit(shell, client, parsed, wanted, planned, display)


def _submit(
    shell: Any,
    client: JobsClient,
    parsed: Namespace,
    wanted: Round,
    planned: Mapping[str, Any],
    display: Display,
) -> Group:
    from paijupyter.client import sweeping

    group = Group(sweeping.run(client, wanted, planned, getpass.getpass), client)
    if parsed.variable:
        shell.user_ns[parsed.variable] = group
    show_live(shell, group, display)
    if parsed.wait:
        _until_ended(group, display, None, [str(each["key"]) for each in planned["experiments"]])
    return group


def show_live(shell: Any, group: Group, display: Display) -> None:
    """Show the table of a group and, in a kernel, keep it up to date until the group has ended."""
    display.show(group_card.bundle(group.view, group.experiments))
    if hasattr(shell, "kernel") and not is_settled(group.view):
        GroupFollower(shell, group, display).start()


def show_group(shell: Any, client: JobsClient, view: Mapping[str, Any], *, wait: bool) -> None:
    """Show the table of a group that there is, live; with ``wait`` also wait for its end.

    Raises:
        GroupFailed: not all of it succeeded, and it was waited for.
    """
    group, display = Group(view, client), Display(shell)
    show_live(shell, group, display)
    if wait:
        _until_ended(group, display, None)


def wait_verb(shell: Any, client: JobsClient, ref: str, timeout: float | None) -> None:
    """Wait for a group, show its table, and fail the cell if not all of it succeeded.

    Raises:
        GroupFailed: some experiments failed or were stopped.
    """
    _until_ended(Group.attach(ref, client), Display(shell), timeout)


def _until_ended(
    group: Group, display: Display, timeout: float | None, keys: Collection[str] | None = None
) -> None:
    """Wait, and fail if one of the chosen experiments did; an interrupt ends the waiting only."""
    from paijupyter.magics.runner import Detached

    try:
        group.wait(timeout)
    except KeyboardInterrupt:
        stop = f"Stop it with: %paijob stop --group {group.name}"
        raise Detached(f"Waiting has ended; group `{group.name}` goes on. {stop}") from None
    display.show(group_card.bundle(group.view, group.experiments))
    group.check(keys)


class GroupFollower:
    """Draws the table of one group anew when the state of an experiment has changed, at most once a second.

    Args:
        shell: the user's shell.
        group: its ``view`` is kept up to date too.
        display: it shows the table already.
    """

    def __init__(self, shell: Any, group: Group, display: Display) -> None:
        self._shell = shell
        self._group = group
        self._display = display
        get_parent = getattr(shell, "get_parent", None)
        self._parent = dict(get_parent()) if get_parent is not None else {}
        self._rest = threading.Event()
        self._name = f"paijupyter-group-{uuid.uuid4().hex[:6]}"

    def start(self) -> None:
        """Begin; it ends by itself with the group."""
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        tries = 0
        while tries < _TRIES:
            try:
                if self._follow(JobsClient.connect()):
                    return
                tries = 0
            except PaiJupyterError as error:
                if error.status == 404:
                    return
                tries += 1
            except OSError:
                # The engine may be handing over; the group goes on without us, and so may its table.
                tries += 1
            self._rest.wait(_PAUSE)

    def _follow(self, client: JobsClient) -> bool:
        """Draw on changes until the group has ended (True) or the stream begins anew (False)."""
        view = self._draw(client)
        if is_settled(view):
            return True
        for event in client.events(int(view["seq"]), follow=True):
            if event["type"] == "reset":
                return False
            if event["type"] == "group-deleted" and event["id"] == self._group.id:
                return True
            # What came while the last one was drawn is in it already.
            if (
                event["type"] != "group"
                or event["group"]["id"] != self._group.id
                or event["seq"] <= view["seq"]
            ):
                continue
            if not is_settled(event["group"]):
                self._rest.wait(_PAUSE)
            view = self._draw(client)
            if is_settled(view):
                return True
        return False

    def _draw(self, client: JobsClient) -> Mapping[str, Any]:
        view = client.groups.get(self._group.id)
        content = group_card.bundle(view, client.groups.experiments(self._group.id))
        # A kernel that shuts down has closed its sockets; there is nobody to tell.
        with contextlib.suppress(OSError, RuntimeError):
            with pinned(self._shell, self._parent) as is_pinned:
                self._display.show(content)
            if is_pinned and is_settled(view):
                # nbclient takes an update only from the cell that runs now; all others go by the display id.
                self._display.show(content)
        # Drawing takes a while: a cell that waits may have seen the end meanwhile.
        if is_settled(view) or not is_settled(self._group.view):
            self._group.view = view
        return view
