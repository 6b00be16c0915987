"""Whether names can be looked up yet: a cluster's come some time after its pods, not everywhere at once."""

import os
import socket
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Sequence, Tuple

    from .loop import Loop

_PAUSE = 0.5  # seconds between two looks


class HostNames:
    """Looks names up in a thread, since an answer may take long, until each is known.

    Args:
        names: each with whose it is, such as ``this task``.
        loop: that is woken when there is none left to look for.
        patience: seconds after which those that are left are not looked for any more; None: never.

    Attributes:
        are_found: whether there is none left to look for.
        trouble: why not, as far as is known; "" once it is so.
    """

    def __init__(
        self, names: "Sequence[Tuple[str, str]]", loop: "Loop", patience: "Optional[float]" = None
    ) -> None:
        self.are_found = False
        self.trouble = ""
        self._names = names
        self._until = None if patience is None else time.monotonic() + patience
        self._loop = loop
        self._door, self._bell = os.pipe()
        loop.watch(self._door, self._close)
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        for name, whose in self._names:
            self.trouble = "the name %s of %s is looked up" % (name, whose)
            while not self._is_known(name, whose) and not self._is_late():
                threading.Event().wait(_PAUSE)
        self.are_found, self.trouble = True, ""
        os.write(self._bell, b"x")

    def _close(self) -> None:
        self._loop.forget(self._door)
        os.close(self._door)
        os.close(self._bell)

    def _is_known(self, name: str, whose: str) -> bool:
        try:
            socket.getaddrinfo(name, None)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            self.trouble = "the name %s of %s cannot be looked up (%s)" % (name, whose, why)
            return False
        return True

    def _is_late(self) -> bool:
        return self._until is not None and time.monotonic() > self._until
