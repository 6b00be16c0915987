"""From a request to a job: once, whole or not at all, and found again after a crash.

Order matters. Secrets are put aside first, then the job's folder appears in one step, then the backend takes
the job, then ``submitted`` is noted. Killed after any of these, the next start removes orphaned secrets, or
finds a folder without ``submitted`` and hands it over again, which a backend does once per id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from paijupyter.backends.base import Job
from paijupyter.errors import Conflict, InvalidDocument, PaiJupyterError
from paijupyter.jobs import record as records
from paijupyter.jobs import sources
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.checkpoints import bring
from paijupyter.jobs.clock import now
from paijupyter.jobs.fetching import DataFailed, Fetching
from paijupyter.jobs.host import Host
from paijupyter.jobs.keyring import from_keyring
from paijupyter.jobs.life import Life
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.planning import Planner, Prepared, output_globs, role_facts, secret_names, with_package
from paijupyter.jobs.record import Record
from paijupyter.jobs.request import Request
from paijupyter.jobs.secrets import Given, SecretStore, masked
from paijupyter.jobs.view import json_safe
from paijupyter.jobs.watchers import Backends, Watchers, own_change
from paijupyter.protocol import read, with_suffix

_log = logging.getLogger(__name__)
_RETRY_PAUSES = (1.0, 60.0)
Result = tuple[str, bool]


class Submissions:
    """Makes jobs of requests.

    Args:
        catalog: where jobs are kept.
        planner: makes requests ready.
        backends: who takes jobs.
        watchers: who listens for what becomes of them.
        secrets: where secret values wait.
        fetching: fetches data that tasks cannot fetch.
        stop: stops an unfinished job by its id, for the mode ``replace``.
    """

    def __init__(
        self,
        catalog: Catalog,
        planner: Planner,
        backends: Backends,
        watchers: Watchers,
        secrets: SecretStore,
        fetching: Fetching,
        stop: Callable[[str], Awaitable[object]],
    ) -> None:
        self._catalog = catalog
        self._planner = planner
        self._backends = backends
        self._watchers = watchers
        self._secrets = secrets
        self._fetching = fetching
        self._stop = stop
        self._gate = asyncio.Lock()
        self._requests: dict[str, asyncio.Task[Result]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def busy(self) -> int:
        """Number of submissions that are not done."""
        return len(self._tasks)

    async def submit(self, request: Request) -> Result:
        """Submit a job, or find the one that this request stands for.

        It goes on if the caller is cancelled: an interrupted surface asks again with the same request id.

        Returns:
            The id of the job and whether it is new.

        Raises:
            InvalidDocument: with all problems of the plan.
            Conflict: ``package-missing`` or ``secrets-needed``.
        """
        if request.request_id is None:
            return await asyncio.shield(self._task(self._submit(request)))
        row = self._catalog.index.by_request(request.request_id)
        running = self._requests.get(request.request_id)
        if running is None and row is not None:
            return row.id, False
        if running is not None:
            return (await asyncio.shield(running))[0], False
        task = self._task(self._submit(request))
        self._requests[request.request_id] = task
        task.add_done_callback(lambda _: self._requests.pop(request.request_id or "", None))
        return await asyncio.shield(task)

    async def resume(self, live: LiveJob) -> None:
        """Hand over a job of an earlier process that no backend has confirmed; tries until it is decided."""
        pause = _RETRY_PAUSES[0]
        while not live.life.final and not live.life.submitted:
            try:
                values = await self._values_again(live)
                if values is None:
                    return
                job = await asyncio.to_thread(self.to_job, live)
                live.job = await self._fetching.provide(live, job)
                await self._hand_over(live, values)
                return
            except DataFailed as error:
                await self._catalog.append(live.record.id, own_change("failed", "data", str(error)))
                return
            except PaiJupyterError as error:
                if error.status < 500:
                    await self._catalog.append(live.record.id, own_change("failed", "refused", str(error)))
                    return
                _log.warning("job %s is not handed over yet: %s", live.record.id, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _RETRY_PAUSES[1])

    def resume_later(self, live: LiveJob) -> None:
        """Do :meth:`resume` in the background."""
        self._task(self.resume(live))

    async def give(self, live: LiveJob, given: Given) -> None:
        """Give a job that waits for values of its secrets those values again, and let it go on.

        Raises:
            Conflict: ``no-secret-needed`` or ``secrets-needed``.
        """
        record, life = live.record, live.life
        waits = (life.state, life.reason) == ("waiting", "secret")
        if not waits or record.id not in self._catalog.live:
            raise Conflict("no-secret-needed", f"Job `{record.facts['name']}` does not wait for a secret.")
        names = list(record.facts.get("secretNames") or ())
        kept = await asyncio.to_thread(self._secrets.get, record.id) or {}
        missing = [name for name in names if name not in kept and name not in given.references]
        references = record.facts.get("secretRefs") or {}
        again = Given({name: {"reference": references.get(name, "ask")} for name in missing})
        values = {**kept, **await given.resolve(names), **await again.resolve(names)}
        await asyncio.to_thread(self._secrets.put, record.id, values)
        await self._hand_over(live, values)

    async def close(self) -> None:
        """Let go of what is under way; the next start takes it up."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def to_job(self, live: LiveJob) -> Job:
        """Return what a backend is told of a job, from memory or read from its folder."""
        if live.job is None:
            live.job = read_job(live.record, self._planner)
        return live.job

    # -- one submission ---------------------------------------------------------------------------------

    async def _submit(self, request: Request) -> Result:
        # A request that names its package can be recognised without reading its document.
        twin = self._twin(request, request.package) if request.package else None
        if twin is not None:
            return twin, False
        prepared = await self._planner.prepare(request)
        if prepared.package_missing:
            problem = next(each for each in prepared.problems if each.code == "package-missing")
            raise Conflict(problem.code, problem.message, problem.hint)
        if not prepared.ok or prepared.job is None:
            raise InvalidDocument(prepared.problems)
        values = await request.secrets.resolve(secret_names(prepared.data))
        if request.mode == "replace":
            await self._stop_former(request, prepared.short)
        async with self._gate:
            package = prepared.job.package.sha256 if prepared.job.package else None
            twin = self._twin(request, package)  # a double click: the other one was faster
            if twin is not None:
                return twin, False
            live = await self._create(request, prepared, values)
        if await self._fetching.is_needed(prepared.job):
            await self._fetching.announce(live)
            self.resume_later(live)
            return live.record.id, True
        try:
            await self._hand_over(live, values)
        except PaiJupyterError:
            await self._take_back(live)
            raise
        return live.record.id, True

    def _twin(self, request: Request, package: str | None) -> str | None:
        """Return the unfinished job of the same cell with the same content."""
        key = request.context.cell_key
        if request.mode != "normal" or key is None:
            return None
        for row in self._catalog.index.unfinished_of_cell(key):
            live = self._catalog.live.get(row.id)
            if live is None or live.life.stopped_by:
                continue
            facts = live.record.facts
            same_hash = (facts.get("cell") or {}).get("hash") == (request.context.cell or {}).get("hash")
            if same_hash and facts.get("packageSha256") == package:
                return row.id
        return None

    async def _stop_former(self, request: Request, short: str) -> None:
        """Stop the unfinished jobs of the same cell, or else of the same name and folder."""
        key, index = request.context.cell_key, self._catalog.index
        rows = index.unfinished_of_cell(key) if key else index.unfinished_named(short, request.context.folder)
        for row in rows:
            if row.id in self._catalog.live:
                await self._stop(row.id)

    async def _create(self, request: Request, prepared: Prepared, values: Mapping[str, str]) -> LiveJob:
        job, plan = prepared.job, prepared.plan
        if job is None or plan is None:
            raise RuntimeError("only what was planned is created")
        submitted = plan.submitted
        while self._catalog.index.find(job.name) is not None:
            job, former = replace(job, name=with_suffix(prepared.short)), job.name
            job = replace(job, document={**job.document, "name": job.name})
            submitted = submitted.replace(former, job.name)
        record = Record(job.folder, _facts(request, prepared, job, self._catalog.host))
        live = LiveJob(record, Life(), job)
        first = {"type": "created", "at": record.facts["submittedAt"]}
        await asyncio.to_thread(self._secrets.put, job.id, values)
        try:
            await self._catalog.add(live, request.document, submitted, job.commands, first)
        except OSError as error:
            self._secrets.remove(job.id)
            raise PaiJupyterError(
                "record-not-written",
                f"Job `{job.name}` cannot be recorded: {error.strerror or error}.",
                f"See that there is room and permission in `{job.folder.parent}`.",
                507,
            ) from error
        return live

    async def _hand_over(self, live: LiveJob, values: Mapping[str, str]) -> None:
        """Give a job to its backend and note that it was taken."""
        job, profile = await asyncio.to_thread(self.to_job, live), live.record.profile
        async with live.turn:
            if live.life.final:
                return  # stopped before it got this far
            mark = self._watchers.mark(profile)
            earlier = live.record.facts.get("resumedFrom")
            if earlier:
                await asyncio.to_thread(bring, self._catalog.folder, earlier["id"], job.folder)
            try:
                backend = await self._backends.of(profile)
                await backend.submit(job, values)
            except PaiJupyterError:
                raise
            except Exception as error:
                said = masked(f"{type(error).__name__}: {error}", values.values())
                _log.error("profile %s did not take job %s: %s", profile, job.id, said)
                raise PaiJupyterError(
                    "backend-failed", f"Profile `{profile}` did not take the job: {said}", "Try again.", 502
                ) from None
            await self._catalog.append(job.id, {"type": "submitted", "at": now()})
            self._watchers.include(profile, mark)

    async def _take_back(self, live: LiveJob) -> None:
        self._secrets.remove(live.record.id)
        await self._catalog.remove(live.record.id)

    async def _values_again(self, live: LiveJob) -> dict[str, str] | None:
        """Return the secrets of a job after a restart, or None once it is noted that it waits for them."""
        record = live.record
        names = list(record.facts.get("secretNames") or ())
        values = await asyncio.to_thread(self._secrets.get, record.id) if names else {}
        if values is not None and not set(names) - values.keys():
            return values
        references = record.facts.get("secretRefs") or {}
        try:
            found = await Given({name: {"reference": references.get(name, "ask")} for name in names}).resolve(
                names
            )
        except PaiJupyterError as error:
            waits = own_change("waiting", "secret", f"{error.message} {error.hint}".strip())
            await self._catalog.append(record.id, waits)
            return None
        await asyncio.to_thread(self._secrets.put, record.id, found)
        return found

    def _task(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, PaiJupyterError):
            _log.error("submission failed: %s", type(error).__name__, exc_info=error)


