"""The engine's log: one small file, turned over once, never more than about a megabyte in all."""

from __future__ import annotations

import logging
import logging.handlers
import os
from io import TextIOWrapper
from pathlib import Path

LIMIT_BYTES = 512 * 1024


class _File(logging.handlers.RotatingFileHandler):
    """A rotating file that takes the process's stderr with it."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding="utf-8", opener=_open_private)

    def doRollover(self) -> None:
        super().doRollover()
        self.take_stderr()

    def take_stderr(self) -> None:
        """Point stderr at the current file: what Python or C code writes there is not lost."""
        if self.stream is not None:
            os.dup2(self.stream.fileno(), 2)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def open_log(path: Path) -> None:
    """Send all logging and stderr of this process to a file (0600)."""
    handler = _File(path, maxBytes=LIMIT_BYTES, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.take_stderr()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
    logging.captureWarnings(True)
