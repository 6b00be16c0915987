"""What is asked about logs as a whole: which lines have a text, and when lines were written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from paijupyter.errors import UsageProblem
from paijupyter.jobs import logs
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.searching import search
from paijupyter.jobs.time_index import times_of


class WholeLogs:
    """Answers from the files of logs, however large they are.

    Args:
        catalog: where jobs are kept.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def search(
        self, ref: str, text: str, task: str | None = None, attempt: int | None = None, most: int = 1000
    ) -> dict[str, Any]:
        """Return how many lines of the log of a task, or of all, have a text, and the first of them.

        Raises:
            NotFound: if there is no such job, task or attempt.
            UsageProblem: if the text is empty.
        """
        if not text:
            raise UsageProblem("Search needs a text.")
        job = self._catalog.job(self._catalog.find(ref))
        number = logs.attempt_of(job, attempt)
        keys = [task] if task is not None else logs.task_keys(job)
        for key in keys[:1]:
            logs.task_of(job, key)
        files = [(key, logs.log_file(job, key, number)) for key in keys]
        return (await asyncio.to_thread(search, files, text, number, most)).to_json()

    async def times(
        self, ref: str, places: Sequence[tuple[str, int]], attempt: int | None = None, most: int = 1000
    ) -> dict[str, Any]:
        """Return when lines were written, from places on.

        Args:
            ref: the job.
            places: keys of tasks, each with an offset in its log.
            attempt: that the logs are of; the latest if none is named.
            most: entries of each place.

        Returns:
            ``{attempt, tasks: [{task, offsets, times, until}]}``, as :func:`.times_of` gives them.

        Raises:
            NotFound: if there is no such job, task or attempt.
        """
        job = self._catalog.job(self._catalog.find(ref))
        number = logs.attempt_of(job, attempt)
        for task, _ in places:
            logs.task_of(job, task)
        wanted = [(task, offset, logs.log_file(job, task, number).parent) for task, offset in places]
        return {"attempt": number, "tasks": await asyncio.to_thread(times_of, wanted, most)}
