"""Whether others can find this task by its name yet: a cluster's names come some time after its pods."""

import socket
import threading

_PAUSE = 0.5  # seconds between two looks


class OwnName:
    """Looks in a thread, since an answer may take long, until the name is known.

    Args:
        name: of this task.

    Attributes:
        is_known: whether it is.
        trouble: why not, as far as is known; "" once it is.
    """

    def __init__(self, name: str) -> None:
        self.is_known = False
        self.trouble = ""
        self._name = name
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self.is_known:
            try:
                socket.getaddrinfo(self._name, None)
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                self.trouble = "the name %s of this task cannot be looked up (%s)" % (self._name, why)
                threading.Event().wait(_PAUSE)
            else:
                self.is_known, self.trouble = True, ""
