"""A handle on one boot process: our child, or one adopted from an engine that is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Callable

from paijupyter.backends.local import host

_POLL = (0.02, 0.25)  # seconds between looks where there is no pidfd: the first, and the longest


class BootProcess:
    """Notices at once when the process ends, and signals it without the risk of hitting another one.

    Attributes:
        pid: its process id, also the id of its session.
        started: its start time as the kernel has it, or "" where none.
        ended: whether its end has been noticed.
    """

    def __init__(self, pid: int, started: str, child: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self.started = started
        self.ended = False
        self._child = child
        self._pidfd: int | None = None
        self._poll: asyncio.Task[None] | None = None
        self._on_end: Callable[[], None] = lambda: None

    def watch(self, on_end: Callable[[], None]) -> None:
        """Call back once when the process has ended, from the running loop."""
        self._on_end = on_end
        loop = asyncio.get_running_loop()
        self._pidfd = self._open_pidfd()
        if self._pidfd is None:
            self._poll = loop.create_task(self._look())
        else:
            loop.add_reader(self._pidfd, self._note_end)

    def is_alive(self) -> bool:
        """Say whether it still runs."""
        return host.is_alive(self.pid, self.started)

    def terminate(self) -> None:
        """Ask it to end its task; no error if it has ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)
            elif self.is_alive():
                os.kill(self.pid, signal.SIGTERM)

    def close(self) -> None:
        """Let go of it; it runs on."""
        self._release()
        if self._child is not None:
            # A Popen that is dropped while its process runs warns; ours is meant to outlive us.
            self._child.returncode = 0
            self._child = None

    def _open_pidfd(self) -> int | None:
        if not hasattr(os, "pidfd_open"):
            return None
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError:
            return None  # gone already, an old kernel, or no descriptor left: polling tells
        if descriptor > resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2:
            # Starting processes, logs and sockets need descriptors too.
            os.close(descriptor)
            return None
        if self._child is None and not self.is_alive():
            # The number was reused between our look and the open; what we hold is a stranger.
            os.close(descriptor)
            return None
        return descriptor

    async def _look(self) -> None:
        delay = _POLL[0]
        while self.is_alive():
            await asyncio.sleep(delay)
            delay = min(delay * 1.5, _POLL[1])
        self._poll = None
        self._note_end()

    def _note_end(self) -> None:
        self._release()
        self._reap()
        self.ended = True
        self._on_end()

    def _reap(self) -> None:
        if self._child is not None:
            self._child.poll()
            self._child = None
            return
        with contextlib.suppress(OSError):
            # Ours after all if an earlier backend of this very process started it.
            os.waitpid(self.pid, os.WNOHANG)

    def _release(self) -> None:
        if self._pidfd is not None:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._poll is not None:
            self._poll.cancel()
            self._poll = None
