"""A look at what running jobs write and use, while there are any; readers of the event stream hear of it.

Nothing runs while no job does. What a look finds is published at most once a second for each job, and only if
somebody reads the stream; jobs are measured rarely while nobody looks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paijupyter.backends.base import Job, Measuring
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.events import EventBus
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.watchers import Backends

_log = logging.getLogger(__name__)
EVERY = 1.0  # seconds between two looks at the files of a job
MEASURED_EVERY = (2.0, 15.0)  # seconds between two measurements: while somebody looks, and otherwise
_LOOKED_AT_FOR = 10.0  # seconds for which somebody who has asked for a job is taken to look
_KEPT_EVERY = 15.0
_AT_ONCE = 1.0  # seconds of work in one round, after which the rest of the jobs waits for the next one


@dataclass(eq=False)
class _Seen:
    looked: float = 0.0
    measured: float = float("-inf")
    kept: float = 0.0
    told: Any = None


class Looker:
    """Looks at the running jobs of this host.

    Args:
        catalog: where they are.
        bus: who reads.
        backends: who measures their tasks.
        to_job: builds what a backend is told of a job; it may read the job's folder.
    """

    def __init__(
        self, catalog: Catalog, bus: EventBus, backends: Backends, to_job: Callable[[LiveJob], Job]
    ) -> None:
        self._catalog = catalog
        self._bus = bus
        self._backends = backends
        self._to_job = to_job
        self._seen: dict[str, _Seen] = {}
        self._asked = float("-inf")
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run(), name="look at running jobs")

    async def close(self) -> None:
        """End; what was read is kept for the next engine."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for live in self._running():
            await asyncio.to_thread(live.keep)

    def note(self, live: LiveJob) -> None:
        """Hear that a job has changed."""
        if live.life.state == "running":
            self._wake.set()

    def note_reader(self) -> None:
        """Hear that somebody has asked for a job."""
        if time.monotonic() - self._asked > _LOOKED_AT_FOR:
            self._wake.set()
        self._asked = time.monotonic()

    @property
    def _is_looked_at(self) -> bool:
        return self._bus.readers > 0 or time.monotonic() - self._asked < _LOOKED_AT_FOR

    def _running(self) -> list[LiveJob]:
        return [live for live in self._catalog.live.values() if live.life.state == "running"]

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            running = self._running()
            self._seen = {live.record.id: self._seen.get(live.record.id, _Seen()) for live in running}
            if not running:
                await self._wake.wait()
                continue
            start = time.monotonic()
            # The one that was looked at longest ago comes first.
            for live in sorted(running, key=lambda each: self._seen[each.record.id].looked):
                if time.monotonic() - start > _AT_ONCE:
                    break
                try:
                    await self._look(live, self._seen[live.record.id])
                except Exception:  # whatever a job writes, others are looked at
                    _log.exception("a look at job %s failed", live.record.id)
            await asyncio.sleep(EVERY)

    async def _look(self, live: LiveJob, seen: _Seen) -> None:
        seen.looked = now = time.monotonic()
        await asyncio.to_thread(live.look)
        if now - seen.measured >= MEASURED_EVERY[0 if self._is_looked_at else 1]:
            seen.measured = now
            await self._measure(live)
        if now - seen.kept >= _KEPT_EVERY:
            seen.kept = now
            await asyncio.to_thread(live.keep)
        view = live.view()
        far = (_without_clock(view["progress"]), view["execution"])
        told = (view["metrics"], far, view["usage"], view["ports"])
        if told == seen.told or live.life.state != "running":
            return
        if self._bus.readers:
            self._catalog.publish(live)
        seen.told = told

    async def _measure(self, live: LiveJob) -> None:
        backend = await self._backends.of(live.record.profile)
        if not isinstance(backend, Measuring):
            return
        found = await backend.usage(await asyncio.to_thread(self._to_job, live))
        if live.life.state == "running":
            live.usage = found


def _without_clock(progress: dict[str, Any] | None) -> object:
    """What is left goes down by itself; that alone is no news."""
    return progress and (progress["done"], progress["total"], progress["unit"], progress["fraction"])
