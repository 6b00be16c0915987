"""Backends in use, and one watch on each profile that has unfinished jobs here.

A watch never ends because of an error: it is logged, the profile's jobs show since when they are stale, and
the watch is started again after a pause that grows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable

from paijupyter.backends import base
from paijupyter.backends.base import Backend, Change, Job, Place, Profile
from paijupyter.errors import PaiJupyterError
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.clock import now
from paijupyter.jobs.life import event_of
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.profiles import ProfileFiles

_log = logging.getLogger(__name__)
PAUSES = (0.5, 30.0)  # seconds before a watch is started again: the first time, and at most


class Backends:
    """The backends of the profiles, made when first asked for.

    Attributes:
        on_replaced: called with a profile's name when another backend has taken the place of its former one.
    """

    def __init__(self, place: Place, profiles: ProfileFiles) -> None:
        self.on_replaced: Callable[[str], None] = lambda profile: None
        self._place = place
        self._profiles = profiles
        self._made: dict[str, tuple[Profile, Backend]] = {}
        self._lock = asyncio.Lock()

    async def of(self, name: str) -> Backend:
        """Return the backend of a profile; a profile whose settings changed gets a new one.

        Raises:
            PaiJupyterError: ``unknown-profile`` or ``unknown-backend``.
        """
        profile = self._profiles.read().get(name)
        async with self._lock:
            made = self._made.get(profile.name)
            if made is not None and made[0] == profile:
                return made[1]
            if made is not None:
                del self._made[profile.name]
                await _close(profile.name, made[1])
            point = base.backend_kinds().get(profile.kind)
            if point is not None:
                await asyncio.to_thread(point.load)  # a cluster client may take a second to import
            backend = base.load_backend(profile, self._place)
            self._made[profile.name] = (profile, backend)
            if made is not None:
                self.on_replaced(profile.name)
            return backend

    async def close(self) -> None:
        """Let go of all backends; jobs run on."""
        for name, (_, backend) in self._made.items():
            await _close(name, backend)
        self._made.clear()


class Watchers:
    """The watches.

    Args:
        catalog: where changes go.
        backends: where they come from.
        to_job: builds what a backend is told of a job; it may read the job's folder.
    """

    def __init__(self, catalog: Catalog, backends: Backends, to_job: Callable[[LiveJob], Job]) -> None:
        self._catalog = catalog
        self._backends = backends
        self._to_job = to_job
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._begun: dict[str, int] = {}
        self._open: dict[str, int] = {}
        backends.on_replaced = self._renew

    def ensure(self, profile: str) -> None:
        """Have a watch on a profile."""
        task = self._tasks.get(profile)
        if task is None or task.done():
            self._tasks[profile] = asyncio.create_task(self._watch(profile), name=f"watch {profile}")

    def mark(self, profile: str) -> int | None:
        """Return the number of the watch that is open on a profile, or None while there is none."""
        task = self._tasks.get(profile)
        if task is None or task.done():
            return None
        return self._open.get(profile)

    def include(self, profile: str, mark: int | None) -> None:
        """Have a watch that tells of a job which was submitted since a mark.

        The watch that was open then has heard all of it. Any other may have begun too late for its first
        changes and too early to be told of it: such a one is opened anew.
        """
        if mark is not None and mark == self.mark(profile):
            return
        self._renew(profile)

    def _renew(self, profile: str) -> None:
        task = self._tasks.get(profile)
        if task is asyncio.current_task():
            return  # it is just about to open
        if task is not None:
            del self._tasks[profile]
            task.cancel()
        self.ensure(profile)

    async def close(self) -> None:
        """End all watches."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, profile: str) -> None:
        pause = PAUSES[0]
        while self._catalog.unfinished(profile):
            heard = False
            try:
                self._open.pop(profile, None)
                self._begun[profile] = self._begun.get(profile, 0) + 1
                backend = await self._backends.of(profile)
                known = await self._known(profile)
                self._open[profile] = self._begun[profile]
                if not known:
                    self._catalog.set_stale(profile, None)
                async with _closing(backend.watch(known)) as changes:
                    async for change in changes:
                        heard = True
                        self._catalog.set_stale(profile, None)
                        # Shielded: a watch that is opened anew leaves nothing half told.
                        await asyncio.shield(self._catalog.append(change.job, event_of(change)))
                        if not self._catalog.unfinished(profile):
                            return
                _log.warning("watch of profile %s ended by itself", profile)
            except PaiJupyterError as error:
                _log.warning("watch of profile %s: %s", profile, error)
            except Exception:  # whatever a backend does, the service goes on
                _log.exception("watch of profile %s failed", profile)
            self._catalog.set_stale(profile, now())
            pause = PAUSES[0] if heard else min(2 * pause, PAUSES[1])
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - spreads load, guards nothing
        self._catalog.set_stale(profile, None)

    async def _known(self, profile: str) -> list[Job]:
        """Return what the backend has taken; a job that is just being submitted is not lost."""
        known = []
        for live in self._catalog.unfinished(profile):
            if not live.life.submitted:
                continue
            try:
                known.append(await asyncio.to_thread(self._to_job, live))
            except Exception as error:
                _log.exception("record of job %s cannot be used", live.record.id)
                reason = f"The record of the job cannot be used: {type(error).__name__}."
                await self._catalog.append(
                    live.record.id, own_change("failed", "lost", reason, live.life.attempt)
                )
        return known


def own_change(state: str, reason: str, message: str, attempt: int = 0) -> dict[str, object]:
    """Return the event by which the service itself changes a job."""
    return {
        "type": "change",
        "at": now(),
        "attempt": attempt,
        "state": state,
        "reason": reason,
        "message": message,
        "tasks": [],
        "failedTask": None,
    }


@contextlib.asynccontextmanager
async def _closing(stream: AsyncIterator[Change]) -> AsyncIterator[AsyncIterator[Change]]:
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)  # an iterator need not be a generator
        if close is not None:
            await close()


async def _close(name: str, backend: Backend) -> None:
    try:
        await backend.close()
    except Exception:
        _log.exception("backend of profile %s did not close cleanly", name)
