"""Starting boot processes so that none ever starts twice.

The engine may be killed at any instant, also between the fork and the moment the boot process has written
``started.json``. So the child inherits a locked file: as long as the lock is held, a boot process of this
task lives, whatever else is known. If it is free and there is no ``started.json``, nothing of the task ran.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from paijupyter.backends.local import host
from paijupyter.backends.local.files import TaskFiles
from paijupyter.backends.local.process import BootProcess


class AlreadyRuns(Exception):
    """A boot process of this task lives."""


def spawn(boot: Path, files: TaskFiles, environment: Mapping[str, str]) -> BootProcess:
    """Start the boot process of a task in a session of its own.

    Raises:
        AlreadyRuns: if one lives.
        OSError: if the system refuses to start it.
    """
    lock = _lock(files.lock)
    if lock is None:
        raise AlreadyRuns
    try:
        # "ab": what an earlier try said stays.
        with files.boot_log.open("ab") as said:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(boot), str(files.spec)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=files.folder,
                env=environment,
                start_new_session=True,
                pass_fds=(lock,),
            )
    finally:
        os.close(lock)
    return BootProcess(child.pid, host.start_time(child.pid), child)


def is_claimed(files: TaskFiles) -> bool:
    """Say whether a boot process of this task lives that may not yet have written who it is."""
    if not files.lock.exists():
        return False
    lock = _lock(files.lock)
    if lock is None:
        return True
    os.close(lock)
    return False


def _lock(path: Path) -> int | None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
