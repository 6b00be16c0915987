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
        self._ring: deque[str] = deque(maxlen=kept)
        self._news = asyncio.Event()
        self._closed = False
        self.readers = 0

    def publish(self, event: Mapping[str, Any]) -> int:
        """Add an event and return its number."""
        self.seq += 1
        text = json.dumps({"seq": self.seq, **event}, separators=(",", ":"))
        self._ring.append(text)
        self._wake()
        return self.seq

    def since(self, seq: int) -> list[dict[str, Any]]:
        """Return all events after a number.

        Raises:
            PaiJupyterError: ``events-gone`` (410) if some of them are no longer kept.
        """
        oldest = self.seq - len(self._ring)
        if seq < oldest or seq > self.seq or seq < self._first:
            raise PaiJupyterError(
                "events-gone",
                f"Events after {seq} are no longer kept.",
                "Read the job list again and follow from its `seq`.",
                410,
            )
        return [
            cast("dict[str, Any]", json.loads(text))
            for text in itertools.islice(self._ring, seq - oldest, len(self._ring))
        ]

    async def follow(self, since: int) -> AsyncIterator[dict[str, Any]]:
        """Yield all events after a number, then each as it comes, until the bus is closed.

        Raises:
            PaiJupyterError: ``events-gone`` (410), also later, if the reader is too slow for the ring.
        """
        self.readers += 1
        try:
            while True:
                news = self._news
                for event in self.since(since):
                    yield event
                    since = event["seq"]
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

    def _wake(self) -> None:
        # A fresh Event for the next wait: whoever holds the old one wakes, nobody misses news.
        news, self._news = self._news, asyncio.Event()
        news.set()
