"""The log as a container has it: its standard output, which others keep."""

from .logfile import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple


class StandardOutput(Log):
    """Writes what :class:`.logfile.Log` would write, and keeps no index.

    Args:
        limit: bytes of output to keep, 0 for all.
    """

    def __init__(self, limit: int = 0) -> None:
        super().__init__("", limit)

    def report(self, record: bytes) -> None:
        """Write a record of :mod:`.reports`, which is no output and belongs to no line of it."""
        size, in_line = self.size, self._in_line
        self._write(record)
        self.size, self._in_line = size, in_line

    def close(self) -> None:
        """Leave it open: it is everybody's."""

    def _open(self, folder: str) -> "Tuple[int, Optional[int]]":
        return 1, None
