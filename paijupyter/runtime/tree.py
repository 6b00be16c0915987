"""All processes that come from this one: adopt their orphans, find them, signal them."""

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List

_PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform.startswith("linux")


def adopt_orphans() -> bool:
    """Make this process the parent of every orphan below it (Linux); say whether that worked.

    From then on "no child is left" means "nothing of the task is left", whatever its processes did with
    sessions and process groups.
    """
    if not LINUX:
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def start_time(pid: int) -> str:
    """Return field 22 of ``/proc/<pid>/stat``, or "" where there is none: with the pid it is unique."""
    return (_stat_fields(pid) or [""] * 20)[19]


def descendants() -> "List[int]":
    """Return the pids of all processes below this one; empty where there is no ``/proc``."""
    children: "Dict[int, List[int]]" = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            fields = _stat_fields(int(name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(name))
    found: "List[int]" = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def processor_seconds() -> float:
    """Return the processor time that this process and all below it have used, those that have ended too."""
    ticks = 0
    for pid in [os.getpid(), *descendants()]:
        fields = _stat_fields(pid)
        if len(fields) > 14:
            ticks += sum(int(each) for each in fields[11:15])
    return ticks / float(os.sysconf("SC_CLK_TCK"))


def resident(shared_once: bool = False) -> int:
    """Return the bytes of memory that all processes below this one have in use together.

    Args:
        shared_once: count what processes share once and not for each of them, which takes longer.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for pid in descendants():
        fields = _stat_fields(pid)
        found = int(fields[21]) * page if len(fields) > 21 else 0
        total += _own_part(pid, found) if shared_once else found
    return total


def signal_all(number: int, group: int) -> None:
    """Send a signal to every process below this one and to the user's process group; wake stopped ones."""
    try:
        os.killpg(group, number)
    except OSError:
        pass  # gone already
    for pid in descendants():
        for each in (number, signal.SIGCONT):
            try:
                os.kill(pid, each)
            except OSError:
                pass  # ended since we looked


def group_alive(group: int) -> bool:
    """Say whether the process group has members: the only question that works without a subreaper."""
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _own_part(pid: int, otherwise: int) -> int:
    """Return a process's memory with its share only of what it shares (Linux 4.14)."""
    try:
        with open("/proc/%d/smaps_rollup" % pid) as stream:
            for line in stream:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return otherwise


def _stat_fields(pid: int) -> "List[str]":
    """Return the fields after the command's name: state, parent, …; empty if the process is gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as stream:
            text = stream.read().decode("ascii", "replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
