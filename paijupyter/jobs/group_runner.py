"""What a group does by itself: submits its experiments, no more at once than it may, and stops in time.

All that it has done is in the folders of the group and of its jobs, so that another process goes on where
this one was killed: the request id of an experiment's job is made of group, round and key.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from paijupyter.backends.base import FINAL
from paijupyter.errors import PaiJupyterError
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.clock import now
from paijupyter.jobs.ending import Endings
from paijupyter.jobs.group import Entry, Group, of_request, request_of
from paijupyter.jobs.group_request import request_from
from paijupyter.jobs.request import Request
from paijupyter.jobs.secrets import SecretStore
from paijupyter.jobs.submission import Submissions

_log = logging.getLogger(__name__)
AT_A_TIME = 500  # jobs of one call to the backend: alike ones can be one object there
_PAUSES = (0.5, 60.0)  # seconds before what could not be submitted just now is tried again


class GroupRunner:
    """Runs groups, each in a task of its own.

    Args:
        catalog: where jobs are kept.
        submissions: makes jobs.
        endings: stops and deletes them.
        secrets: keeps the values of a group's secrets until all of its jobs are made.
        told: called with a group of which something has changed.
    """

    def __init__(
        self,
        catalog: Catalog,
        submissions: Submissions,
        endings: Endings,
        secrets: SecretStore,
        told: Callable[[Group], None],
    ) -> None:
        self._catalog = catalog
        self._submissions = submissions
        self._endings = endings
        self._secrets = secrets
        self._told = told
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def busy(self) -> int:
        """How many groups have something to do."""
        return len(self._tasks)

    def ensure(self, group: Group) -> None:
        """See to it that a group goes on until it is settled."""
        group.news.set()
        task = self._tasks.get(group.id)
        if task is None or task.done():
            task = asyncio.create_task(self._run(group), name=f"group {group.record.name}")
            self._tasks[group.id] = task
            task.add_done_callback(lambda done: self._done(group.id, done))

    async def stop(self, group: Group, by: str) -> None:
        """Let nothing more begin; end what has begun, or of a failing group only what waits.

        Raises:
            PaiJupyterError: what could not be stopped, all of it in ``problems``.
        """
        if not group.stopped_by:
            await self._note(group, {"type": "stop", "at": now(), "by": by})
        wanted = [
            each.job
            for each in group.entries.values()
            if each.job and each.state not in FINAL and (by == "user" or not each.started)
        ]
        await self._all(wanted, self._endings.stop)
        group.news.set()

    async def forget(self, group: Group, keys: list[str]) -> None:
        """Stop and delete the jobs of experiments, all rounds of them; what is not there is no failure (T7).

        Raises:
            PaiJupyterError: what could not be stopped or deleted.
        """
        await self._note(group, {"type": "forget", "at": now(), "keys": keys})
        wanted = [
            row.id
            for row in self._catalog.index.of_group(group.id)
            if of_request(row.request_id or "")[1] in keys
        ]
        await self._all(wanted, self._remove)

    async def close(self) -> None:
        """Let go of all groups; the next start goes on with them."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, group: Group) -> None:
        pause = _PAUSES[0]
        if group.stopped_by == "user":
            await self._stop_again(group)  # of an earlier process, which may not have come to all of it
        while not group.is_settled:
            group.news.clear()
            if group.is_failing or group.stopped_by == "failures":
                await self._stop_failing(group)
            ready = group.ready(AT_A_TIME)
            if ready and await self._start(group, ready):
                pause = _PAUSES[0]
            elif ready:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _PAUSES[1])
            elif not group.is_settled:
                await group.news.wait()
        await self._settle(group)

    async def _stop_failing(self, group: Group) -> None:
        waiting = any(
            each.job and each.state not in FINAL and not each.started for each in group.entries.values()
        )
        if not group.stopped_by or waiting:
            await self._stop_again(group)

    async def _stop_again(self, group: Group) -> None:
        try:
            await self.stop(group, group.stopped_by or "failures")
        except PaiJupyterError as error:
            _log.warning("group %s is not stopped yet: %s", group.record.name, error)
            await asyncio.sleep(_PAUSES[0])
            group.news.set()

    async def _start(self, group: Group, entries: list[Entry]) -> bool:
        """Submit experiments; False if they have to be tried again later."""
        number, values = group.number, await asyncio.to_thread(self._secrets.get, group.id)
        base = request_from(group.settings, values or {})
        documents = await asyncio.to_thread(group.record.documents, number)
        try:
            if group.settings.get("replace"):
                await self._remove_former(group, entries)
            requests = [_request(base, group, each, documents[each.key]) for each in entries]
            outcomes = await self._submissions.submit_many(requests)
        except PaiJupyterError as error:
            return await self._not_now(group, entries, error)
        trouble, gone = None, list[str]()
        for entry, outcome in zip(entries, outcomes, strict=True):
            if isinstance(outcome, tuple):
                entry.job = outcome[0]
                self._take_state(entry)
                if group.entries.get(entry.key) is not entry:
                    gone.append(outcome[0])
            elif outcome.status >= 500:
                trouble = outcome
            else:
                await self._refuse(group, entry, outcome)
        # What was taken back or stopped while its job was being made.
        await self._all(gone, self._remove)
        if group.stopped_by:
            await self._stop_again(group)
        if trouble is not None:
            return await self._not_now(group, [], trouble)
        group.trouble = ""
        self._told(group)
        return True

    async def _not_now(self, group: Group, entries: list[Entry], error: PaiJupyterError) -> bool:
        if error.status < 500:
            for entry in entries:
                await self._refuse(group, entry, error)
            self._told(group)
            return True
        _log.warning("group %s: %s", group.record.name, error)
        group.trouble = str(error)
        self._told(group)
        return False

    async def _refuse(self, group: Group, entry: Entry, error: PaiJupyterError) -> None:
        """Note why an experiment has no job: it has failed, and the others go on."""
        problem = {"code": error.code, "message": error.message, "hint": error.hint}
        await self._note(
            group,
            {"type": "refused", "at": now(), "round": entry.round, "key": entry.key, "problem": problem},
        )

    async def _remove_former(self, group: Group, entries: list[Entry]) -> None:
        """Stop and delete the jobs of earlier rounds, before there are others in their place (T5)."""
        keys = {each.key for each in entries}
        former = []
        for row in self._catalog.index.of_group(group.id):
            number, key = of_request(row.request_id or "")
            if key in keys and number < group.number:
                former.append(row.id)
        await self._all(former, self._remove)

    async def _remove(self, job: str) -> None:
        await self._endings.stop(job)
        live = self._catalog.live.get(job)
        if live is not None:
            await live.ended.wait()
        await self._endings.delete(job)

    async def _all(self, jobs: list[str], act: Callable[[str], Awaitable[object]]) -> None:
        """Do something with jobs side by side; one that is gone already is no failure."""
        done = await asyncio.gather(*map(act, jobs), return_exceptions=True)
        failed = [each for each in done if isinstance(each, BaseException)]
        for each in failed:
            if not isinstance(each, PaiJupyterError):
                raise each
        against = [each for each in failed if isinstance(each, PaiJupyterError) and each.status != 404]
        if against:
            more = f" ({len(against) - 1} more)" if len(against) > 1 else ""
            raise PaiJupyterError(
                against[0].code, f"{against[0].message}{more}", against[0].hint, against[0].status
            )

    async def _note(self, group: Group, event: Mapping[str, Any]) -> None:
        await asyncio.to_thread(group.record.append, event)
        group.take(event)
        self._told(group)

    def _take_state(self, entry: Entry) -> None:
        row = self._catalog.index.get(entry.job or "")
        if row is not None:
            entry.state, entry.started = row.state, bool(row.view.get("startedAt"))

    async def _settle(self, group: Group) -> None:
        """Keep what a settled group is, and no values of its secrets."""
        if group.is_removed:
            return
        group.ended_at = group.ended_at or now()
        self._secrets.remove(group.id)
        view = {**group.view(mine=True), "eventsSize": group.record.size}
        with contextlib.suppress(OSError):  # it can be made anew from the events
            await asyncio.to_thread(group.record.keep_view, view)
        self._told(group)

    def _done(self, group: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(group) is task:
            del self._tasks[group]
        if not task.cancelled() and (error := task.exception()):
            _log.error("group %s cannot go on", group, exc_info=error)


def _request(base: Request, group: Group, entry: Entry, document: Mapping[str, str]) -> Request:
    return replace(
        base,
        document=document["document"],
        request_id=request_of(group.id, entry.round, entry.key),
        resume_from=entry.resume,
        group={"id": group.id, "name": group.record.name, "key": entry.key},
    )
