"""The stream of changes: every open watch gets every change, in order."""

from __future__ import annotations

import asyncio
from collections import deque

from paijupyter.backends.base import FINAL, Change


class Subscription:
    """One open watch. Iterate it; it ends when it or the backend is closed."""

    def __init__(self) -> None:
        self._waiting: deque[Change | None] = deque()
        self._news = asyncio.Event()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        change = self._waiting.popleft()
        if change is None:
            self.put(None)
            raise StopAsyncIteration
        return change

    def jobs(self) -> set[str]:
        """Return the jobs that have a change in it now."""
        return {change.job for change in self._waiting if change}

    def put(self, change: Change | None) -> None:
        """Add a change; None ends the stream after what is in it."""
        self._waiting.append(change)
        self._news.set()


class Changes:
    """Publishes changes, and keeps the final ones that nobody has heard of."""

    def __init__(self) -> None:
        self._open: list[Subscription] = []
        self._unheard: dict[str, Change] = {}
        self._closed = False

    def publish(self, change: Change) -> None:
        """Hand a change to every open watch."""
        for each in self._open:
            each.put(change)
        if not self._open and change.state in FINAL:
            self._unheard[change.job] = change

    def subscribe(self) -> Subscription:
        """Open a watch; it starts with the final changes that were missed."""
        subscription = Subscription()
        for change in self._unheard.values():
            subscription.put(change)
        self._unheard.clear()
        self._open.append(subscription)
        if self._closed:
            subscription.put(None)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Close a watch; no error if it is closed."""
        if subscription in self._open:
            self._open.remove(subscription)

    def forget(self, job_id: str) -> None:
        """Drop what is kept of a job."""
        self._unheard.pop(job_id, None)

    def close(self) -> None:
        """End all watches."""
        self._closed = True
        for each in self._open:
            each.put(None)
