"""One watch per kind: a list, then what changes, for as long as the backend lives.

What a watch meets: versions that are too old (410), servers that end it every few minutes, tokens that run
out (401), servers that are too busy (429) or away, and connections that are dead and do not say so. Through
all of it whoever listens hears each object's latest state, and of each object that is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.transport import KubeTransport

_log = logging.getLogger(__name__)
_PAGE = 500
_LIFETIME = (
    240,
    300,
)  # seconds the server is asked to keep a watch; at random, so that they do not end at once
_IDLE = 150.0  # seconds without even a bookmark, of which there is one a minute
_PAUSES = (0.3, 15.0)  # seconds before the next try: the first, and at most
_EXPIRED = 410


class Kept(Protocol):
    """What is kept of an object."""

    @property
    def uid(self) -> str:
        """Its uid."""

    @property
    def version(self) -> str:
        """Its resourceVersion."""


_Kept = TypeVar("_Kept", bound=Kept)


class Reflector(Generic[_Kept]):
    """Keeps the objects of one collection.

    Args:
        transport: the way to the cluster.
        path: returns the path of the collection; asked each time, as the namespace is known late.
        selector: of labels.
        read: makes of an object what is kept of it.
        tell: called with what is kept of an object that is new or has changed, and whether it is gone.

    Attributes:
        objects: by uid.
        synced: set once the first list was read.
        error: why nothing can be heard now, or None.
        failing_since: when that began (monotonic), or None.
    """

    def __init__(
        self,
        transport: KubeTransport,
        path: Callable[[], str],
        selector: str,
        read: Callable[[Mapping[str, Any]], _Kept],
        tell: Callable[[_Kept, bool], None],
    ) -> None:
        self.objects: dict[str, _Kept] = {}
        self.synced = asyncio.Event()
        self.error: KubeError | None = None
        self.failing_since: float | None = None
        self.news = asyncio.Event()  # set when error comes or goes
        self._transport = transport
        self._path = path
        self._selector = selector
        self._read = read
        self._tell = tell
        self._version = ""

    async def run(self) -> None:
        """Follow the collection until cancelled."""
        pause = _PAUSES[0]
        while True:
            try:
                if not self._version:
                    await self._list()
                    pause = _PAUSES[0]
                began = time.monotonic()
                await self._follow()
                # A server that ends every watch at once is not asked without a pause.
                await asyncio.sleep(max(0.0, _PAUSES[0] - (time.monotonic() - began)))
                pause = _PAUSES[0]
            except KubeError as error:
                if error.status == _EXPIRED:
                    self._version = ""
                    continue
                self._fail(error)
                await asyncio.sleep(max(pause * random.uniform(0.5, 1), error.retry_after or 0))  # noqa: S311 - spreads load, guards nothing
                pause = min(2 * pause, _PAUSES[1])

    async def _list(self) -> None:
        found: dict[str, _Kept] = {}
        query = {"labelSelector": self._selector, "limit": str(_PAGE)}
        while True:
            page = await self._transport.request("GET", self._path(), query=query)
            for item in page.get("items") or ():
                kept = self._read(item)
                found[kept.uid] = kept
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                break
            query = {**query, "continue": following}
        self._version = str((page.get("metadata") or {}).get("resourceVersion") or "")
        before, self.objects = self.objects, found
        self._recover()
        for uid, kept in found.items():
            if uid not in before or before[uid].version != kept.version:
                self._tell(kept, False)
        for uid, kept in before.items():
            if uid not in found:
                self._tell(kept, True)
        self.synced.set()
        self.news.set()

    async def _follow(self) -> None:
        query = {
            "labelSelector": self._selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(*_LIFETIME)),  # noqa: S311 - spreads load, guards nothing
        }
        async with contextlib.aclosing(
            self._transport.stream(self._path(), query=query, idle=_IDLE)
        ) as pieces:
            async for line in _lines(pieces):
                self._recover()
                self._take(json.loads(line))
        self._recover()

    def _take(self, event: Mapping[str, Any]) -> None:
        kind, data = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            raise KubeError(
                int(data.get("code") or 500), str(data.get("reason") or ""), str(data.get("message") or "")
            )
        version = str((data.get("metadata") or {}).get("resourceVersion") or "")
        if kind in ("ADDED", "MODIFIED", "DELETED"):
            kept = self._read(data)
            if kind == "DELETED":
                self.objects.pop(kept.uid, None)
            else:
                self.objects[kept.uid] = kept
            self._tell(kept, kind == "DELETED")
        self._version = version or self._version

    def _fail(self, error: KubeError) -> None:
        if self.failing_since is None:
            self.failing_since = time.monotonic()
            _log.warning("watch of %s: %s", self._path(), error)
        self.error = error
        self.news.set()

    def _recover(self) -> None:
        if self.failing_since is not None:
            self.failing_since = self.error = None
            self.news.set()


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