async def restore_secrets(live: LiveJob, store: SecretStore) -> None:
    """Fetch what a restart of the machine has taken and the keyring still has."""
    record = live.record
    names = list(record.facts.get("secretNames") or ())
    if not names or store.get(record.id) is not None:
        return
    references = record.facts.get("secretRefs") or {}
    if not all(str(references.get(name, "")).startswith("keyring:") for name in names):
        return
    try:
        values = {name: await from_keyring(name, references[name].partition(":")[2]) for name in names}
    except PaiJupyterError as error:
        _log.warning("secrets of job %s: %s", record.id, error)
        return
    await asyncio.to_thread(store.put, record.id, values)


def read_job(record: Record, planner: Planner) -> Job:
    """Build what a backend is told of a job from its folder alone.

    Raises:
        PaiJupyterError: if the document can no longer be read.
    """
    facts = record.facts
    data: dict[str, Any] = dict(read(record.source).data)
    sha256 = facts.get("packageSha256")
    if sha256:
        data = with_package(data, sha256)
    return Job(
        id=record.id,
        name=facts["name"],
        user=facts.get("user") or "",
        folder=record.folder,
        document={**data, "name": facts["name"]},
        commands=record.commands,
        package=planner.package(sha256),
        python=facts.get("python"),
        data=sources.again(data, facts, record.folder, planner.package),
    )


