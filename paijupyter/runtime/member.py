"""A task that has its board elsewhere: it stays connected to it, and comes back when a connection is lost."""

import os
import socket
import threading
import time

from .loop import READ, WRITE, Loop
from .wire import Broken, Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Tuple

_BEATS = 6  # times at least that each side says that it is there, before the other gives it up
_ATTEMPT = 5.0  # seconds for one connection to be made
_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0)  # seconds between two tries; the last again and again


class Member:
    """Tells the board how this task is, and has its orders.

    It is not needed after its own end.

    Args:
        own: key of this task.
        task: key of the task that keeps the board.
        address: name and port; the name may not be known until its pod has an address.
        key: what the tasks know.
        patience: seconds without a word from the board until it is given up.
        first_patience: seconds for the board to be there at all.
        loop: that the connection waits in.
    """

    is_needed = False

    def __init__(
        self,
        own: str,
        task: str,
        address: "Tuple[str, int]",
        key: bytes,
        patience: float,
        first_patience: float,
        loop: Loop,
    ) -> None:
        self.orders: "Dict[str, Any]" = {}
        self._own = own
        self._board = task
        self._address = address
        self._key = key
        self._patience = patience
        self._until = time.monotonic() + first_patience
        self._loop = loop
        self._pod = os.urandom(8).hex()
        self._state: "Dict[str, Any]" = {}
        self._number = self._heard = 0
        self._channel: "Optional[Channel]" = None
        self._spoke = self._listened = 0.0
        self._failure = "nobody has answered yet"
        self._began = time.monotonic()
        self._door, self._bell = os.pipe()
        self._caller: "Optional[_Caller]" = None
        self._call_at = 0.0
        self._tries = 0
        loop.watch(self._door, self._take_connection)

    @property
    def trouble(self) -> str:
        """Why the board cannot be reached, "" if it can."""
        if self._listened and self._channel:
            return ""
        return "%s, which keeps the board of the job, cannot be reached at %s (%s)" % (
            self._board,
            self._address[0],
            self._failure,
        )

    @property
    def is_lost(self) -> bool:
        """Say whether the board was there once and has been silent for too long."""
        return bool(self._listened) and time.monotonic() - self._listened > self._patience

    @property
    def is_alone(self) -> bool:
        """Say whether there is no board, not yet or not any more."""
        return not self._listened or self.is_lost

    def tell(self, state: "Dict[str, Any]") -> None:
        """Tell the board a new state."""
        self._state = state
        self._number += 1
        self._speak()

    def tick(self, now: float) -> None:
        """Call the board if there is no connection; say now and then that this task is there."""
        if self._channel is None:
            if self._caller is None and now >= self._call_at:
                self._caller = _Caller(self._address, self._bell)
        elif now - self._spoke >= self._patience / _BEATS:
            self._speak()
        if self._channel and now - max(self._listened, self._began) > self._patience:
            self._hang_up("it says nothing")  # half-open: the other side may be gone for long

    def may_leave(self, now: float) -> bool:
        """Say whether the board has heard all that this task had to say, or never will."""
        if not self._listened:
            return now > self._until
        return self._heard >= self._number or self.is_lost

    def _speak(self) -> None:
        if self._channel:
            self._spoke = time.monotonic()
            told = {"task": self._own, "pod": self._pod, "number": self._number, "state": self._state}
            try:
                self._channel.send(told)
                self._poll(self._channel)
            except Broken as error:
                self._hang_up(str(error))

    def _take_connection(self) -> None:
        os.read(self._door, 1)
        caller, self._caller = self._caller, None
        if caller is None:
            return
        if caller.connection is None:
            self._failure = caller.failure
            self._retry()
            return
        self._began = time.monotonic()
        self._channel = channel = Channel(caller.connection, self._key, answers=False)
        self._loop.watch(channel, self._serve)
        self._speak()

    def _serve(self) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            for message in channel.receive():
                self._listened = time.monotonic()
                self._tries = 0
                self.orders = message.get("orders") or self.orders
                self._heard = max(self._heard, int(message.get("heard") or 0))
            channel.flush()
            self._poll(channel)
        except Broken as error:
            self._hang_up(str(error))

    def _poll(self, channel: Channel) -> None:
        self._loop.watch(channel, self._serve, READ | WRITE if channel.is_writing else READ)

    def _hang_up(self, why: str) -> None:
        if self._channel:
            self._failure = why
            self._loop.forget(self._channel)
            self._channel.close()
            self._channel = None
            self._retry()

    def _retry(self) -> None:
        self._call_at = time.monotonic() + _PAUSES[min(self._tries, len(_PAUSES) - 1)]
        self._tries += 1


class _Caller:
    """Makes one connection in a thread: to look up a name may take long, and a stop must not wait for it."""

    def __init__(self, address: "Any", bell: int) -> None:
        self.connection: "Optional[socket.socket]" = None
        self.failure = ""
        self._address = address
        self._bell = bell
        threading.Thread(target=self._call, daemon=True).start()

    def _call(self) -> None:
        try:
            self.connection = socket.create_connection(self._address, _ATTEMPT)
        except OSError as error:
            self.failure = (error.strerror or str(error)).lower()
        os.write(self._bell, b"x")
