"""All jobs: folders on disk, unfinished ones of this host in memory, an index over both, and news to readers.

Whatever changes a job goes through :meth:`Catalog.append`: onto the disk first, then into memory, index and
event stream.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paijupyter.errors import Conflict, NotFound
from paijupyter.jobs import folders
from paijupyter.jobs import record as records
from paijupyter.jobs.events import EventBus
from paijupyter.jobs.host import Host
from paijupyter.jobs.identity import not_before
from paijupyter.jobs.index import Index, Row
from paijupyter.jobs.life import Life
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.record import Beginning, BrokenRecord, Event
from paijupyter.jobs.view import at_this_moment

_log = logging.getLogger(__name__)
_LOOK_AGAIN = 2.0  # seconds between two looks for what other hosts did on a shared home
_KEPT_FINAL = 32
_TOLD_PLACES = 20


class Catalog:
    """The jobs of one data folder.

    Args:
        data: the data folder.
        host: this machine.
        bus: where changes are published.
        on_final: called with a job's id when it has become final, before anybody hears of it.

    Attributes:
        before_final: called, off the loop, with a job whose end is about to be written.
        after_final: called with a job that has become final, once readers have heard of it.
        on_told: called with a job of which something was just published.
    """

    def __init__(self, data: Path, host: Host, bus: EventBus, on_final: Callable[[str], None]) -> None:
        self.folder = data / "jobs"
        self.host = host
        self.live: dict[str, LiveJob] = {}
        self.before_final: Callable[[LiveJob], None] = lambda live: None
        self.after_final: Callable[[LiveJob], None] = lambda live: None
        self.on_told: Callable[[LiveJob], None] = lambda live: None
        self.broken: dict[str, str] = {}
        self.stale: dict[str, str] = {}
        self._data = data
        self._bus = bus
        self._on_final = on_final
        self._index: Index | None = None
        self._unsaved: dict[str, Row] = {}
        self._final: OrderedDict[str, LiveJob] = OrderedDict()
        self._looked = 0.0

    @property
    def index(self) -> Index:
        """The open index, with all that has happened so far."""
        if self._index is None:
            raise RuntimeError("the job service is not started")
        if self._unsaved:
            self._write_unsaved()
        return self._index

    async def open(self) -> None:
        """Open the index, make it agree with the folders, and load this host's unfinished jobs."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._index = Index(self._data, self.host, self._rows)
        await asyncio.to_thread(folders.sweep, self.folder)
        known = self.index.sizes()
        there = await asyncio.to_thread(records.folder_names, self.folder)
        not_before(max(there, default=""))
        self.index.remove(known.keys() - there)
        # What the index calls final stays so; all else is read from its folder, which knows better.
        wanted = [job for job in sorted(there) if known.get(job) is not None or job not in known]
        for job in await asyncio.to_thread(self._read_all, wanted):
            if not job.life.final and self.host.owns(job.record.facts):
                self.live[job.record.id] = job
            self._save(job)
        self._looked = time.monotonic()

    async def rebuild(self) -> None:
        """Make the index anew from the folders."""
        rows = await asyncio.to_thread(self._rows)
        self.index.remove(self.index.sizes())
        self.index.put(rows)

    def _rows(self) -> list[Row]:
        """Return all rows of the index as the folders have them."""
        found = self._read_all(sorted(records.folder_names(self.folder)))
        return [self.live.get(job.record.id, job).row() for job in found]

    def close(self) -> None:
        """Close the index."""
        if self._index is not None:
            self._write_unsaved()
            self._index.close()
            self._index = None

    async def add(self, jobs: Sequence[tuple[LiveJob, Beginning]]) -> None:
        """Make the folders of jobs, then show them.

        Raises:
            OSError: if they cannot be written; then none of them is there.
        """
        await asyncio.to_thread(records.create, [(job.record, beginning) for job, beginning in jobs])
        for job, beginning in jobs:
            job.life = Life().after(beginning.first)
            self.live[job.record.id] = job
            self._save(job)
            self._publish(job)

    async def append(self, job: str, event: Event) -> None:
        """Add an event to an unfinished job of this host; one that changes nothing is dropped.

        Raises:
            OSError: if it cannot be written; then nobody hears of it.
        """
        live = self.live.get(job)
        if live is None:
            return
        async with live.lock:
            after = live.life.after(event)
            if after == live.life or job not in self.live:
                return
            await asyncio.to_thread(self._write, live, event, after)
            # From here on without a pause: nobody sees one half of it.
            leaves = _queued(live.life) and not _queued(after)
            live.life = after
            if after.final:
                self._let_go(job)
            self._save(live)
            if after.final:
                self.live.pop(job, None)
                self._remember(live)
            live.tell()
            self._publish(live)
            if leaves:
                self._publish_queue(live.record.profile)
            if after.final:
                self.after_final(live)

    def _write(self, live: LiveJob, event: Event, after: Life) -> None:
        """Write an event, and read what the job has written where it may have written something."""
        if after.final and not live.life.final:
            self.before_final(live)
        live.record.append(event, durable=_matters(live.life, after))
        if after.state != "waiting" or after.attempt != live.life.attempt:
            live.look(after)

    async def annotate(self, live: LiveJob, event: Event) -> None:
        """Add an event to a final job that leaves its state as it is."""
        async with live.lock:
            try:
                await asyncio.to_thread(live.record.append, event, durable=True)
            except FileNotFoundError:
                return  # it was deleted meanwhile
            live.life = live.life.after(event)
            self._save(live)
            self._publish(live)

    async def remove(self, job: str) -> None:
        """Remove a job's folder and everything that is known of it."""
        live = self.live.pop(job, None)
        self._final.pop(job, None)
        await asyncio.to_thread(folders.remove, self.folder / job)
        self._unsaved.pop(job, None)
        self.index.remove([job])
        if live is not None:
            live.ended.set()
        self._bus.forget_passing(job)
        self._bus.publish({"type": "deleted", "id": job})

    def find(self, ref: str, *, folder: str | None = None, kernel: str | None = None) -> Row:
        """Return the job of an id, a full name, a short name (the latest), or ``last``.

        Raises:
            NotFound: if there is none.
        """
        self.look_around()
        if ref == "last":
            row = self._last(folder, kernel)
            if row is None:
                raise NotFound("Job", "last", "Nothing was submitted from here yet; see: list.")
            return row
        row = self.index.find(ref)
        if row is None:
            raise NotFound("Job", ref, "See what there is with: list.")
        return row

    def job(self, row: Row) -> LiveJob:
        """Return a job with its tasks: from memory, or read from its folder.

        Raises:
            Conflict: ``record-broken`` if the folder cannot be read.
        """
        found = self.live.get(row.id) or self._final.get(row.id)
        if found is None:
            try:
                found = LiveJob.read(records.read(self.folder / row.id))
            except BrokenRecord as error:
                raise Conflict("record-broken", f"Job `{row.name}` cannot be read: {error}.") from error
            if found.life.final:
                self._remember(found)
        return found

    def view(self, row: Row) -> dict[str, Any]:
        """Return the view of a job as it is now."""
        live = self.live.get(row.id)
        if live is not None:
            return self._now(live)
        row = self._unsaved.get(row.id, row)
        return at_this_moment(row.view, mine=row.host == self.host.name)

    def unfinished(self, profile: str | None = None) -> list[LiveJob]:
        """Return this host's unfinished jobs, oldest first."""
        return [
            self.live[job] for job in sorted(self.live) if profile in (None, self.live[job].record.profile)
        ]

    def set_stale(self, profile: str, since: str | None) -> None:
        """Note since when a profile does not answer, or that it does again."""
        if since is None:
            if self.stale.pop(profile, None) is None:
                return
        elif profile in self.stale:
            return
        else:
            self.stale[profile] = since
        for live in self.unfinished(profile):
            self._publish(live)

    def publish(self, live: LiveJob) -> None:
        """Tell readers of something that is no event, for example new metrics."""
        self._bus.publish_passing(live.record.id, {"type": "job", "job": self._now(live)})

    def look_around(self) -> None:
        """Take in what other hosts have done on a shared home; at most every two seconds."""
        if time.monotonic() - self._looked < _LOOK_AGAIN:
            return
        self._looked = time.monotonic()
        known, there = self.index.sizes(), records.folder_names(self.folder)
        for job in known.keys() - there - self.live.keys():
            self.index.remove([job])
            self._bus.publish({"type": "deleted", "id": job})
        fresh = [job for job in sorted(there - self.live.keys()) if self._is_news(job, known)]
        for found in self._read_all(fresh):
            self._save(found)
            self._publish(found)

    def _is_news(self, job: str, known: Mapping[str, int | None]) -> bool:
        if job not in known:
            return job not in self.broken
        size = known[job]
        if size is None:
            return False
        try:
            return (self.folder / job / "events.jsonl").stat().st_size != size
        except OSError:
            return False

    def _read_all(self, jobs: Iterable[str]) -> list[LiveJob]:
        found = []
        for job in jobs:
            try:
                found.append(LiveJob.read(records.read(self.folder / job)))
                self.broken.pop(job, None)
            except (BrokenRecord, OSError, KeyError, TypeError, ValueError) as error:
                self.broken[job] = str(error)
                _log.warning("job folder %s is left out: %s", job, error)
        return found

    def _last(self, folder: str | None, kernel: str | None) -> Row | None:
        if kernel is not None and (row := self.index.latest("kernel", kernel)):
            return row
        if folder is not None:
            return self.index.latest("folder", folder)
        return None if kernel is not None else self.index.latest("all")

    def _let_go(self, job: str) -> None:
        try:
            self._on_final(job)
        except OSError:
            _log.exception("what job %s left behind could not be removed", job)

    def _remember(self, job: LiveJob) -> None:
        self._final[job.record.id] = job
        self._final.move_to_end(job.record.id)
        while len(self._final) > _KEPT_FINAL:
            self._final.popitem(last=False)

    def _save(self, job: LiveJob) -> None:
        """Write a job's row, together with all that change at this moment.

        The index may fail: the folder has it all, and the row is tried again.
        """
        if not self._unsaved:
            asyncio.get_running_loop().call_soon(self._write_unsaved)
        self._unsaved[job.record.id] = job.row()

    def _write_unsaved(self) -> None:
        if self._index is None:
            return
        try:
            self._index.put(self._unsaved.values())
        except sqlite3.Error:
            _log.exception("the index could not be written")
        else:
            self._unsaved.clear()

    def _publish(self, job: LiveJob) -> None:
        self._bus.forget_passing(job.record.id)
        self.on_told(job)
        self._bus.publish({"type": "job", "job": self._now(job)})

    def _publish_queue(self, profile: str) -> None:
        """Tell those in front of their new place; further back it is in lists, and not worth an event."""
        queued = [live for live in self.unfinished(profile) if _queued(live.life)]
        for live in queued[:_TOLD_PLACES]:
            self._publish(live)

    def _now(self, live: LiveJob) -> dict[str, Any]:
        return at_this_moment(
            live.view(),
            mine=live.record.id in self.live or self.host.owns(live.record.facts),
            stale_since=None if live.life.final else self.stale.get(live.record.profile),
            position=self._position(live),
        )

    def _position(self, live: LiveJob) -> int | None:
        """Place in the profile's queue, from 1; None for a job that is in no queue."""
        if not _queued(live.life) or live.record.id not in self.live:
            return None
        return 1 + sum(
            other.record.id < live.record.id and _queued(other.life)
            for other in self.live.values()
            if other.record.profile == live.record.profile
        )


def _queued(life: Life) -> bool:
    return (life.state, life.reason) == ("waiting", "queued")


def _matters(before: Life, after: Life) -> bool:
    """Whether a step must be on the disk before anybody hears of it; mere news of tasks need not."""

    def facts(life: Life) -> tuple[Any, ...]:
        return (life.state, life.reason, life.attempt, life.submitted, life.stopped_by)

    return facts(before) != facts(after)