def _facts(request: Request, prepared: Prepared, job: Job, host: Host) -> dict[str, Any]:
    context, profile, earlier = request.context, prepared.profile, prepared.earlier
    names = secret_names(prepared.data)
    return {
        "schema": records.SCHEMA,
        "id": job.id,
        "name": job.name,
        "shortName": prepared.short,
        "profile": profile.name if profile else None,
        "kind": profile.kind if profile else None,
        "user": job.user,
        "host": host.name,
        "bootId": host.boot_id,
        "pidNamespace": host.namespace,
        "submittedAt": now(),
        "requestId": request.request_id,
        "packageSha256": job.package.sha256 if job.package else None,
        "python": context.python,
        "folder": context.folder,
        "notebook": context.notebook,
        "cell": dict(context.cell) if context.cell else None,
        "surface": context.surface,
        "kernel": context.kernel,
        "roles": role_facts(prepared.data),
        "parameters": json_safe(prepared.data.get("parameters") or {}),
        "secretNames": names,
        "secretRefs": {name: ref for name, ref in request.secrets.references.items() if name in names},
        "clonedFrom": request.cloned_from,
        "resumedFrom": {"id": earlier.id, "name": earlier.name} if earlier else None,
        "data": [sources.summary(each) for each in prepared.sources],
        "dataPackages": sources.packages_of(prepared.sources),
        "outputs": output_globs(prepared.data),
    }
