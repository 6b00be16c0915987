"""Whether a failed attempt is followed by another, why, and when (architecture.md, decision 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from paijupyter.backends.outcome import Outcome

# What another try may not meet again, up to `jobRetryCount`. As in the original, memory that ran out is not
# among them.
_OF_THE_USER = frozenset({"user", "requirements", "data", "barrier-timeout"})
# What the job has no part in: its boot process died or failed, a port of its was taken, or its place was.
_OF_THE_PLATFORM = frozenset({"lost", "internal", "ports", "preempted", "evicted", "node-lost"})
DELAYS = (1.0, 8.0, 30.0)  # seconds before each try after a failure of the platform


@dataclass(frozen=True, slots=True)
class Again:
    """One more attempt.

    Attributes:
        delay: seconds until then.
        words: one sentence for people.
    """

    delay: float
    words: str


class Counted(Protocol):
    """What is kept of a job's retries."""

    user_retries: int
    platform_retries: int
    stop: bool


def again(outcome: Outcome, journal: Counted, allowed: int) -> Again | None:
    """Count the failure in the journal and return how to go on; None: that was it.

    Args:
        outcome: how the attempt ended.
        journal: of the job.
        allowed: its ``jobRetryCount``.
    """
    if outcome.state != "failed" or journal.stop:
        return None
    cause = outcome.message.rstrip(".")
    if outcome.reason in _OF_THE_USER and journal.user_retries < allowed:
        journal.user_retries += 1
        return Again(0, f"{cause}; trying again, {journal.user_retries} of {allowed}.")
    if outcome.reason in _OF_THE_PLATFORM and journal.platform_retries < len(DELAYS):
        delay = DELAYS[journal.platform_retries]
        journal.platform_retries += 1
        how = "with new ports" if outcome.reason == "ports" else "which costs no retry of the job's"
        count = f"{journal.platform_retries} of {len(DELAYS)}"
        return Again(delay, f"{cause}; trying again in {delay:g} s, {how}, {count}.")
    return None
