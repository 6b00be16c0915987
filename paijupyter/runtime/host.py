"""The task that keeps the board: it listens for all others."""

import errno
import socket
import time

from .board import Board
from .failure import Failure
from .loop import READ, WRITE, Loop
from .wire import Broken, Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

_EVERY = 1.0  # seconds between two words to everybody on who is missing
_FEW = 32  # tasks that are told everything at once
_BACKLOG = 1024
_UNKNOWN_FOR = 20.0  # seconds for whoever connects to show that it belongs to the job


class _Guest:
    """A connection, and whose it is once that is known."""

    def __init__(self, channel: Channel, now: float) -> None:
        self.channel = channel
        self.since = now
        self.task = ""
        self.number = 0  # of the last message that was heard
        self.told: "Dict[str, Any]" = {}
        self.events = READ


class Host:
    """Serves the board, and is told by it like any other task.

    Args:
        board: the board.
        own: key of this task.
        key: what the tasks know.
        port: to listen on, on all addresses of the pod.
        loop: that the connections wait in.

    Raises:
        Failure: ``ports`` if another program listens there.
    """

    trouble = ""
    is_lost = False
    is_alone = False
    is_needed = True

    def __init__(self, board: Board, own: str, key: bytes, port: int, loop: Loop) -> None:
        self._board = board
        self._own = own
        self._key = key
        self._loop = loop
        self._state: "Dict[str, Any]" = {}
        self._guests: "Dict[int, _Guest]" = {}
        self._pods: "Dict[str, str]" = {}
        self._next = 0.0
        self._listener = _listen(port)
        self.orders = board.orders(time.monotonic())
        loop.watch(self._listener, self._welcome)

    def tell(self, state: "Dict[str, Any]") -> None:
        """Take the state of the own task."""
        self._state = state
        self._hear(self._own, state)

    def tick(self, now: float) -> None:
        """Look for tasks that are gone; say who is missing."""
        if now < self._next:
            return
        self._next = now + _EVERY
        self._board.hear(self._own, self._state, now)
        self._board.look(now)
        for guest in list(self._guests.values()):
            if not guest.task and now - guest.since > _UNKNOWN_FOR:
                self._dismiss(guest)
        self._spread(now)

    def may_leave(self, now: float) -> bool:
        """Say whether no other task needs the board any more."""
        return bool(self.orders["over"]) and not any(
            guest.channel.is_writing for guest in self._guests.values()
        )

    def _hear(self, task: str, state: "Dict[str, Any]") -> None:
        now = time.monotonic()
        before = self._important(self.orders)
        self._board.hear(task, state, now)
        self.orders = self._board.orders(now)
        if self._important(self.orders) != before:
            self._spread(now)

    def _important(self, orders: "Dict[str, Any]") -> "Any":
        """What is said at once; among many tasks, who is missing waits for its turn."""
        few = len(self._guests) <= _FEW
        return orders["go"], orders["stop"], orders["over"], orders["missing"] if few else None

    def _spread(self, now: float) -> None:
        self.orders = self._board.orders(now)
        for guest in list(self._guests.values()):
            if guest.task and guest.told != self.orders:
                self._answer(guest)

    def _welcome(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # gone again
        guest = _Guest(Channel(connection, self._key, answers=True), time.monotonic())
        self._guests[guest.channel.fileno()] = guest
        self._loop.watch(guest.channel, lambda: self._serve(guest))
        self._serve(guest)

    def _serve(self, guest: _Guest) -> None:
        try:
            guest.channel.flush()
            for message in guest.channel.receive():
                self._take(guest, message)
        except Broken:
            self._dismiss(guest)
        else:
            self._poll(guest)

    def _take(self, guest: _Guest, message: "Dict[str, Any]") -> None:
        task, pod = str(message.get("task")), str(message.get("pod"))
        # Kubernetes may for a moment have two pods for one task.
        if self._pods.setdefault(task, pod) != pod:
            raise Broken("another pod has this task")
        guest.task, guest.number = task, int(message.get("number") or 0)
        self._hear(task, message.get("state") or {})
        self._answer(guest)

    def _answer(self, guest: _Guest) -> None:
        guest.told = self.orders
        try:
            guest.channel.send({"orders": self.orders, "heard": guest.number})
        except Broken:
            self._dismiss(guest)
        else:
            self._poll(guest)

    def _poll(self, guest: _Guest) -> None:
        events = READ | WRITE if guest.channel.is_writing else READ
        if events != guest.events and guest.channel.fileno() in self._guests:
            guest.events = events
            self._loop.watch(guest.channel, lambda: self._serve(guest), events)

    def _dismiss(self, guest: _Guest) -> None:
        number = guest.channel.fileno()
        if self._guests.pop(number, None):
            self._loop.forget(number)
            guest.channel.close()


def _listen(port: int) -> socket.socket:
    """Listen on all addresses, of both kinds where there are both."""
    try:
        for family, address in ((socket.AF_INET6, "::"), (socket.AF_INET, "")):
            try:
                listener = socket.socket(family, socket.SOCK_STREAM)
            except OSError:
                continue
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                listener.bind((address, port))
                listener.listen(_BACKLOG)
                listener.setblocking(False)
                return listener
            except OSError as error:
                listener.close()
                if error.errno == errno.EADDRINUSE or family == socket.AF_INET:
                    raise
        raise OSError(errno.EAFNOSUPPORT, "no kind of network")
    except OSError as error:
        raise Failure(
            "ports", "The board of the job cannot listen on port %d (%s)." % (port, error.strerror)
        ) from error
