"""The events of what waits: asked for one by one, and for many at once with one list of the namespace.

A cluster looks through all events of a namespace for each such question, so hundreds of jobs that wait must
not each ask their own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from paijupyter.backends.kubernetes.findings import Event, event_of
from paijupyter.backends.kubernetes.paths import core
from paijupyter.backends.kubernetes.transport import KubeTransport

FRESH = 5.0  # seconds for which a list of all events serves
FEW = 12  # questions in that time that are asked one by one
_PAGE = "500"
_TIMEOUT = 15.0

_All = Mapping[str, Sequence[Event]]


class Events:
    """Tells the events of pods, Jobs and volume claims of a profile's namespace."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport
        self._asked: deque[float] = deque()
        self._all: asyncio.Task[_All] | None = None
        self._all_at = 0.0
        self._claims: dict[str, tuple[float, asyncio.Task[Sequence[Event]]]] = {}

    async def of(self, uids: Sequence[str]) -> _All:
        """Return the events of objects by their uid, oldest first as the cluster has them.

        Raises:
            KubeError: they cannot be had, for example without the right to list events.
        """
        await self._transport.open()
        now = time.monotonic()
        while self._asked and self._asked[0] < now - FRESH:
            self._asked.popleft()
        self._asked.extend([now] * len(uids))
        if len(self._asked) <= FEW:
            return dict(zip(uids, await asyncio.gather(*map(self._own, uids)), strict=True))
        if self._all is None or self._all_at < now - FRESH:
            self._all_at = now
            self._all = asyncio.create_task(self._list())
            self._all.add_done_callback(lambda done: done.cancelled() or done.exception())
        # Goes on if one of those who wait is cancelled: the others wait for the same.
        found = await asyncio.shield(self._all)
        return {uid: found.get(uid, ()) for uid in uids}

    async def of_claim(self, name: str) -> Sequence[Event]:
        """Return the events of a volume claim; many jobs that wait for one ask for them once.

        Raises:
            KubeError: they cannot be had.
        """
        await self._transport.open()
        known = self._claims.get(name)
        if known is None or known[0] < time.monotonic() - FRESH:
            which = f"involvedObject.kind=PersistentVolumeClaim,involvedObject.name={name}"
            known = time.monotonic(), asyncio.create_task(self._few(which))
            known[1].add_done_callback(lambda done: done.cancelled() or done.exception())
            self._claims[name] = known
        return await asyncio.shield(known[1])

    async def _own(self, uid: str) -> Sequence[Event]:
        return await self._few(f"involvedObject.uid={uid}")

    async def _few(self, selector: str) -> Sequence[Event]:
        page = await self._page({"fieldSelector": selector})
        return [event_of(each) for each in page.get("items") or ()]

    async def _list(self) -> _All:
        found: dict[str, list[Event]] = {}
        query = {"limit": _PAGE}
        while True:
            page = await self._page(query)
            for each in page.get("items") or ():
                uid = (each.get("involvedObject") or each.get("regarding") or {}).get("uid")
                found.setdefault(str(uid), []).append(event_of(each))
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                return found
            query = {"limit": _PAGE, "continue": following}

    async def _page(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        path = core("events", namespace=self._transport.namespace)
        page: Mapping[str, Any] = await self._transport.request("GET", path, query=query, timeout=_TIMEOUT)
        return page
