"""This backend's own record of a job: enough to go on with it after the engine was killed at any instant."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from paijupyter.backends import kept
from paijupyter.backends.base import Change, Job
from paijupyter.backends.jsonfiles import read_json
from paijupyter.backends.kept import Kept
from paijupyter.backends.local import host
from paijupyter.backends.outcome import Outcome
from paijupyter.backends.told import tasks_of

Phase = Literal["queued", "started", "final"]


@dataclass
class Journal(Kept):
    """What has been decided for a job.

    Attributes:
        phase: ``queued``: no process of the attempt was ever started; ``started``: some may have been.
        attempt: number of the current attempt.
        queued_at: when it came, seconds since the epoch; the order of the queue after a restart.
        boot_id: the run of the machine that ``started`` belongs to.
        devices: the GPUs of each task.
        user_retries: how many attempts followed a failure of the user's.
        platform_retries: how many followed one that was not.
        stop: whether somebody asked to stop it.
        outcome: how the current attempt ends, once decided.
        last: the final change, once all processes were gone.
    """

    phase: Phase = "queued"
    attempt: int = 0
    queued_at: float = field(default_factory=time.time)
    boot_id: str = ""
    devices: dict[str, list[str]] = field(default_factory=dict)
    user_retries: int = 0
    platform_retries: int = 0
    stop: bool = False
    outcome: Outcome | None = None
    last: Change | None = None


def load(job: Job) -> Journal | None:
    """Return the journal of a job, None if this backend never took it.

    A journal that is lost or torn while attempts lie there counts as started: nothing may run twice. Unless
    a task of the last attempt was never told what to do: processes start when all have been.
    """
    found = kept.read(job, Journal)
    if found is not None:
        return found
    attempts = Counter(int(path.parent.name) for path in job.folder.glob("tasks/*/*/spec.json"))
    if not attempts:
        return None
    last = max(attempts)
    if attempts[last] < len(tasks_of(job)):
        return Journal("queued", last)
    started = [read_json(path) or {} for path in job.folder.glob("tasks/*/*/started.json")]
    boot_ids = {str(facts.get("bootId") or "") for facts in started} - {""}
    return Journal("started", last, boot_id=boot_ids.pop() if boot_ids else host.boot_id())


def save(job: Job, journal: Journal) -> None:
    """Write the journal so that it survives a power cut."""
    kept.write(job, journal)
