"""A control group of its own for the user's command: a limit of memory, and word of an end by memory."""

import os
import time

from .memory import count_kills

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Optional, Tuple

_LOOKS = 20
_PAUSE = 0.02  # seconds
_MOUNT = "/sys/fs/cgroup"
_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
_NO_SWAP = {1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max"}
_EVENTS = {1: "memory.oom_control", 2: "memory.events"}


class ControlGroup:
    """One group below a group that we are in, or that was left to us.

    Attributes:
        path: its folder.
        door: the file by which a process enters it.
    """

    def __init__(self, path: str, version: int) -> None:
        self.path = path
        self.door = os.path.join(path, "cgroup.procs")
        self._version = version

    def limit(self, size: int) -> None:
        """Hold all of its processes together to so many bytes; what cannot be swapped is not.

        Raises:
            OSError: the system does not allow it.
        """
        _write(os.path.join(self.path, _LIMIT[self._version]), b"%d" % size)
        try:
            without = b"%d" % size if self._version == 1 else b"0"
            _write(os.path.join(self.path, _NO_SWAP[self._version]), without)
        except OSError:
            pass  # swap is not counted here

    def has(self, pid: int) -> bool:
        """Say whether a process is in it."""
        try:
            with open(self.door) as stream:
                return str(pid) in stream.read().split()
        except OSError:
            return False

    def kills(self) -> int:
        """Return how many of its processes were ended because memory ran out."""
        return count_kills(os.path.join(self.path, _EVENTS[self._version])) or 0

    def remove(self) -> None:
        """Remove it; one that keeps processes stays."""
        for _ in range(_LOOKS):
            try:
                os.rmdir(self.path)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(_PAUSE)  # a process leaves its group a moment after it has ended


def make(
    name: str, size: int, cgroup: str = "/proc/self/cgroup", mount: str = _MOUNT
) -> "Optional[ControlGroup]":
    """Make a group with a limit of so many bytes; None where that is not allowed to us."""
    for parent, version in _parents(cgroup, mount):
        group = ControlGroup(os.path.join(parent, name), version)
        try:
            os.mkdir(group.path)
        except FileExistsError:
            pass  # of a boot process that was killed
        except OSError:
            continue
        try:
            group.limit(size)
            return group
        except OSError:
            group.remove()
    return None


def _parents(cgroup: str, mount: str) -> "Iterator[Tuple[str, int]]":
    """Yield the groups that may have a child with a limit on memory, the nearest first.

    In version 1 any group may. In version 2 a group that has processes of its own may not hand the control
    of memory on, so it is the nearest one above that does; where that is not ours to write, there is none.
    """
    try:
        with open(cgroup) as stream:
            lines = stream.read().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if "memory" in controllers.split(","):
            for folder in (mount + "/memory" + path.rstrip("/"), mount + "/memory"):
                if os.path.exists(folder + "/" + _LIMIT[1]):
                    yield folder, 1
                    break
        elif controllers == "":
            for folder in _up(mount, path):
                if "memory" in _words(folder + "/cgroup.subtree_control") and _is_ours(folder):
                    yield folder, 2
                    break


def _up(mount: str, path: str) -> "Iterator[str]":
    parts = [part for part in path.split("/") if part]
    for count in range(len(parts), -1, -1):
        yield "/".join([mount, *parts[:count]])


def _is_ours(folder: str) -> bool:
    """Say whether we may move a process of ours into a child of this group."""
    return os.access(folder, os.W_OK) and os.access(folder + "/cgroup.procs", os.W_OK)


def _words(path: str) -> "List[str]":
    try:
        with open(path) as stream:
            return stream.read().split()
    except OSError:
        return []


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
