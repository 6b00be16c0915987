"""Verbs on what jobs were made of: show it, repeat it, compare two of them, lay runs side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.jobs import comparing, provenance, rerunning
from paijupyter.jobs import report as reports
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.notebooks import read_executed
from paijupyter.jobs.repeating import request_again
from paijupyter.jobs.request import Request
from paijupyter.package import LocalStore

MOST = 100  # jobs of one report


class History:
    """What jobs were made of.

    Args:
        catalog: where jobs are kept.
        packages: the package store of this host.
        data: the data folder.
        submit: submits a request and returns the view of its job.
    """

    def __init__(
        self,
        catalog: Catalog,
        packages: LocalStore,
        data: Path,
        submit: Callable[[Request], Awaitable[tuple[dict[str, Any], bool]]],
    ) -> None:
        self._catalog = catalog
        self._packages = packages
        self._data = data
        self._submit = submit

    async def provenance(self, ref: str) -> dict[str, Any]:
        """Return all that a job was made of.

        Raises:
            NotFound: if there is no such job.
        """
        return await asyncio.to_thread(provenance.provenance, self._job(ref), self._packages)

    async def diff(self, before: str, after: str) -> dict[str, Any]:
        """Return what changed from one job to another, and in their results.

        Raises:
            NotFound: if there is no such job.
        """
        return await asyncio.to_thread(comparing.compare, self._job(before), self._job(after), self._packages)

    async def rerun(
        self, ref: str, secrets: Mapping[str, Any] | None = None, request_id: str | None = None
    ) -> dict[str, Any]:
        """Submit exactly the same job once more; ``differs`` of its view says what may not be the same.

        Raises:
            Conflict: ``package-missing``, ``interpreter-gone`` or ``secrets-needed``.
            InvalidDocument: with all problems of the plan.
        """
        live = self._job(ref)
        await asyncio.to_thread(rerunning.check_possible, live, self._packages)
        differs = await asyncio.to_thread(rerunning.differences, live, self._data)
        earlier = (live.record.facts.get("resumedFrom") or {}).get("id")
        changes: dict[str, Any] = {"secrets": secrets or {}}
        if earlier and self._catalog.index.find(earlier) is not None:
            changes["resumeFrom"] = earlier
        elif earlier:
            message = "The checkpoints that it began with are gone, so it begins anew."
            differs.append({"what": "checkpoints", "message": message})
        view, _ = await self._submit(request_again(live.record, changes, request_id))
        return {**view, "differs": differs}

    async def report(
        self, refs: Sequence[str], title: str | None = None, tag: str | None = None
    ) -> dict[str, Any]:
        """Return a notebook, as JSON, that shows jobs side by side.

        Raises:
            NotFound: if one of them does not exist.
            UsageProblem: none or too many are named.
        """
        if not 1 <= len(refs) <= MOST:
            raise UsageProblem(f"Report needs from 1 to {MOST} jobs.")
        jobs = [self._job(ref) for ref in dict.fromkeys(refs)]
        runs = await asyncio.to_thread(lambda: [self._run(job) for job in jobs])
        return reports.report(runs, title or "Report", tag or reports.TAG)

    def _run(self, job: LiveJob) -> reports.Run:
        view = job.view()
        return reports.Run(view, read_executed(job.record), comparing.seconds_of(view))

    def _job(self, ref: str) -> LiveJob:
        return self._catalog.job(self._catalog.find(ref))
