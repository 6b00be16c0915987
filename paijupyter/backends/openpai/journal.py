"""This backend's own record of a job on this host: enough to go on after the engine was killed anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paijupyter.backends import kept
from paijupyter.backends.base import Change, Job
from paijupyter.backends.kept import Kept

Phase = Literal["creating", "started", "final"]


@dataclass
class Journal(Kept):
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


def load(job: Job) -> Journal | None:
    """Return the journal of a job, None if this host never took it. Blocking."""
    return kept.read(job, Journal)


def save(job: Job, journal: Journal) -> None:
    """Write the journal so that it survives a power cut. Blocking."""
    kept.write(job, journal)
