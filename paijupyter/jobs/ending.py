"""Stopping and deleting jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from paijupyter.backends.base import Job
from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs.boards import Boards
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.clock import now
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.watchers import Backends, Watchers, own_change

_log = logging.getLogger(__name__)
_HEARD_OF = 10.0  # seconds until the end of a stopped job is heard of; then its view says `stopping`
_RETRY_PAUSES = (1.0, 60.0)


class Endings:
    """Ends jobs.

    Args:
        catalog: where jobs are kept.
        backends: who runs them.
        watchers: who hears of their end.
        to_job: builds what a backend is told of a job; it may read the job's folder.
        boards: those of deleted jobs end.
    """

    def __init__(
        self,
        catalog: Catalog,
        backends: Backends,
        watchers: Watchers,
        to_job: Callable[[LiveJob], Job],
        boards: Boards,
    ) -> None:
        self._catalog = catalog
        self._backends = backends
        self._watchers = watchers
        self._to_job = to_job
        self._boards = boards
        self._stopping: dict[str, asyncio.Task[None]] = {}

    async def stop(self, job: str) -> None:
        """Stop a job: the wish is recorded first, so that a crash does not forget it.

        It goes on if the caller is cancelled, and two callers wait for the same.

        Raises:
            Conflict: ``other-host``.
        """
        live = self._ours(job)
        if live is None:
            return
        await asyncio.shield(self._task(live))

    def stop_later(self, live: LiveJob) -> None:
        """Stop a job in the background; tries until it has ended."""
        self._task(live, patient=True)

    async def delete(self, job: str) -> None:
        """Remove a final job.

        Raises:
            Conflict: ``not-final``.
        """
        row = self._catalog.index.get(job)
        if row is None:
            raise NotFound("Job", job)
        if not row.final or job in self._catalog.live:
            self._ours(job)
            raise Conflict(
                "not-final",
                f"Job `{row.name}` is {row.state} and cannot be deleted.",
                f"Stop it first: stop {row.name}.",
            )
        live = self._catalog.job(row)
        async with live.turn:
            if self._catalog.host.owns(live.record.facts):
                await self._forget(live)
            await self._boards.end(job)
            await self._catalog.remove(job)

    async def close(self) -> None:
        """Let go of what is under way; the next start takes it up."""
        tasks = list(self._stopping.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ours(self, job: str) -> LiveJob | None:
        """Return an unfinished job of this host, or None if it is final."""
        live = self._catalog.live.get(job)
        if live is not None:
            return live
        row = self._catalog.index.get(job)
        if row is None:
            raise NotFound("Job", job)
        if row.final:
            return None
        raise Conflict(
            "other-host",
            f"Job `{row.name}` belongs to host `{row.host}` and is only shown here.",
            f"Do it on `{row.host}`; if that machine is gone, remove `{self._catalog.folder / job}`.",
        )

    def _task(self, live: LiveJob, *, patient: bool = False) -> asyncio.Task[None]:
        job = live.record.id
        task = self._stopping.get(job)
        if task is None:
            task = asyncio.create_task(self._until_stopped(live) if patient else self._stop(live))
            self._stopping[job] = task
            task.add_done_callback(lambda done: self._done(job, done))
        return task

    def _done(self, job: str, task: asyncio.Task[None]) -> None:
        self._stopping.pop(job, None)
        if not task.cancelled() and (error := task.exception()):
            _log.warning("job %s could not be stopped: %s", job, error)

    async def _until_stopped(self, live: LiveJob) -> None:
        pause = _RETRY_PAUSES[0]
        while not live.life.final:
            try:
                await self._stop(live)
            except Exception as error:
                _log.warning("job %s is not stopped yet: %s", live.record.id, error)
            if not live.life.final:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _RETRY_PAUSES[1])

    async def _stop(self, live: LiveJob) -> None:
        job = live.record.id
        try:
            await self._catalog.append(job, {"type": "stop-requested", "at": now(), "by": "user"})
        except OSError as error:  # a job that filled the disk must be one that can be stopped
            _log.error("the wish to stop job %s is not recorded: %s", job, error)
        async with live.turn:
            if live.life.final or job not in self._catalog.live:
                return
            if not live.life.submitted and live.life.reason in ("secret", "data"):
                # No backend has heard of it.
                await self._catalog.append(
                    job, own_change("stopped", "user", "Stopped by user before it started.")
                )
                return
            self._watchers.ensure(live.record.profile)
            backend = await self._backends.of(live.record.profile)
            told = await asyncio.to_thread(self._to_job, live)
            try:
                await backend.stop(told)
            except PaiJupyterError:
                raise
            except Exception as error:
                raise PaiJupyterError(
                    "backend-failed",
                    f"Profile `{live.record.profile}` could not stop it: {type(error).__name__}: {error}",
                    "Stop it again.",
                    502,
                ) from error
        try:
            await asyncio.wait_for(live.ended.wait(), _HEARD_OF)
        except asyncio.TimeoutError:
            _log.warning("the end of job %s was not heard of", job)

    async def _forget(self, live: LiveJob) -> None:
        """Let the backend remove what it still keeps; what a profile that is gone keeps cannot be reached."""
        try:
            backend = await self._backends.of(live.record.profile)
        except PaiJupyterError as error:
            _log.warning("job %s is deleted without its backend: %s", live.record.id, error)
            return
        await backend.delete(await asyncio.to_thread(self._to_job, live))
