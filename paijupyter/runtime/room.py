"""Whether the disk has room for a log: below a floor it pauses, the rest is for the task itself."""

import os
import time

LOOK_PERIOD = 1.0  # seconds between two looks
LOOK_AFTER = 1 << 22  # bytes of output after which to look sooner
_MIB = 2**20


class Room:
    """Looks now and then.

    Args:
        folder: on the disk in question.
        floor: bytes of room below which a log pauses, 0 for none.

    Attributes:
        is_short: whether the log pauses.
        left_out: bytes that were not written since it does.
    """

    def __init__(self, folder: str, floor: int) -> None:
        self._folder = folder
        self._floor = floor
        self._looked = 0.0
        self._coming = 0
        self.is_short = False
        self.left_out = 0

    @property
    def words(self) -> str:
        """What is said where the log pauses."""
        return "less than %d MiB of the disk are free" % (self._floor // _MIB)

    def is_due(self, coming: int) -> bool:
        """Say whether it is time to look, before so many more bytes are written."""
        now = time.monotonic()
        self._coming += coming
        if now - self._looked < LOOK_PERIOD and (self.is_short or self._coming < LOOK_AFTER):
            return False
        self._looked, self._coming = now, 0
        return True

    def has_come_short(self) -> bool:
        """Say whether there is less than the floor."""
        return self._floor > 0 and self._free() < self._floor

    def run_out(self) -> None:
        """Note that a write has failed for want of room; the next one may be tried at once."""
        self.is_short = True
        self._looked = 0.0

    def _free(self) -> int:
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return self._floor
        return found.f_bavail * found.f_frsize
