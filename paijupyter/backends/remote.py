"""What backends have in common whose jobs run elsewhere: one hub asks the server how all of them are."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from paijupyter.backends.base import Change, Job
from paijupyter.backends.changes import Changes, Subscription
from paijupyter.errors import PaiJupyterError


class ServerError(Exception, ABC):
    """A server refused a request, or could not be reached."""

    @abstractmethod
    def for_people(self, doing: str) -> PaiJupyterError:
        """Return the error of the whole product; ``doing`` ends the sentence "The server did not …"."""


class Hub(Protocol):
    """Hears of all jobs of a profile."""

    @property
    def trouble(self) -> ServerError | None:
        """Why the server cannot be asked now."""

    async def ready(self) -> None:
        """Return once the server was heard.

        Raises:
            ServerError: it cannot be asked.
        """

    async def until_stale(self) -> None:
        """Return when the server was not heard for too long."""


class Run(Protocol):
    """One job on its way."""

    job: Job
    current: Change


class Remote(ABC):
    """Begins jobs once each, and tells of them; for backends that have a hub and runs by job id."""

    _changes: Changes

    def __init__(self) -> None:
        self._beginnings: dict[str, asyncio.Task[None]] = {}

    async def submit(self, job: Job, secrets: Mapping[str, str]) -> None:
        """Bring the job to the server, once.

        Raises:
            PaiJupyterError: what the server has against it; nothing is left of it there then.
        """
        if job.id in self._going_on:
            return
        beginning = self._beginnings.get(job.id)
        if beginning is None:
            beginning = self._beginnings[job.id] = asyncio.create_task(self._begin(job, secrets))
            beginning.add_done_callback(lambda _: self._beginnings.pop(job.id, None))
        # Goes on if the caller is cancelled: a job is there as a whole or not at all.
        await asyncio.shield(beginning)

    async def watch(self, known: Sequence[Job]) -> AsyncIterator[Change]:
        """Stream the changes of all jobs, the current state of every known one first.

        Raises:
            PaiJupyterError: the server cannot be asked; its jobs run on.
        """
        subscription = self._changes.subscribe()
        guard: asyncio.Task[None] | None = None
        try:
            await self._ready()
            guard = asyncio.create_task(self._end_when_stale(subscription))
            heard = subscription.jobs()
            for run in list(self._going_on.values()):
                if run.job.id not in heard:
                    subscription.put(run.current)
            await self._adopt_all([job for job in known if job.id not in heard], subscription)
            async for change in subscription:
                yield change
            if self._hears.trouble is not None:
                raise self._hears.trouble.for_people("answer")
        finally:
            self._changes.unsubscribe(subscription)
            if guard is not None:
                guard.cancel()

    @property
    @abstractmethod
    def _hears(self) -> Hub:
        """The hub."""

    @property
    @abstractmethod
    def _going_on(self) -> Mapping[str, Run]:
        """The jobs on their way, by id."""

    @abstractmethod
    async def _begin(self, job: Job, secrets: Mapping[str, str]) -> None:
        """Submit a job, or go on with one that an earlier engine had begun to submit."""

    @abstractmethod
    async def _adopt_all(self, known: Sequence[Job], subscription: Subscription) -> None:
        """Go on with jobs that nobody follows yet; put how each is into the subscription."""

    async def _begun(self, job: Job) -> None:
        """Return once no submission of the job is under way."""
        beginning = self._beginnings.get(job.id)
        if beginning is not None:
            with contextlib.suppress(Exception):
                await asyncio.shield(beginning)

    async def _ready(self) -> None:
        try:
            await self._hears.ready()
        except ServerError as error:
            raise error.for_people("answer") from error

    async def _end_when_stale(self, subscription: Subscription) -> None:
        await self._hears.until_stale()
        subscription.put(None)
