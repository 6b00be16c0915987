"""The event stream: one order for everything that happens to any job, with numbers to resume from."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from paijupyter.errors import PaiJupyterError

KEPT = 10_000


class EventBus:
    """Publishes events to any number of readers; each reads the same ring at its own pace.

    The first number is the time of the start in milliseconds, so that a number of an earlier process is
    recognised as too old. Events are kept as JSON text: ten thousand of them stay within some 30 MB.

    Attributes:
        seq: number of the latest event; a list made now is complete up to here.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self.seq = int(time.time() * 1000)
        self._first = self.seq
        self._ring: deque[tuple[int, str]] = deque()
        self._kept = kept
        self._passing: dict[str, tuple[int, str]] = {}
        self._gone = self.seq
        self._news = asyncio.Event()
        self._closed = False
        self.readers = 0

    def publish(self, event: Mapping[str, Any]) -> int:
        """Add an event and return its number."""
        self._ring.append((self.seq + 1, self._text(event)))
        if len(self._ring) > self._kept:
            self._gone = self._ring.popleft()[0]
        self._wake()
        return self.seq

    def publish_passing(self, subject: str, event: Mapping[str, Any]) -> int:
        """Add an event that the next of the same subject makes worthless; it takes no room in the ring."""
        self._passing[subject] = (self.seq + 1, self._text(event))
        self._wake()
        return self.seq

    def forget_passing(self, subject: str) -> None:
        """Drop a passing event, since something has come that says more."""
        self._passing.pop(subject, None)

    def since(self, seq: int) -> list[dict[str, Any]]:
        """Return all events after a number.

        Raises:
            PaiJupyterError: ``events-gone`` (410) if some of them are no longer kept.
        """
        if seq < self._gone or seq > self.seq or seq < self._first:
            raise PaiJupyterError(
                "events-gone",
                f"Events after {seq} are no longer kept.",
                "Read the job list again and follow from its `seq`.",
                410,
            )
        found = list(itertools.takewhile(lambda each: each[0] > seq, reversed(self._ring)))
        found += [each for each in self._passing.values() if each[0] > seq]
        return [cast("dict[str, Any]", json.loads(text)) for _, text in sorted(found)]

    async def follow(self, since: int) -> AsyncIterator[dict[str, Any]]:
        """Yield all events after a number, then each as it comes, until the bus is closed.

        Raises:
            PaiJupyterError: ``events-gone`` (410), also later, if the reader is too slow for the ring.
        """
        self.readers += 1
        try:
            while True:
                news = self._news
                events, since = self.since(since), self.seq
                for event in events:
                    yield event
                if self._closed:
                    return
                if since == self.seq:
                    await news.wait()
        finally:
            self.readers -= 1

    def close(self) -> None:
        """End all readers once they have read what there is."""
        self._closed = True
        self._wake()

    def _text(self, event: Mapping[str, Any]) -> str:
        self.seq += 1
        return json.dumps({"seq": self.seq, **event}, separators=(",", ":"))

    def _wake(self) -> None:
        # A fresh Event for the next wait: whoever holds the old one wakes, nobody misses news.
        news, self._news = self._news, asyncio.Event()
        news.set()
