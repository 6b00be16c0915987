"""All processes of a task, and their end.

A task's processes are found in three ways, because each alone has a hole: by session (everything that did not
call ``setsid``), by descent from the boot process (it is a subreaper, so nothing escapes it while it lives),
and by the task's own variables in the environment (what daemonised, after the boot process was killed).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from paijupyter.backends.local import host

_POLL = (0.01, 0.5)  # seconds between looks: the first, and the longest
_LOOKS = 50  # at an environment that is empty
_EXEC_TAKES = 0.002  # seconds between two of them


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    session: int
    started: str


_bare: set[tuple[int, str]] = set()  # pid and start of those that really have no environment


@dataclass(frozen=True, slots=True)
class Owner:
    """The boot process of a task, and the variables that all processes of the task inherit."""

    pid: int
    started: str
    marks: Mapping[str, str]


def snapshot() -> dict[int, Process]:
    """Return the user's own living processes by pid."""
    return _from_proc() if host.has_proc() else _from_ps()


def members(owner: Owner, table: Mapping[int, Process]) -> set[int]:
    """Return the pids of all processes of a task, its boot process included."""
    found = _session(owner, table)
    found |= {pid for pid, each in table.items() if pid not in found and _is_marked(each, owner.marks)}
    return _with_descendants(found, table) - {os.getpid()}


async def end(owners: Iterable[Owner]) -> None:
    """Kill all processes of these tasks; return when they are gone."""
    left = list(owners)
    delay = _POLL[0]
    while left:
        left = await asyncio.to_thread(_kill_once, left)
        if left:
            await asyncio.sleep(delay)
            delay = min(delay * 2, _POLL[1])


def _kill_once(owners: list[Owner]) -> list[Owner]:
    table = snapshot()
    left = []
    for owner in owners:
        pids = members(owner, table)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if pids:
            left.append(owner)
    return left


def _session(owner: Owner, table: Mapping[int, Process]) -> set[int]:
    if owner.pid <= 0:
        return set()
    leader = table.get(owner.pid)
    if leader and owner.started and leader.started != owner.started:
        # The number was given to somebody else. A pid is not reused while its session has members,
        # so nothing is left of ours.
        return set()
    return {pid for pid, each in table.items() if each.session == owner.pid and _not_older(each, owner)}


def _not_older(process: Process, owner: Owner) -> bool:
    if not (owner.started and process.started):
        return True
    return int(process.started) >= int(owner.started)


def _is_marked(process: Process, marks: Mapping[str, str]) -> bool:
    if not marks:
        return False
    environment = _environment(process).split(b"\0")
    return all(os.fsencode(f"{name}={value}") in environment for name, value in marks.items())


def _environment(process: Process) -> bytes:
    """Read a process's environment; one that is just becoming another program has none for a moment."""
    if (process.pid, process.started) in _bare:
        return b""
    for _ in range(_LOOKS):
        try:
            found = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            return b""
        if found or _is_of_the_kernel(process.pid):
            return found
        time.sleep(_EXEC_TAKES)
    _bare.add((process.pid, process.started))
    return b""


def _is_of_the_kernel(pid: int) -> bool:
    fields = host.stat_fields(pid)
    return not fields or fields[20] == "0"  # without memory of its own


def _with_descendants(found: set[int], table: Mapping[int, Process]) -> set[int]:
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    pending = list(found)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in found:
                found.add(child)
                pending.append(child)
    return found


def _from_proc() -> dict[int, Process]:
    table = {}
    me = os.getuid()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        fields = host.stat_fields(pid)
        if not fields or fields[0] in "ZX":
            continue
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == me:
                table[pid] = Process(pid, int(fields[1]), int(fields[3]), fields[19])
    return table


def _from_ps() -> dict[int, Process]:
    import subprocess

    listed = subprocess.run(
        ["ps", "-U", str(os.getuid()), "-o", "pid=,ppid=,state="], capture_output=True, text=True, check=False
    )
    table = {}
    for line in listed.stdout.splitlines():
        pid, parent, state = line.split()[:3]
        if state.startswith("Z"):
            continue
        with contextlib.suppress(OSError):
            table[int(pid)] = Process(int(pid), int(parent), os.getsid(int(pid)), "")
    return table
