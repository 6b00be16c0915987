"""How often an OpenPAI server may be asked: so many calls a minute, fewer while it says that few are left.

The limits of a server hold for everything behind one address (openpai.md 8.1): one engine stays well below.
Who asks has a turn: the list of all jobs keeps its period whatever else is wanted, people wait for nothing
that nobody waits for, and what is only nice to know takes what is left.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from enum import Enum

PER_MINUTE = 60
_WINDOW = 60.0  # seconds
_JITTER = 0.1  # of a second at most, so that engines that wait for the same moment do not call in it
_FOR_PEOPLE = 8  # one call in so many is kept from news for what a person waits for


class Turn(Enum):
    """For what a call is made; those before are served first."""

    LIST = "list"
    PERSON = "person"
    NEWS = "news"
    FOLLOW = "follow"  # a log that somebody watches, which could use up any number
    IDLE = "idle"


class Budget:
    """Lets through a number of calls in every minute. Of no event loop; for one thread.

    Args:
        per_minute: calls in any 60 seconds.
        clock: seconds that only grow.
    """

    def __init__(self, per_minute: int = PER_MINUTE, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = max(per_minute, 1)
        self._clock = clock
        self._calls: deque[float] = deque()
        self._halved = False
        self._shut_until = 0.0
        self._kept: dict[object, float] = {}

    @property
    def limit(self) -> int:
        """Calls that may be made in a minute now."""
        return max(self._most // 2, 1) if self._halved else self._most

    def keep(self, who: object, per_minute: float) -> None:
        """Keep calls of every minute for somebody's lists; 0 lets them go."""
        self._kept[who] = per_minute
        if not per_minute:
            del self._kept[who]

    async def take(self, turn: Turn = Turn.PERSON) -> None:
        """Wait until one more call may be made for this, and count it."""
        while True:
            wait = self._wait(turn)
            if wait <= 0:
                self._calls.append(self._clock())
                return
            await asyncio.sleep(wait + random.uniform(0, _JITTER))  # noqa: S311 - spreads load

    def free(self, turn: Turn) -> int:
        """Return how many calls could be made at once for this."""
        self._forget()
        return max(self._share(turn) - len(self._calls), 0) if self._is_open() else 0

    def learn(self, limit: int | None, remaining: int | None) -> None:
        """Hear what the server has left of its own limit."""
        if limit and remaining is not None:
            self._halved = remaining * 2 < limit

    def shut(self, seconds: float) -> None:
        """Make no call for some time: the server refused one for being too many."""
        self._shut_until = max(self._shut_until, self._clock() + seconds)

    def _wait(self, turn: Turn) -> float:
        self._forget()
        now = self._clock()
        if not self._is_open():
            return self._shut_until - now
        share = self._share(turn)
        if len(self._calls) < share:
            return 0.0
        return self._calls[len(self._calls) - share] + _WINDOW - now

    def _share(self, turn: Turn) -> int:
        limit = self.limit
        kept = min(int(sum(self._kept.values()) + 0.999), limit // 2)
        for_news = limit - kept - limit // _FOR_PEOPLE
        shares = {
            Turn.LIST: limit,
            Turn.PERSON: limit - kept,
            Turn.NEWS: for_news,
            Turn.FOLLOW: min(limit * 5 // 8, for_news - 1),
            Turn.IDLE: min(limit // 2, for_news - 1),
        }
        return max(shares[turn], 1)

    def _is_open(self) -> bool:
        return self._clock() >= self._shut_until

    def _forget(self) -> None:
        old = self._clock() - _WINDOW
        while self._calls and self._calls[0] <= old:
            self._calls.popleft()


ENGINE = Budget()
"""What all OpenPAI profiles of this process share."""
