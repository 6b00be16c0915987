"""One job in memory: its record, its life, and what screens show of its files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Usage
from paijupyter.jobs.index import Row
from paijupyter.jobs.life import Life, fold
from paijupyter.jobs.metrics import STEP, Metrics
from paijupyter.jobs.notebooks import brought
from paijupyter.jobs.outputs import list_outputs
from paijupyter.jobs.record import Record
from paijupyter.jobs.usage import total_usage
from paijupyter.jobs.view import job_view

_SHOWN_OUTPUTS = 200  # in a view; all of them are at `files`


class LiveJob:
    """A job as this process knows it.

    Attributes:
        record: its facts.
        life: its state after all events so far.
        job: what its backend is told, once somebody has needed it.
        lock: held while an event is written, so that events have one order.
        turn: held while the job is submitted, stopped or deleted, so that these do not overlap.
        ended: set once its state is final.
        usage: what each of its tasks used when it was last measured, while it runs.
    """

    def __init__(self, record: Record, life: Life, job: Job | None = None) -> None:
        self.record = record
        self.life = life
        self.job = job
        self.lock = asyncio.Lock()
        self.turn = asyncio.Lock()
        self.ended = asyncio.Event()
        self._news = asyncio.Event()
        self._outputs: list[dict[str, Any]] = []
        self._executed: str | None = None
        self._ports: tuple[int, Mapping[str, Any]] = (-1, {})
        self.usage: Mapping[str, Usage] = {}
        self._metrics = self._metrics_of(self.life.attempt)

    @classmethod
    def read(cls, record: Record) -> LiveJob:
        """Build a job from its folder."""
        live = cls(record, fold(record.events()))
        live.look()
        return live

    def look(self, life: Life | None = None, limit: int = STEP) -> bool:
        """Look at the files the job writes; say whether there is something new. Once final, at all of them.

        Args:
            life: the state for which to look, if it is about to come.
            limit: bytes to read of each file of a job that is not final.
        """
        life = life or self.life
        attempt = life.attempt
        if self._metrics.folder != self._chief_folder(attempt):
            self._metrics = self._metrics_of(attempt)
        if self._ports[0] != attempt and life.state == "running":
            self._ports = (attempt, _ports(self._chief_folder(attempt) / "spec.json"))
        if not life.final:
            return self._metrics.read(limit)
        self._metrics.read_all()
        self._outputs = list_outputs(self.record.folder, _SHOWN_OUTPUTS)
        self._executed = brought(self.record)
        self.usage = {}
        return True

    def keep(self) -> None:
        """Keep what was read of metrics, so that the next engine need not read it again."""
        self._metrics.save()

    def view(self) -> dict[str, Any]:
        """Return the JobView, without what only holds at this moment."""
        runs = self.life.state == "running"
        return job_view(
            self.record,
            self.life,
            outputs=self._outputs,
            metrics=self._metrics.to_json(),
            progress=self._metrics.progress() if runs else None,
            usage=total_usage(self.usage) if runs else None,
            execution=self._metrics.execution(),
            executed=self._executed,
            ports=self.ports,
        )

    @property
    def ports(self) -> Mapping[str, Any]:
        """Ports per task and label, while it runs."""
        return self._ports[1] if self.life.state == "running" else {}

    def row(self) -> Row:
        """Return the job's row of the index."""
        facts = self.record.facts
        return Row(
            id=self.record.id,
            name=facts["name"],
            short_name=facts["shortName"],
            profile=self.record.profile,
            state=self.life.state,
            reason=self.life.reason,
            host=facts.get("host") or "",
            submitted_at=facts["submittedAt"],
            folder=facts.get("folder"),
            kernel=facts.get("kernel"),
            cell=cell_key(facts.get("notebook"), facts.get("cell")),
            request_id=facts.get("requestId"),
            package=facts.get("packageSha256"),
            events_size=_size(self.record.folder / "events.jsonl"),
            view=self.view(),
            sweep=(facts.get("group") or {}).get("id"),
        )

    def tell(self) -> None:
        """Wake everybody who waits for a change of this job."""
        news, self._news = self._news, asyncio.Event()
        news.set()
        if self.life.final:
            self.ended.set()

    async def change(self) -> None:
        """Wait for the next change; returns at once if the job is final."""
        if not self.life.final:
            await self._news.wait()

    def _chief_folder(self, attempt: int) -> Path:
        """Folder of the task that speaks for the job: task 0 of the first role that is no service."""
        roles = self.record.facts["roles"]
        chief = next((role for role in roles if not role.get("service")), roles[0])
        return self.record.task_folder(f"{chief['name']}-0", attempt)

    def _metrics_of(self, attempt: int) -> Metrics:
        return Metrics(self._chief_folder(attempt), self.record.folder / "metrics.json")


def cell_key(notebook: str | None, cell: Mapping[str, Any] | None) -> str | None:
    """Return what tells one notebook cell from all others, or None where the job is of no cell."""
    return f"{notebook or ''}#{cell['id']}" if cell and cell.get("id") else None


def _ports(spec: Path) -> Mapping[str, Any]:
    """Ports per task, from what the backend told the task; backends without such a file show none."""
    try:
        ports = json.loads(spec.read_bytes()).get("ports")
    except (OSError, ValueError, AttributeError):
        return {}
    return ports if isinstance(ports, dict) else {}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
