"""What may end a task early: a request to stop and the time limit."""

import os
import select
import signal
import time

from .failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional


class Watch:
    """Turns SIGTERM, SIGINT and the clock into a verdict, and wakes whoever waits in a poll.

    The time limit counts from the making of the watch: unpacking, installing and the barrier are in it.

    Attributes:
        descriptor: readable after a signal, also after the end of a child.
    """

    def __init__(self, time_limit: "Optional[float]") -> None:
        self._limit = time_limit
        self._end = time.monotonic() + time_limit if time_limit else None
        self._stop = False
        self.descriptor, writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request_stop)

    def _request_stop(self, number: int, frame: "Any") -> None:
        self._stop = True

    @property
    def verdict(self) -> str:
        """Why the task must end now: ``stopped``, ``deadline``, or "" if it may go on."""
        if self._stop:
            return "stopped"
        if self._end is not None and time.monotonic() >= self._end:
            return "deadline"
        return ""

    def left(self) -> "Optional[float]":
        """Return the seconds until the time limit, None without one."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def explain(self, verdict: str) -> str:
        """Return the sentence for a verdict."""
        if verdict == "stopped":
            return "The task was stopped on request."
        return "The task reached its time limit of %g s." % (self._limit or 0)

    def check(self) -> None:
        """Do nothing while the task may go on.

        Raises:
            Failure: the verdict.
        """
        verdict = self.verdict
        if verdict:
            raise Failure(verdict, self.explain(verdict))

    def sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until the next signal."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
        self.drain()

    def drain(self) -> None:
        """Take the wake-ups that have been noticed."""
        try:
            while os.read(self.descriptor, 4096):
                pass
        except BlockingIOError:
            pass
