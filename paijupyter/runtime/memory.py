"""Did the system end a process of this control group because memory ran out?"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

_MOUNT = "/sys/fs/cgroup"


def kills(cgroup: str = "/proc/self/cgroup", mount: str = _MOUNT) -> int:
    """Return how many processes of this control group memory pressure has ended so far; 0 if unknown.

    Works for control groups of version 2 (``memory.events``) and 1 (``memory.oom_control``), and where a
    container sees its own group as the root.
    """
    for path in _candidates(cgroup, mount):
        count = count_kills(path)
        if count is not None:
            return count
    return 0


def count_kills(path: str) -> "Optional[int]":
    """Return the ``oom_kill`` of a control group's file of events, None if it has none."""
    try:
        with open(path) as stream:
            for line in stream:
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
    except (OSError, ValueError):
        pass
    return None


def _candidates(cgroup: str, mount: str) -> "List[str]":
    found = []
    try:
        with open(cgroup) as stream:
            lines = stream.read().splitlines()
    except OSError:
        return []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            found += [mount + path.rstrip("/") + "/memory.events", mount + "/memory.events"]
        elif "memory" in controllers.split(","):
            base = mount + "/memory"
            found += [base + path.rstrip("/") + "/memory.oom_control", base + "/memory.oom_control"]
    return found
