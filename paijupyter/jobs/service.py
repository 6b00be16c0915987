"""The service: every verb on jobs, for whoever runs it (the engine)."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Place
from paijupyter.data.cache import DataCache
from paijupyter.errors import UsageProblem
from paijupyter.jobs import logs
from paijupyter.jobs.adopting import Adoption
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.ending import Endings
from paijupyter.jobs.entering import Entrances
from paijupyter.jobs.events import EventBus
from paijupyter.jobs.fetching import Fetching
from paijupyter.jobs.freeing import free_room
from paijupyter.jobs.groups import Groups
from paijupyter.jobs.history import History
from paijupyter.jobs.host import this_host
from paijupyter.jobs.job_outputs import JobOutputs
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.looking import Looker
from paijupyter.jobs.merged import Line, merged_log
from paijupyter.jobs.notebooks import bringing_notebooks
from paijupyter.jobs.on_end import Hooks
from paijupyter.jobs.planning import Planner
from paijupyter.jobs.ports import not_open, open_ports
from paijupyter.jobs.profiles import ProfileFiles
from paijupyter.jobs.repeating import request_again
from paijupyter.jobs.request import Context, Request
from paijupyter.jobs.secrets import Given, SecretStore
from paijupyter.jobs.settings import Settings
from paijupyter.jobs.storages import Storages
from paijupyter.jobs.submission import Submissions, restore_secrets
from paijupyter.jobs.tasks import task_page
from paijupyter.jobs.watchers import Backends, Watchers
from paijupyter.jobs.whole_logs import WholeLogs
from paijupyter.package import LocalStore

STATES = ("waiting", "running", "succeeded", "failed", "stopped")
LIMIT = 1000
_GLANCE = 1 << 13  # bytes of a log read while a caller and the whole loop wait; the rest is read beside it


class JobService:
    """All jobs of one user on this host. One process at a time serves a data folder (the engine sees to it).

    A ``ref`` is an id, a full name, a short name (its latest job) or ``last``.

    Args:
        data: the data folder.
        runtime: the private folder for what must not rest, on this host.

    Attributes:
        events: the stream of changes.
        packages: the trainer packages of this host.
        groups: the experiments that belong together.
        storages: the storages of the profiles.
        entrances: the ways into running tasks.
        outputs: what jobs have left.
        adoption: takes over jobs that another host submitted.
        settings: profiles and stored secrets.
        history: what jobs were made of.
        whole_logs: what is asked about logs as a whole.
    """

    def __init__(self, data: Path, runtime: Path) -> None:
        self.events = EventBus()
        self.packages = LocalStore(data)
        self._secrets = SecretStore(runtime / "secrets")
        self._profiles = ProfileFiles()
        self._catalog = Catalog(data, this_host(), self.events, self._secrets.remove)
        place = Place(data, runtime)
        self._backends = Backends(place, self._profiles)
        self.settings = Settings(place, self._profiles, self._backends, self._unfinished_of)
        planner = Planner(
            self._catalog.folder, self.packages, self._profiles, self._backends, self._in_context
        )
        self._planner = planner
        self._sweeping: asyncio.Task[None] | None = None
        self._watchers = Watchers(self._catalog, self._backends, self._to_job)
        self._looker = Looker(self._catalog, self.events, self._backends, self._to_job)
        self._catalog.on_told = self._note
        self._hooks = Hooks(data / "hooks", self._catalog, self._profiles)
        self._catalog.before_final = bringing_notebooks(self._hooks.owe)
        self._catalog.after_final = self._hooks.begin
        self.outputs = JobOutputs(self._catalog)
        self._endings = Endings(
            self._catalog, self._backends, self._watchers, self._to_job, self.outputs.boards
        )
        self._submissions = Submissions(
            self._catalog,
            planner,
            self._backends,
            self._watchers,
            self._secrets,
            Fetching(data, self._catalog, self._profiles, self._secrets),
            self._endings.stop,
        )
        self.groups = Groups(
            data, self._catalog, self.events, planner, self._submissions, self._endings, self._secrets
        )
        self.storages = Storages(self._backends, self._profiles)
        self.adoption = Adoption(self._catalog, self._profiles, self._backends, self._watchers)
        self.entrances = Entrances(self._catalog, self._backends, self._to_job, self.outputs.boards)
        self._cache = DataCache(data)
        self.history = History(self._catalog, self.packages, data, self._submit)
        self.whole_logs = WholeLogs(self._catalog)

    async def start(self) -> None:
        """Open the index, adopt this host's unfinished jobs, and watch their profiles."""
        await self._catalog.open()
        self._looker.start()
        await self.groups.open()
        unfinished = self._catalog.unfinished()
        kept = [*(live.record.id for live in unfinished), *self.groups.unsettled]
        await asyncio.to_thread(self._secrets.keep_only, kept)
        await asyncio.gather(*(restore_secrets(live, self._secrets) for live in unfinished))
        for profile in {live.record.profile for live in unfinished}:
            self._watchers.ensure(profile)
        for live in unfinished:
            if live.life.stopped_by:
                self._endings.stop_later(live)
            elif not live.life.submitted:
                self._submissions.resume_later(live)
        self.groups.resume()
        await self._hooks.resume()
        self._sweeping = asyncio.create_task(
            free_room(self._catalog, self.packages, self._cache, self.groups.packages())
        )

    async def close(self) -> None:
        """Let go of everything; tasks run on."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self._looker.close()
        await self.entrances.close()
        await self.outputs.boards.close()
        await self.groups.close()
        await self._submissions.close()
        await self._endings.close()
        await self._watchers.close()
        await self._hooks.close()
        await self._backends.close()
        self.events.close()
        self._catalog.close()

    def unfinished(self) -> int:
        """Count unfinished jobs of this host, submissions, groups and hooks under way, boards that run."""
        under_way = (self._submissions, self.groups, self._hooks, self.outputs.boards)
        return len(self._catalog.live) + sum(each.busy for each in under_way)

    def _note(self, live: LiveJob) -> None:
        self._looker.note(live)
        self.groups.note(live)

    def _unfinished_of(self, profile: str) -> builtins.list[str]:
        lives = self._catalog.live.values()
        return [str(live.record.facts["name"]) for live in lives if live.record.profile == profile]

    # -- new jobs ---------------------------------------------------------------------------------------

    async def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what submitting would do, with everything that is against it.

        Raises:
            UsageProblem: if it is no submission request at all.
        """
        wish = Request.of(request)
        prepared = await self._planner.prepare(wish)
        profile = prepared.profile.name if prepared.profile else ""
        former = self._catalog.index.latest_succeeded(prepared.short, profile)
        return {
            **prepared.to_json(wish),
            "estimate": prepared.estimate(self._catalog.view(former) if former else None),
        }

    async def submit(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Submit a job.

        Returns:
            Its view, and whether it is new: a repeated request, or a second one of the same cell while its
            job is unfinished, finds the first job.

        Raises:
            InvalidDocument: with all problems of the plan.
            Conflict: ``package-missing`` or ``secrets-needed``.
        """
        return await self._submit(Request.of(request))

    async def retry(self, ref: str, request_id: str | None = None) -> dict[str, Any]:
        """Submit the same document and package as a new job.

        Raises:
            Conflict: ``secrets-needed`` if a secret of it is not in the keyring.
        """
        return await self.clone(ref, {}, request_id)

    async def clone(
        self, ref: str, changes: Mapping[str, Any], request_id: str | None = None
    ) -> dict[str, Any]:
        """Submit a changed copy as a new job.

        Args:
            ref: the job to copy.
            changes: any of ``document``, ``secrets``, ``profile``, ``package`` and ``resumeFrom``, as in a
                submission.
            request_id: makes a repeated call find the first one's job.

        Raises:
            InvalidDocument: with all problems of the plan.
            Conflict: ``secrets-needed`` naming the secrets that must come with the changes.
        """
        record = self._catalog.job(self._catalog.find(ref)).record
        return (await self._submit(request_again(record, changes, request_id)))[0]

    async def give_secrets(self, ref: str, secrets: Mapping[str, Any]) -> dict[str, Any]:
        """Give a job that waits for the values of its secrets those values again.

        Raises:
            Conflict: ``no-secret-needed``, or ``secrets-needed`` naming those that are still missing.
        """
        row = self._catalog.find(ref)
        await self._submissions.give(self._catalog.job(row), Given(secrets))
        return self.get(row.id)

    def _in_context(self, ref: str, context: Context) -> LiveJob:
        return self._catalog.job(self._catalog.find(ref, folder=context.folder, kernel=context.kernel))

    async def _submit(self, request: Request) -> tuple[dict[str, Any], bool]:
        job, created = await self._submissions.submit(request)
        return self.get(job), created

    # -- what there is ----------------------------------------------------------------------------------

    def list(
        self,
        *,
        state: str | None = None,
        profile: str | None = None,
        folder: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        group: str | None = None,
    ) -> dict[str, Any]:
        """Return a page of jobs, latest first: ``{jobs, next, seq}``.

        Args:
            state: one state or several, separated by commas.
            profile: name of a profile.
            folder: folder the jobs were submitted from.
            limit: number of jobs, from 1 to 1000.
            cursor: the ``next`` of the page before.
            group: a group whose jobs are meant; ``-`` for those of no group.
        """
        states = [each for each in (state or "").split(",") if each]
        unknown = [each for each in states if each not in STATES]
        if unknown:
            raise UsageProblem(f"State `{unknown[0]}` does not exist.", f"States: {', '.join(STATES)}.")
        if not 1 <= limit <= LIMIT:
            raise UsageProblem(f"Limit must be from 1 to {LIMIT}.")
        self._catalog.look_around()
        of = None if group is None else "" if group == "-" else str(self.groups.get(group)["id"])
        rows, following = self._catalog.index.page(states, profile, folder, limit, cursor, of)
        return {
            "jobs": [self._catalog.view(row) for row in rows],
            "next": following,
            "seq": self.events.seq,
        }

    def get(self, ref: str, *, folder: str | None = None, kernel: str | None = None) -> dict[str, Any]:
        """Return the view of a job; ``last`` is the kernel's, else the folder's, else the latest of all.

        Raises:
            NotFound: if there is none.
        """
        row = self._catalog.find(ref, folder=folder, kernel=kernel)
        live = self._catalog.live.get(row.id)
        if live is not None:
            self._looker.note_reader()
            live.look(limit=_GLANCE)
        return self._catalog.view(row)

    def tasks(
        self, ref: str, *, attempt: int | None = None, offset: int = 0, limit: int = 100
    ) -> dict[str, Any]:
        """Return a page of a job's tasks, ``{tasks, total}``, in the order of roles and indexes."""
        self._looker.note_reader()
        job = self._job(ref)
        return task_page(job, logs.attempt_of(job, attempt), offset, limit)

    def ports(self, ref: str) -> builtins.list[dict[str, Any]]:
        """Return the open ports of a job, ``{task, label, port, path}`` each.

        Raises:
            Conflict: ``not-running`` if no task of it runs on this host.
        """
        job = self._job(ref)
        if job.record.id not in self._catalog.live or job.life.state != "running":
            raise not_open(job)
        return open_ports(job)

    def export(self, ref: str, what: str) -> str:
        """Return the ``source`` document, byte for byte, or the ``submitted`` one."""
        record = self._job(ref).record
        if what not in ("source", "submitted"):
            raise UsageProblem("Export must be of `source` or `submitted`.")
        return record.source if what == "source" else record.submitted

    # -- logs -------------------------------------------------------------------------------------------

    def log_size(self, ref: str, task: str, attempt: int | None = None) -> int:
        """Return the length of a task's log in bytes.

        Raises:
            NotFound: if there is no such job, task or attempt.
        """
        job = self._job(ref)
        logs.task_of(job, task)
        return logs.log_size(job, task, logs.attempt_of(job, attempt))

    async def logs(
        self, ref: str, task: str, attempt: int | None = None, offset: int = 0, follow: bool = False
    ) -> AsyncIterator[bytes]:
        """Yield a task's log from an offset; with ``follow``, as it grows until the task has ended."""
        job = self._job(ref)
        logs.task_of(job, task)
        number = logs.attempt_of(job, attempt)
        if follow and job.record.id in self._catalog.live:
            chunks = self._follow(job, task, number, offset)
        else:
            end = logs.log_size(job, task, number)
            chunks = logs.stored_log(logs.log_file(job, task, number), offset, end)
        async with aclosing(chunks):  # type: ignore[type-var]  # both are generators
            async for chunk in chunks:
                yield chunk

    async def merged_log(
        self,
        ref: str,
        cursor: str | None = None,
        follow: bool = False,
        tail: int | None = None,
        line: Line | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield ``{task, attempt, offset, text, cursor}`` of all tasks, whole lines wherever possible.

        Args:
            ref: the job.
            cursor: of the last frame the reader had.
            follow: go on until the job is final.
            tail: without a cursor, begin at the last lines of the current attempt.
            line: without these, begin some lines before this one.

        Raises:
            NotFound: if there is no such job, task or attempt.
        """
        job = self._job(ref)
        if line is not None:
            logs.task_of(job, line[1])
            logs.attempt_of(job, line[0])
        follows = follow and job.record.id in self._catalog.live
        opener = (lambda key, attempt, offset: self._follow(job, key, attempt, offset)) if follows else None
        async with aclosing(merged_log(job, opener, cursor, tail, line)) as frames:  # type: ignore[type-var]
            async for frame in frames:
                yield frame

    async def _follow(self, live: LiveJob, task: str, attempt: int, offset: int) -> AsyncIterator[bytes]:
        backend = await self._backends.of(live.record.profile)
        job = await asyncio.to_thread(self._submissions.to_job, live)
        async with aclosing(logs.followed_log(live, job, backend, task, attempt, offset)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                yield chunk

    # -- the end ----------------------------------------------------------------------------------------

    async def stop(self, ref: str) -> dict[str, Any]:
        """Stop a job and return its view; a final one is left as it is.

        Raises:
            Conflict: ``other-host`` if it runs on another host.
        """
        row = self._catalog.find(ref)
        await self._endings.stop(row.id)
        return self.get(row.id)

    async def delete(self, ref: str) -> None:
        """Remove a final job: its record, logs and outputs. Its package may be another job's and stays.

        Raises:
            Conflict: ``not-final``.
        """
        row = self._catalog.find(ref)
        if row.sweep and row.final:
            await self.groups.job_deleted(row.id, row.sweep)
        await self._endings.delete(row.id)

    def _job(self, ref: str) -> LiveJob:
        return self._catalog.job(self._catalog.find(ref))

    def _to_job(self, live: LiveJob) -> Job:
        return self._submissions.to_job(live)
