"""This backend's own record of a job on this host: enough to go on after the engine was killed anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from paijupyter.backends.base import Change, Job
from paijupyter.backends.jsonfiles import read_json, write_json_durably
from paijupyter.backends.outcome import change_of

Phase = Literal["creating", "started", "final"]


@dataclass
class Journal:
    """What has been decided for a job.

    Attributes:
        phase: ``creating``: the server may have it or not; ``started``: it has.
        name: what the job is called on the server.
        attempt: number of the current attempt.
        stop: whether somebody asked to stop it.
        last: the final change.
    """

    phase: Phase = "creating"
    name: str = ""
    attempt: int = 0
    stop: bool = False
    last: Change | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"schema": 1, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Journal:
        """Rebuild it; unknown members are ignored."""
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        if known.get("last"):
            known["last"] = change_of(known["last"])
        return cls(**known)


def load(job: Job) -> Journal | None:
    """Return the journal of a job, None if this host never took it. Blocking."""
    data = read_json(journal_file(job))
    return None if data is None else Journal.from_json(data)


def save(job: Job, journal: Journal) -> None:
    """Write the journal so that it survives a power cut. Blocking."""
    write_json_durably(journal_file(job), journal.to_json())


def journal_file(job: Job) -> Path:
    """Return this backend's own record of a job; no task is called so."""
    return job.folder / "tasks" / "backend.json"
