"""From a request to a job: once, whole or not at all, and found again after a crash.

Order matters. Secrets are put aside first, then the job's folder appears in one step, then the backend takes
the job, then ``submitted`` is noted. Killed after any of these, the next start removes orphaned secrets, or
finds a folder without ``submitted`` and hands it over again, which a backend does once per id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from paijupyter.backends.base import Batching, Job
from paijupyter.errors import Conflict, InvalidDocument, PaiJupyterError
from paijupyter.jobs.alike import AlikePlanner
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.checkpoints import bring
from paijupyter.jobs.clock import now
from paijupyter.jobs.creating import Creations, Wanted
from paijupyter.jobs.fetching import DataFailed, Fetching
from paijupyter.jobs.job_facts import read_job
from paijupyter.jobs.keyring import from_keyring
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.planning import Planner, Prepared, secret_names
from paijupyter.jobs.request import Request
from paijupyter.jobs.secrets import Given, SecretStore, masked
from paijupyter.jobs.watchers import Backends, Watchers, own_change

_log = logging.getLogger(__name__)
_RETRY_PAUSES = (1.0, 60.0)
Result = tuple[str, bool]
Outcome = Result | PaiJupyterError
Recorded = Result | tuple[LiveJob, Mapping[str, str]] | BaseException


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
        self._creations = Creations(catalog, secrets)
        self._alike = AlikePlanner(planner)
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

    async def submit_many(self, requests: Sequence[Request]) -> list[Outcome]:
        """Submit jobs of one profile, each with a request id; one that fails keeps none of the others back.

        A backend that can take many at once gets them in one call; any other gets them side by side.

        Returns:
            For each request its result, or what is against it.
        """
        backend = await self._backends.of(requests[0].profile or "")
        if isinstance(backend, Batching):
            return await asyncio.shield(self._task(self._submit_many(requests, backend)))
        done = await asyncio.gather(*(self.submit(each) for each in requests), return_exceptions=True)
        return [_outcome(each) for each in done]

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
        wanted = await self._wanted(request, prepared)
        if request.mode == "replace":
            await self._stop_former(request, prepared.short)
        async with self._gate:
            package = prepared.job.package if prepared.job else None
            twin = self._twin(
                request, package.sha256 if package else None
            )  # a double click: the other one was faster
            if twin is not None:
                return twin, False
            (live,) = await self._creations.create([wanted])
        if await self._is_fetched_first(live):
            return live.record.id, True
        try:
            await self._hand_over(live, wanted.secrets)
        except PaiJupyterError:
            await self._creations.take_back(live)
            raise
        return live.record.id, True

    async def _wanted(self, request: Request, prepared: Prepared) -> Wanted:
        """Return what is to be made of a request, with the values of its secrets."""
        if prepared.package_missing:
            problem = next(each for each in prepared.problems if each.code == "package-missing")
            raise Conflict(problem.code, problem.message, problem.hint)
        if not prepared.ok or prepared.job is None:
            raise InvalidDocument(prepared.problems)
        return Wanted(request, prepared, await request.secrets.resolve(secret_names(prepared.data)))

    async def _is_fetched_first(self, live: LiveJob) -> bool:
        """Say whether data has to be fetched for a new job; then it is handed over later."""
        if live.job is None or not await self._fetching.is_needed(live.job):
            return False
        await self._fetching.announce(live)
        self.resume_later(live)
        return True

    async def _submit_many(self, requests: Sequence[Request], backend: Batching) -> list[Outcome]:
        """Record all of them, then hand over those that were recorded, in one call."""
        recorded = await self._recorded(requests, backend)
        new = [each for each in recorded if isinstance(each, tuple) and isinstance(each[0], LiveJob)]
        mark = self._watchers.mark(requests[0].profile or "")
        try:
            told: Sequence[PaiJupyterError | None] = await backend.submit_many(
                [(self.to_job(live), values) for live, values in new]
            )
        except PaiJupyterError as error:
            told = [error] * len(new)
        except Exception as error:
            said = masked(f"{type(error).__name__}: {error}", (v for _, each in new for v in each.values()))
            _log.error("profile %s did not take %d jobs: %s", requests[0].profile, len(new), said)
            failed = PaiJupyterError(
                "backend-failed", f"Profile did not take the jobs: {said}", "Try again.", 502
            )
            told = [failed] * len(new)
        refused = dict[str, PaiJupyterError]()
        for (live, _), against in zip(new, told, strict=True):
            if against is not None:
                refused[live.record.id] = against
                await self._creations.take_back(live)
        taken = [live.record.id for live, _ in new if live.record.id not in refused]
        await asyncio.gather(
            *(self._catalog.append(each, {"type": "submitted", "at": now()}) for each in taken)
        )
        if len(refused) < len(new):
            self._watchers.include(new[0][0].record.profile, mark)
        return [_outcome(each, refused) for each in recorded]

    async def _recorded(self, requests: Sequence[Request], backend: Batching) -> list[Recorded]:
        """Record many; a job of the same request, or one that is handed over later, is a result."""
        rows = [self._catalog.index.by_request(each.request_id or "") for each in requests]
        fresh = [each for each, row in zip(requests, rows, strict=True) if row is None]
        prepared = await self._alike.prepare(fresh, backend)
        found = await asyncio.gather(*map(self._wanted, fresh, prepared), return_exceptions=True)
        wanted = [each for each in found if isinstance(each, Wanted)]
        made: Sequence[LiveJob | PaiJupyterError]
        try:
            made = await self._creations.create(wanted) if wanted else []
        except PaiJupyterError as error:
            made = [error] * len(wanted)
        lives = iter(made)
        of_fresh = iter(
            [await self._begun(next(lives), each) if isinstance(each, Wanted) else each for each in found]
        )
        return [next(of_fresh) if row is None else (row.id, False) for row in rows]

    async def _begun(self, live: LiveJob | PaiJupyterError, wanted: Wanted) -> Recorded:
        """Return a job that is to be handed over now, or the result for one that needs something first."""
        if isinstance(live, PaiJupyterError):
            return live
        if live.record.facts.get("resumedFrom"):
            self.resume_later(live)  # with a copy of the checkpoints, which takes its time
            return live.record.id, True
        return (live.record.id, True) if await self._is_fetched_first(live) else (live, wanted.secrets)

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

    async def _hand_over(self, live: LiveJob, values: Mapping[str, str]) -> None:
        """Give a job to its backend and note that it was taken."""
        job, profile = await asyncio.to_thread(self.to_job, live), live.record.profile
        async with live.turn:
            if live.life.final:
                return  # stopped before it got this far
            mark = self._watchers.mark(profile)
            earlier = live.record.facts.get("resumedFrom")
            if earlier and not earlier.get("profile"):
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


def _outcome(found: Any, refused: Mapping[str, PaiJupyterError] | None = None) -> Outcome:
    """Return what became of one of many; whatever else went wrong is nobody's fault but ours."""
    if isinstance(found, tuple):
        if not isinstance(found[0], LiveJob):
            return str(found[0]), bool(found[1])
        return (refused or {}).get(found[0].record.id) or (found[0].record.id, True)
    if isinstance(found, PaiJupyterError):
        return found
    if isinstance(found, Exception):
        return PaiJupyterError(
            "internal", f"Submission failed: {type(found).__name__}: {found}", "See engine.log.", 500
        )
    raise found


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
