"""Many requests that differ by names, values and commands only: one of each kind is planned for all of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from paijupyter.backends.base import Batching
from paijupyter.errors import has_errors, in_order
from paijupyter.experiments.sweep import shape
from paijupyter.jobs import secrets
from paijupyter.jobs.documents import ReadDocument, read_document, short_name_of
from paijupyter.jobs.planning import Planner, Prepared, with_package
from paijupyter.jobs.request import Request


class AlikePlanner:
    """Makes many requests ready.

    Args:
        planner: makes one of each kind ready.
    """

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    async def prepare(self, requests: Sequence[Request], backend: Batching) -> list[Prepared]:
        """Do for each request what :meth:`Planner.prepare` does.

        Args:
            requests: to the same profile.
            backend: of that profile.
        """
        read = await asyncio.to_thread(lambda: [read_document(each) for each in requests])
        kinds: dict[str, Prepared] = {}
        found = []
        for request, document in zip(requests, read, strict=True):
            kind = _kind(request, document.data)
            if kind in kinds and not has_errors(document.problems):
                found.append(self._like(kinds[kind], request, document, backend))
                continue
            # What is against one of them may be in its values: each is told its own.
            prepared = await self._planner.prepare(request)
            if prepared.ok:
                kinds[kind] = prepared
            found.append(prepared)
        return found

    def _like(
        self, pattern: Prepared, request: Request, document: ReadDocument, backend: Batching
    ) -> Prepared:
        data = document.data
        if pattern.manifest is not None:
            data = with_package(data, pattern.manifest.sha256)
        prepared = replace(pattern, short=short_name_of(data, request), data=data)
        job = self._planner.job_of(prepared, request, document.commands)
        if pattern.plan is None:
            raise RuntimeError("only a planned request is a pattern")
        problems = [*document.problems, *secrets.problems_of(data, request.secrets)]
        return replace(
            prepared,
            job=job,
            plan=replace(pattern.plan, submitted=backend.submitted(job)),
            problems=tuple(in_order(dict.fromkeys(problems))),
        )


def _kind(request: Request, data: Mapping[str, Any]) -> str:
    """Return what is equal for requests that are planned alike; of parameters their names are enough."""
    rest = replace(request, document="", request_id=None, group=None)
    values = data.get("parameters")
    names = sorted(map(str, values)) if isinstance(values, Mapping) else values
    return json.dumps([shape(data), repr(rest), names, data.get("secrets"), sorted(data)], default=str)
