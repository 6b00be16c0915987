"""What a form has to do, one after the other and beside the kernel.

A callback of a widget runs on the main thread, on that of a subshell, or on the kernel's loop while a cell
runs, by the version of ipykernel. So a callback only says what is to be done; one thread does it, in order,
and ends when nothing is left.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from paijupyter.errors import PaiJupyterError, UsageProblem

_LOG = logging.getLogger(__name__)


class Worker:
    """Carries out tasks in order.

    Args:
        failed: is told of a task that failed; a mistake of ours is logged with its traceback.
    """

    def __init__(self, failed: Callable[[PaiJupyterError], None]) -> None:
        self._failed = failed
        self._lock = threading.Lock()
        self._tasks: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._idle = threading.Event()
        self._idle.set()

    def do(self, task: Callable[[], None]) -> None:
        """Put a task at the end; returns at once."""
        with self._lock:
            self._tasks.append(task)
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="paijupyter-form", daemon=True)
                self._thread.start()

    def has_more(self) -> bool:
        """Say whether something waits behind the task that runs now."""
        with self._lock:
            return bool(self._tasks)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is left; False if the time is up."""
        return self._idle.wait(seconds)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._tasks:
                    self._thread = None
                    self._idle.set()
                    return
                task = self._tasks.popleft()
            try:
                task()
            except PaiJupyterError as error:
                self._failed(error)
            except Exception as error:  # A callback's traceback would be seen by nobody.
                _LOG.exception("a form could not do what was asked")
                self._failed(
                    UsageProblem(f"Form failed: {type(error).__name__}.", "The kernel's log says where.")
                )
