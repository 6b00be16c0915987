"""This backend's own record of a job on this host: enough to go on after the engine was killed anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from paijupyter.backends import kept
from paijupyter.backends.base import Change, Job
from paijupyter.backends.kept import Kept
from paijupyter.backends.outcome import Outcome

Phase = Literal["building", "creating", "started", "final"]


@dataclass(frozen=True)
class Member:
    """Where a job is one of a bundle, see ``bundle.py``.

    Attributes:
        name: of the bundle's objects.
        label: what stands for the id of the job on them.
        index: of the job's pod.
        count: how many jobs there are.
    """

    name: str
    label: str
    index: int
    count: int


@dataclass
class Journal(Kept):
    """What has been decided for a job.

    Attributes:
        phase: ``building``: images of it may be on their way, and after them the first attempt's objects;
            ``creating``: the objects of the attempt may be there or not; ``started``: they are.
        attempt: number of the current attempt.
        user_retries: how many attempts followed a failure of the user's.
        platform_retries: how many followed one that was not.
        stop: whether somebody asked to stop it.
        outcome: how the current attempt ends, once decided.
        last: the final change, once all pods had ended.
        member: where its first attempt is one of a bundle's; see ``bundle.py``.
    """

    phase: Phase = "creating"
    attempt: int = 0
    user_retries: int = 0
    platform_retries: int = 0
    stop: bool = False
    outcome: Outcome | None = None
    last: Change | None = None
    member: Member | None = None

    @property
    def bundled(self) -> Member | None:
        """Where the job is one of a bundle's, if its current attempt is."""
        return None if self.attempt else self.member

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Journal:
        """Rebuild it; unknown members are ignored."""
        member = data.get("member")
        return super().from_json({**data, "member": Member(**member) if member else None})


def load(job: Job) -> Journal | None:
    """Return the journal of a job, None if this host never took it. Blocking."""
    return kept.read(job, Journal)


def save(job: Job, journal: Journal) -> None:
    """Write the journal so that it survives a power cut. Blocking."""
    kept.write(job, journal)


def jot(job: Job, journal: Journal) -> None:
    """Write the journal of a job of a bundle: after a power cut the cluster tells the same. Blocking."""
    kept.jot(job, journal)
