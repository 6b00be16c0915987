"""The folders of new jobs: recorded together where many come at once, each under a name that no other has."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paijupyter.errors import PaiJupyterError
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.job_facts import facts_of
from paijupyter.jobs.life import Life
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.planning import Prepared
from paijupyter.jobs.record import Beginning, Record
from paijupyter.jobs.request import Request
from paijupyter.jobs.secrets import SecretStore
from paijupyter.protocol import with_suffix


@dataclass(frozen=True, slots=True)
class Wanted:
    """A job that is to be made.

    Attributes:
        request: what was asked for.
        prepared: what the planner made of it.
        secrets: values of its secrets.
    """

    request: Request
    prepared: Prepared
    secrets: Mapping[str, str]


class Creations:
    """Makes jobs of what was planned.

    Args:
        catalog: where jobs are kept.
        secrets: where secret values wait.
    """

    def __init__(self, catalog: Catalog, secrets: SecretStore) -> None:
        self._catalog = catalog
        self._secrets = secrets
        self._names: set[str] = set()  # of jobs that are being made

    async def create(self, wanted: Sequence[Wanted]) -> list[LiveJob]:
        """Record jobs: all of them, or none.

        Raises:
            PaiJupyterError: ``record-not-written`` if the disk does not take them.
        """
        made = [self._begun(each) for each in wanted]
        names = {live.record.facts["name"] for live, _ in made}
        try:
            await asyncio.to_thread(self._put_aside, made, wanted)
            await self._catalog.add(made)
        except OSError as error:
            for live, _ in made:
                self._secrets.remove(live.record.id)
            first = made[0][0].record
            raise PaiJupyterError(
                "record-not-written",
                f"Job `{first.facts['name']}` cannot be recorded: {error.strerror or error}.",
                f"See that there is room and permission in `{first.folder.parent}`.",
                507,
            ) from error
        finally:
            self._names -= names
        return [live for live, _ in made]

    async def take_back(self, live: LiveJob) -> None:
        """Remove a job that its backend did not take."""
        self._secrets.remove(live.record.id)
        await self._catalog.remove(live.record.id)

    def _begun(self, wanted: Wanted) -> tuple[LiveJob, Beginning]:
        """Return a job of a name of its own, and what is written of it."""
        request, prepared = wanted.request, wanted.prepared
        job, plan = prepared.job, prepared.plan
        if job is None or plan is None:
            raise RuntimeError("only what was planned is created")
        submitted = plan.submitted
        while job.name in self._names or self._catalog.index.find(job.name) is not None:
            job, former = replace(job, name=with_suffix(prepared.short)), job.name
            job = replace(job, document={**job.document, "name": job.name})
            submitted = submitted.replace(former, job.name)
        self._names.add(job.name)
        record = Record(job.folder, facts_of(request, prepared, job, self._catalog.host))
        first = {"type": "created", "at": record.facts["submittedAt"]}
        return LiveJob(record, Life(), job), Beginning(request.document, submitted, job.commands, first)

    def _put_aside(self, made: Sequence[tuple[LiveJob, Beginning]], wanted: Sequence[Wanted]) -> None:
        for (live, _), each in zip(made, wanted, strict=True):
            self._secrets.put(live.record.id, each.secrets)
