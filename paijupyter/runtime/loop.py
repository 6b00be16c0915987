"""Wait for many descriptors at once."""

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict

READ = select.POLLIN
WRITE = select.POLLOUT


class Loop:
    """Calls whoever wants to hear of a descriptor."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._called: "Dict[int, Callable[[], None]]" = {}

    def watch(self, what: "Any", call: "Callable[[], None]", events: int = READ) -> None:
        """Call when a descriptor can be read from (and written to), also when its other side is gone."""
        number = what if isinstance(what, int) else what.fileno()
        self._called[number] = call
        self._poll.register(number, events)

    def forget(self, what: "Any") -> None:
        """Call no more; to be said before the descriptor is closed."""
        number = what if isinstance(what, int) else what.fileno()
        if self._called.pop(number, None):
            self._poll.unregister(number)

    def turn(self, seconds: float) -> None:
        """Wait for at most so long, and call."""
        for number, _ in self._poll.poll(seconds * 1000):
            call = self._called.get(number)
            if call:
                call()
