"""What is known of all jobs of a profile: one list of all in every period, one look at each that changed.

However many jobs there are, the calls stay within the budget: the list keeps its period whatever else is
asked, details wait for their turn, those of ended jobs first, and what is left of a minute copies the logs of
running tasks, the longest unread first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

from paijupyter.backends.openpai.answers import KNOWN, Detail, Summary, detail_of, events_of, mapping
from paijupyter.backends.openpai.budget import Turn
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.features import EVENTS_SINCE
from paijupyter.backends.openpai.listing import Listing
from paijupyter.backends.openpai.run import JobRun
from paijupyter.backends.openpai.server import Server
from paijupyter.backends.waiting import happens

_log = logging.getLogger(__name__)
FEW = 8  # jobs of an earlier engine that are looked at one by one
_JITTER = 0.1  # of the period by which lists come earlier, so that engines do not ask in step
_PATIENCE = 10.0  # seconds beyond two periods without an answer until jobs are shown as stale
_MISSES = 2  # answers in a row that do not know a job, until it is lost
_YOUNG = 5.0  # seconds after its submission in which a job is not missed
_EVENTS_EVERY = 60.0  # seconds
_AGAIN = 60.0  # seconds after which a running job of several tasks is looked at again
_ATTEMPTS = 3  # of those that nobody saw, the last so many are looked at
_LISTS = 4  # calls of the budget for one list: however short the period, most of them are for other things
_CROWD = 20  # jobs that wait for a look; with more, ends are said from the list


class Hub:
    """Asks the server. It begins when first needed and goes on until :meth:`close`.

    Attributes:
        before_end: called with a job before its end is said.
        trouble: why the server cannot be asked now, or None.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._runs: dict[str, JobRun] = {}
        self._pending: dict[str, JobRun] = {}
        self._due: dict[str, JobRun] = {}
        self._listing = Listing(server)
        self._tasks: list[asyncio.Task[None]] = []
        self._ends: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._work = asyncio.Event()
        self._closed = asyncio.Event()
        self._asked = asyncio.Event()
        self.before_end: Callable[[JobRun], Awaitable[None]] | None = None
        self.trouble: PaiError | None = None
        self._failing_since: float | None = None

    @property
    def runs(self) -> Iterable[JobRun]:
        """The jobs that have not ended."""
        return list(self._runs.values())

    def join(self, run: JobRun) -> None:
        """Follow a job from now on."""
        self._runs[run.job.id] = run
        self._begin()
        self._wake.set()

    def leave(self, run: JobRun) -> None:
        """Follow it no more."""
        for known in (self._runs, self._pending, self._due):
            known.pop(run.job.id, None)

    def hurry(self) -> None:
        """Look at once: something is about to change."""
        self._wake.set()

    async def ready(self) -> None:
        """Begin, and wait for the first answer.

        Raises:
            PaiError: the server cannot be asked.
        """
        self._begin()
        if self.trouble is not None:
            self._asked.clear()
            self._wake.set()
        while not self._closed.is_set() and not await happens(self._asked, 1.0):
            pass
        if self.trouble is not None:
            raise self.trouble

    async def until_stale(self) -> None:
        """Return once the server has not answered for some time, or at the end."""
        patience = _PATIENCE + 2 * self.period
        while not self._closed.is_set():
            since = self._failing_since
            if since is not None and time.monotonic() - since >= patience:
                return
            if since is not None and self.trouble is not None and not self.trouble.is_passing:
                return
            await happens(self._closed, 0.5)

    async def close(self) -> None:
        """End all that is asked."""
        self._closed.set()
        self._server.client.budget.keep(self, 0)
        tasks = [*self._tasks, *self._ends]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self, run: JobRun) -> None:
        """Look at one job now, for somebody who waits.

        Raises:
            PaiError: it cannot be had.
        """
        path = await self._server.path(run.name)
        data = mapping(await self._server.client.call("GET", path))
        detail = detail_of(data)
        run.summary = detail.summary
        await self._take(run, detail.summary, detail)

    async def introduce(self, runs: Sequence[JobRun]) -> None:
        """Learn how jobs of an earlier engine are: few by a look at each, many from one list.

        Raises:
            PaiError: the server cannot be asked.
        """
        if len(runs) <= FEW:
            for run in runs:
                with contextlib.suppress(PaiError):
                    await self.look(run)
            return
        listed = await self._listing.ask({run.name for run in runs})
        for run in runs:
            summary = listed.get(run.name)
            if summary is None or summary.is_final:
                self._pending[run.job.id] = run
            else:
                run.summary = summary
                run.hear(summary, None)
        self._work.set()

    @property
    def period(self) -> float:
        """Seconds between two lists at most: the profile's, or what the calls of a minute allow."""
        return max(self._server.settings.poll_seconds, self._allowed)

    @property
    def _allowed(self) -> float:
        """The shortest period."""
        return _LISTS * 60 / self._server.client.budget.limit

    # Loops

    def _begin(self) -> None:
        if not self._tasks and not self._closed.is_set():
            self._server.client.budget.keep(self, 60 / (self.period * (1 - _JITTER)) + 1)
            self._tasks = [
                asyncio.create_task(self._poll_on(), name="openpai list"),
                asyncio.create_task(self._look_on(), name="openpai details"),
            ]

    async def _poll_on(self) -> None:
        while True:
            self._wake.clear()
            begun = time.monotonic()
            try:
                await self._poll()
                self.trouble, self._failing_since = None, None
            except PaiError as error:
                if self.trouble is None:
                    _log.warning("profile %s: %s", self._server.settings.name, error)
                if error.status == 401:
                    self._server.forget()
                self.trouble = error
                self._failing_since = self._failing_since or time.monotonic()
            except Exception:  # an answer of a kind that nobody foresaw must not end the loop
                _log.exception("profile %s: the list of jobs", self._server.settings.name)
            self._asked.set()
            await self._rest(begun)

    async def _rest(self, begun: float) -> None:
        """Wait until the next list, whose answer comes within a period of this one's.

        Args:
            begun: when this one was asked for.
        """
        now = time.monotonic()
        took, least, period = now - begun, self._allowed * (1 - _JITTER), self.period
        await asyncio.sleep(max(begun + least - now, 0.0))  # whoever is in a hurry waits so long, too
        jitter = random.uniform(0, _JITTER)  # noqa: S311 - spreads load
        end = begun + max(period * (1 - jitter) - took, period / 2, least)
        hurried = await happens(self._wake, max(end - time.monotonic(), 0.0))
        if hurried and not self._server.client.budget.free(Turn.PERSON):
            # What is left are the calls of lists that keep the period: a hurry must not use them up.
            await asyncio.sleep(max(end - time.monotonic(), 0.0))

    async def _poll(self) -> None:
        runs = list(self._runs.values())
        listed = await self._listing.ask({run.name for run in runs})
        left = self._server.client.budget.free(Turn.IDLE)
        for run in runs:
            if run.job.id not in self._runs:
                continue  # it has ended meanwhile
            summary = listed.get(run.name)
            if summary is None or run.is_news(summary):
                self._pending[run.job.id] = run
            elif left > 0 and _is_due(run):
                left -= 1
                self._due[run.job.id] = run
        if self._pending or self._due:
            self._work.set()

    async def _look_on(self) -> None:
        while True:
            while not self._pending and not self._due:  # it may be set although nothing is to be looked at
                self._work.clear()
                await self._work.wait()
            if self._pending:
                run = min(self._pending.values(), key=_urgency)
                del self._pending[run.job.id]
                self._due.pop(run.job.id, None)
            else:
                run = self._due.pop(next(iter(self._due)))
                if not self._server.client.budget.free(Turn.IDLE):
                    self._due.clear()  # the next list brings up what is due then
                    continue
            try:
                await self._look(run, crowd=len(self._pending) >= _CROWD)
            except PaiError as error:
                # The next list brings it up again.
                run.summary = None
                _log.debug("job %s: %s", run.name, error)
            except Exception:  # one odd job must not keep the others back
                _log.exception("job %s", run.name)

    async def _look(self, run: JobRun, *, crowd: bool) -> None:
        summary = run.summary
        ended_well = summary is not None and summary.state in ("SUCCEEDED", "STOPPED")
        if summary is not None and ended_well and (crowd or not self._server.client.budget.free(Turn.NEWS)):
            await self._take(run, summary, None)
            return
        path = await self._server.path(run.name)
        try:
            data = mapping(await self._server.client.call("GET", path, turn=Turn.NEWS))
        except PaiError as error:
            if error.status == 404:
                await self._miss(run)
                return
            if error.status != 500 or summary is None:
                raise
            await self._take(run, summary, None)  # there are jobs whose detail never can be read (1.2, ports)
            return
        detail = detail_of(data)
        run.misses = 0
        run.summary = summary = summary or detail.summary
        run.looked_at = time.monotonic()
        await self._earlier_attempts(run, detail, path)
        if summary.state == "WAITING" and detail.summary.state == "WAITING":
            await self._ask_events(run, path)
        # The detail is the newer one, unless it makes no sense: an end is never taken back.
        if summary.is_final and not detail.summary.is_final:
            run.unlike += 1
            if run.unlike < _MISSES:
                run.summary = None  # the next list brings it up again
                return
            await self._take(run, summary, None)
        else:
            await self._take(run, detail.summary if detail.summary.state in KNOWN else summary, detail)

    async def _earlier_attempts(self, run: JobRun, detail: Detail, path: str) -> None:
        """Learn how attempts ended that others have followed since the last look."""
        latest = detail.attempt or 0
        if latest > run.journal.attempt and await self._server.version() < EVENTS_SINCE:
            return
        for number in range(max(run.journal.attempt, latest - _ATTEMPTS), latest):
            try:
                found = await self._server.client.call("GET", f"{path}/attempts/{number}", turn=Turn.NEWS)
            except PaiError as error:
                _log.debug("job %s, attempt %d: %s", run.name, number, error)
            else:
                run.hear_attempt(number, detail_of(mapping(found)))

    async def _ask_events(self, run: JobRun, path: str) -> None:
        if await self._server.version() < EVENTS_SINCE:
            return
        run.events_at = time.monotonic()
        try:
            found = await self._server.client.call("GET", f"{path}/events", turn=Turn.NEWS)
        except PaiError as error:
            _log.debug("events of job %s: %s", run.name, error)
        else:
            run.events = events_of(found)

    async def _take(self, run: JobRun, summary: Summary, detail: Detail | None) -> None:
        if not summary.is_final:
            run.hear(summary, detail)
        elif not run.ending:
            # Its logs and outputs are brought first; that must not keep back what others have become.
            run.ending = True
            self.leave(run)
            end = asyncio.create_task(self._end(run, summary, detail), name=f"openpai end of {run.name}")
            self._ends.add(end)
            end.add_done_callback(self._ends.discard)

    async def _end(self, run: JobRun, summary: Summary, detail: Detail | None) -> None:
        try:
            await run.end(summary, detail, self.before_end)
        except Exception:  # it is followed again, and its end said with the next list
            _log.exception("end of job %s", run.name)
            run.ending, run.summary = False, None
            self.join(run)

    async def _miss(self, run: JobRun) -> None:
        if time.monotonic() - run.born < _YOUNG and run.summary is None:
            return
        run.misses += 1
        if run.misses >= _MISSES:
            message = f"The cluster no longer knows job `{run.name}`: somebody deleted it."
            await run.finish("failed", "lost", message)
            self.leave(run)
        else:
            self._wake.set()


def _is_due(run: JobRun) -> bool:
    """Say whether a job is looked at, as calls are left, although the list says nothing new of it."""
    if run.from_list:
        return True
    now = time.monotonic()
    if run.summary is None or run.summary.state == "WAITING":
        return now - run.events_at > _EVENTS_EVERY
    several = run.detail is not None and len(run.detail.tasks) > 1
    return several and now - run.looked_at > _AGAIN


def _urgency(run: JobRun) -> tuple[bool, float]:
    summary = run.summary
    return (not (summary is not None and summary.is_final), run.looked_at)
