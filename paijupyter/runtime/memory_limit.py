"""Hold the user's command to its memory: by a control group where one may be made, else by looking."""

import os
import time

from . import control_group, tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .control_group import ControlGroup

PERIOD = 0.5  # seconds between two looks
_PATIENCE = 20.0  # a look that takes long is followed by a pause that is so many times longer
_MIB = 2**20
_RECORD = "cgroup"  # in the task's folder: where its group is, for whoever has to clean up after us


class MemoryLimit:
    """The limit of one command.

    Args:
        megabytes: MiB that all its processes may use together.
        how: ``auto``, ``sampling`` or ``none``.
        name: of the control group, unique on this machine.
        folder: the task's folder.
    """

    def __init__(self, megabytes: int, how: str, name: str, folder: str) -> None:
        self._megabytes = megabytes
        self._record = os.path.join(folder, _RECORD)
        self._samples = megabytes > 0 and how != "none"
        self._next = 0.0
        self._group: "Optional[ControlGroup]" = None
        if self._samples and how == "auto" and tree.LINUX:
            self._group = control_group.make(name, megabytes * _MIB)
        if self._group:
            with open(self._record, "w") as stream:
                stream.write(self._group.path)

    @property
    def door(self) -> "Optional[str]":
        """The file into which the command writes ``0`` before it begins, or None."""
        return self._group.door if self._group else None

    @property
    def words(self) -> str:
        """What is said of a command that reached it."""
        return "The task ran out of memory: it may use %d MB." % self._megabytes

    @property
    def period(self) -> "Optional[float]":
        """Seconds between two looks, None if nobody needs to look."""
        return PERIOD if self._samples else None

    def begin(self, pid: int) -> None:
        """Note that the command runs: if it is in its group, nobody needs to look."""
        if self._group and self._group.has(pid):
            self._samples = False

    def is_exceeded(self) -> bool:
        """Look, if it is time to, whether the command uses too much."""
        now = time.monotonic()
        if not self._samples or now < self._next:
            return False
        limit = self._megabytes * _MIB
        used = tree.resident()
        if used > limit:
            used = tree.resident(shared_once=True)
        self._next = time.monotonic() + max(PERIOD, _PATIENCE * (time.monotonic() - now))
        return used > limit

    def kills(self) -> "Optional[int]":
        """Return how many processes of the command were ended for it; None if it cannot be known."""
        return self._group.kills() if self._group and not self._samples else None

    def close(self) -> None:
        """Remove the group; all its processes are gone."""
        if self._group:
            self._group.remove()
            try:
                os.unlink(self._record)
            except OSError:
                pass
