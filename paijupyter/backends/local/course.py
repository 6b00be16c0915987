"""The course of one attempt: watch its tasks, ask the completion policy, end the rest."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol

from paijupyter.backends.base import State, TaskStatus
from paijupyter.backends.local.attempt import Attempt, Running
from paijupyter.backends.local.journal import Journal
from paijupyter.backends.outcome import Outcome
from paijupyter.backends.told import GRACE_SECONDS
from paijupyter.protocol.completion import policies
from paijupyter.protocol.deciding import Counts, decide

_LOOK = (0.02, 0.25)  # seconds between looks at tasks that start: the first, and the longest
_PATIENCE = 2.0  # seconds after the grace time until what has not ended is killed
_NEWS_EVERY = 1.0  # seconds between words on who is missing at the barrier
_NAMED = 3  # tasks named in a sentence before "and n more"


class Say(Protocol):
    """Publishes a step in the life of the job."""

    def __call__(
        self, state: State, reason: str = "", message: str = "", tasks: tuple[TaskStatus, ...] = ()
    ) -> None:
        """Publish it."""


class Course:
    """Carries an attempt to the point where none of its processes is left.

    Args:
        attempt: started or adopted.
        journal: where the outcome is noted, as soon as it is decided.
        save: makes the journal durable.
        say: publishes a step.
        wake: set when a process has ended or the job is to stop.
    """

    def __init__(
        self,
        attempt: Attempt,
        journal: Journal,
        save: Callable[[], Awaitable[None]],
        say: Say,
        wake: asyncio.Event,
    ) -> None:
        self._attempt = attempt
        self._journal = journal
        self._save = save
        self._say = say
        self._wake = wake
        self._policies = policies(attempt.job.document)
        self._is_running = False
        self._terminated_at: float | None = None
        self._said = ("", time.monotonic())

    async def run(self) -> Outcome:
        """Return how the attempt ended, once all is gone."""
        attempt = self._attempt
        delay = _LOOK[0]
        while attempt.live:
            attempt.meet(ending=self._is_ending)
            news = attempt.note_ready()
            ended = await attempt.collect(ending=self._is_ending)
            self._announce(ended)
            await self.judge(ended)
            if not attempt.live:
                break
            if self._journal.outcome:
                await self._end_rest()
            delay = _LOOK[0] if news else min(delay * 1.5, _LOOK[1])
            await self._pause(self._next_look(delay))
        return self._journal.outcome or Outcome("failed", "lost", "The job's tasks are gone.")

    async def judge(self, ended: list[Running]) -> None:
        """Ask the completion policy after each end, in order: the first that decides is the cause."""
        if not (ended or self._journal.stop):
            return
        before = self._journal.outcome
        new = {each.task.key for each in ended}
        states = Counter(
            (status.role, status.state) for status in self._attempt.statuses if status.key not in new
        )
        for each in ended:
            states[each.task.role, each.status.state] += 1
            if self._journal.outcome is None and each.status.state != "stopped":
                self._journal.outcome = self._decide(states, each.status)
        if self._journal.stop and self._journal.outcome is None:
            self._journal.outcome = stopped()
        if self._journal.outcome is not before:
            await self._save()

    def say_position(self) -> None:
        """Say where the job stands, and each of its tasks."""
        self._is_running = self._attempt.is_past_barrier
        if self._is_running:
            self._attempt.mark_running()
        self._say(*self._position(), tasks=self._attempt.statuses)

    def _position(self) -> tuple[State, str, str]:
        """Return state, reason and message of the job."""
        if not self._attempt.is_past_barrier:
            return "waiting", "starting", self._missing()
        if self._journal.outcome is None:
            return "running", "", ""
        return "running", "stopping" if self._journal.stop else "finishing", self._ending()

    @property
    def _is_ending(self) -> bool:
        return self._journal.stop or self._journal.outcome is not None

    def _decide(self, states: Counter[tuple[str, State]], last: TaskStatus) -> Outcome | None:
        counts = {role: Counts(states[role, "succeeded"], states[role, "failed"]) for role in self._policies}
        verdict = decide(self._policies, counts)
        if verdict is None:
            return None
        if verdict.state == "failed":
            return Outcome("failed", last.reason or "user", last.message, last.key)
        return Outcome("succeeded", "", verdict.message)

    def _announce(self, ended: list[Running]) -> None:
        """Say what is new. That it runs is said even of a job whose tasks have all ended by now."""
        if not self._is_running and self._attempt.is_past_barrier:
            self.say_position()
        elif ended:
            self._say(*self._position(), tasks=tuple(each.status for each in ended))
        elif not self._is_running:
            self._name_the_missing()

    def _name_the_missing(self) -> None:
        message, since = self._said
        now = time.monotonic()
        if now - since >= _NEWS_EVERY:
            self._said = (self._missing(), now)
            if self._said[0] != message:
                self._say("waiting", "starting", self._said[0])

    async def _end_rest(self) -> None:
        now = time.monotonic()
        if self._terminated_at is None:
            self._terminated_at = now
            if self._is_running:
                self._say(*self._position())
        # Every time: one that an earlier engine forked may only now have said who it is.
        self._attempt.terminate()
        if now - self._terminated_at >= GRACE_SECONDS + _PATIENCE:
            await self._attempt.kill()

    def _next_look(self, delay: float) -> float | None:
        """Return how long nothing needs to be looked at unless a process ends; None: for ever."""
        if not self._attempt.is_settled:
            return delay
        if self._terminated_at is None:
            return None
        left = self._terminated_at + GRACE_SECONDS + _PATIENCE - time.monotonic()
        return max(left, _LOOK[1])

    async def _pause(self, seconds: float | None) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()

    def _missing(self) -> str:
        tasks = self._attempt.tasks
        missing = [key for key, each in tasks.items() if not each.ready]
        if len(missing) == len(tasks):
            return ""
        return f"{len(tasks) - len(missing)} of {len(tasks)} tasks are ready, waiting for {_named(missing)}."

    def _ending(self) -> str:
        live = [each.task.key for each in self._attempt.live]
        return f"Waiting for {_named(live)} to end." if live else ""


def stopped() -> Outcome:
    """Return how a job ends that somebody stopped."""
    return Outcome("stopped", "user", "The job was stopped.")


def _named(keys: list[str]) -> str:
    if len(keys) <= _NAMED:
        return " and ".join(filter(None, [", ".join(keys[:-1]), keys[-1]]))
    return f"{', '.join(keys[:_NAMED])} and {len(keys) - _NAMED} more"
