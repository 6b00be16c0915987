"""The control groups of tasks whose boot process could not remove its own."""

from __future__ import annotations

import asyncio
import os

from paijupyter.backends.local.files import TaskFiles

_LOOKS = 100
_PAUSE = 0.02  # seconds: a process that was killed leaves its group a moment after it has ended


async def remove(files: TaskFiles) -> None:
    """Remove the group of a task whose processes are gone; no error if it has none or keeps it."""
    try:
        group = files.group.read_text()
    except OSError:
        return
    for _ in range(_LOOKS):
        try:
            os.rmdir(group)
        except FileNotFoundError:
            break
        except OSError:
            await asyncio.sleep(_PAUSE)
        else:
            break
    files.group.unlink(missing_ok=True)
