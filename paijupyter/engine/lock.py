"""The lock that keeps the engine alone, and the question whether another one serves."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from pathlib import Path

from paijupyter.errors import PaiJupyterError

_PAUSE = 0.05


class Lock:
    """An ``flock`` held by this process on a file of the runtime folder."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @property
    def intact(self) -> bool:
        """Whether the file that others would lock is still the one that this process holds."""
        try:
            found = os.stat(self._path)
        except OSError:
            return False
        held = os.fstat(self._descriptor)
        return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)

    def touch(self) -> None:
        """Make the file young, for cleaners of temporary folders."""
        with contextlib.suppress(OSError):
            os.utime(self._path)

    def release(self) -> None:
        """Let the next engine in."""
        os.close(self._descriptor)


def acquire(path: Path, sock: Path, seconds: float) -> Lock | None:
    """Wait for the lock, for as long as nobody serves.

    Args:
        path: the lock file; made if absent.
        sock: the socket that the holder of the lock serves, once it is ready.
        seconds: how long to wait for a holder that does not serve (it is starting, or ending).

    Returns:
        The lock, or None if another engine serves.

    Raises:
        PaiJupyterError: ``engine-locked`` if the holder neither serves nor ends in time.
    """
    end = time.monotonic() + seconds
    while True:
        lock = _try(path)
        if lock is not None:
            return lock
        if answers(sock):
            return None
        if time.monotonic() > end:
            raise PaiJupyterError(
                "engine-locked",
                f"Another engine holds `{path}` and does not answer.",
                "End that process (engine.json beside it has its pid), and try again.",
                503,
            )
        time.sleep(_PAUSE)


def answers(sock: Path) -> bool:
    """Say whether somebody listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5)
        try:
            probe.connect(str(sock))
        except BlockingIOError:
            return True  # its queue of connections is full
        except OSError:
            return False
        return True


def _try(path: Path) -> Lock | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    lock = Lock(path, descriptor)
    if lock.intact:
        return lock
    lock.release()  # the file was replaced between open and lock
    return None
