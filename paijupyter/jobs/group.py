"""One group of experiments in memory: what its events and its jobs tell, and what is still to do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paijupyter.backends.base import FINAL
from paijupyter.jobs.group_record import GroupRecord
from paijupyter.jobs.index import Row
from paijupyter.jobs.record import Event

_STATES = ("waiting", "running", "succeeded", "failed", "stopped")
_HELD = "Waits for its turn: at most {} of the group run at once."


@dataclass(slots=True)
class Entry:
    """One experiment of a group.

    Attributes:
        key: what tells it from the others.
        values: what varies, by name.
        round: number of the round that it was last part of.
        same: what is equal where nothing was changed since.
        job: id of its latest job, or None.
        kept: whether that job is of an earlier round and was left as it is.
        state: of the job; ``waiting`` before there is one.
        started: whether the job has begun to run.
        problem: why there is no job, ``{code, message, hint}``, or None.
    """

    key: str
    values: Mapping[str, Any]
    round: int
    same: str
    resume: str | None = None
    job: str | None = None
    kept: bool = False
    state: str = "waiting"
    started: bool = False
    problem: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what the event of its round says of it."""
        found: dict[str, Any] = {"key": self.key, "values": dict(self.values), "same": self.same}
        if self.kept:
            found["keeps"] = self.job
        if self.resume:
            found["resume"] = self.resume
        return found


@dataclass(slots=True)
class Group:
    """A group.

    Attributes:
        record: its folder.
        entries: its experiments by key, in their order.
        number: of the latest round.
        settings: of the latest round: profile, package, context, limits.
        problems: what the plan of that round found.
        since: when that round began.
        stopped_by: who ended the round early: ``user``, ``failures``, or "".
        is_removed: whether it was deleted: nobody is told of it any more.
        trouble: why experiments are not submitted just now, or "".
        news: set when there may be something to do.
    """

    record: GroupRecord
    entries: dict[str, Entry] = field(default_factory=dict)
    number: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[Mapping[str, Any], ...] = ()
    since: str = ""
    stopped_by: str = ""
    ended_at: str | None = None
    is_removed: bool = False
    trouble: str = ""
    requests: dict[str, int] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def read(cls, record: GroupRecord, rows: Iterable[Row]) -> Group:
        """Build a group from its events and the index rows of its jobs, oldest first."""
        group = cls(record)
        for event in record.events():
            group.take(event)
        by_id = {}
        for row in rows:
            by_id[row.id] = row
            number, key = of_request(row.request_id or "")
            entry = group.entries.get(key)
            if entry is not None and number == entry.round:
                entry.job, entry.kept = row.id, False
        for entry in group.entries.values():
            job = by_id.get(entry.job or "")
            if job is None:
                entry.job = None if entry.kept else entry.job
                continue
            entry.state, entry.started = job.state, bool(job.view.get("startedAt"))
        return group

    def take(self, event: Event) -> None:
        """Take in one event."""
        kind = event.get("type")
        if kind == "round":
            self._begin(event)
        elif kind == "stop":
            self.stopped_by = str(event.get("by") or "user")
        elif kind == "refused":
            entry = self.entries.get(str(event.get("key")))
            if entry is not None and entry.round == event.get("round"):
                entry.problem, entry.state = event.get("problem"), "failed"
        elif kind == "forget":
            for key in event.get("keys") or ():
                self.entries.pop(str(key), None)

    def _begin(self, event: Event) -> None:
        self.number = int(event["number"])
        self.settings = event.get("settings") or {}
        self.problems = tuple(event.get("problems") or ())
        self.since = str(event.get("at") or "")
        self.stopped_by, self.ended_at = "", None
        if event.get("requestId"):
            self.requests[str(event["requestId"])] = self.number
        for each in event.get("experiments") or ():
            key, keeps = str(each["key"]), each.get("keeps")
            former = self.entries.get(key)
            entry = Entry(key, each.get("values") or {}, self.number, str(each.get("same") or ""))
            entry.resume, entry.job, entry.kept = each.get("resume"), keeps, keeps is not None
            if former is not None and keeps is not None and former.job == keeps:
                entry.state, entry.started = former.state, former.started
            self.entries[key] = entry

    # -- what it is -------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The group's id."""
        return self.record.id

    @property
    def at_once(self) -> int | None:
        """How many may be unfinished at the same time."""
        return self.settings.get("atOnce")

    @property
    def pending(self) -> list[Entry]:
        """Experiments that have yet to become jobs."""
        if self.stopped_by:
            return []
        return [each for each in self.entries.values() if self._is_pending(each)]

    def ready(self, most: int) -> list[Entry]:
        """Return the experiments whose turn it is, at most so many."""
        room = most
        if self.at_once is not None:
            unfinished = sum(
                each.job is not None and each.state not in FINAL for each in self.entries.values()
            )
            room = min(most, self.at_once - unfinished)
        return self.pending[: max(room, 0)]

    @property
    def is_settled(self) -> bool:
        """Whether nothing of it will change by itself any more."""
        return not self.pending and all(
            each.job is None or each.state in FINAL for each in self.entries.values()
        )

    @property
    def failures(self) -> int:
        """How many experiments of the latest round have failed."""
        return sum(
            each.state == "failed" and each.round == self.number and not each.kept
            for each in self.entries.values()
        )

    @property
    def is_failing(self) -> bool:
        """Whether so many have failed that the rest shall not begin."""
        most = self.settings.get("stopAfter")
        return most is not None and not self.stopped_by and self.failures >= most

    def state_of(self, entry: Entry) -> str:
        """Return the state of an experiment; what will not begin any more is stopped."""
        if entry.job is None and entry.problem is None:
            return "stopped" if self.stopped_by or entry.round != self.number else "waiting"
        return entry.state

    def counts(self) -> dict[str, int]:
        """Count the experiments per state."""
        counter = Counter(self.state_of(each) for each in self.entries.values())
        return {state: counter[state] for state in _STATES if counter[state]}

    @property
    def state(self) -> str:
        """The one state of all of them."""
        counts = self.counts()
        if counts.get("running") or (counts.get("waiting") and set(counts) - {"waiting"}):
            return "running"
        for state in ("waiting", "failed", "stopped"):
            if counts.get(state):
                return state
        return "succeeded"

    def view(self, *, mine: bool) -> dict[str, Any]:
        """Return the one JSON object of a group that every screen shows."""
        facts, settings = self.record.facts, self.settings
        return {
            "id": self.id,
            "name": self.record.name,
            "state": self.state,
            "message": self._message(),
            "counts": self.counts(),
            "total": len(self.entries),
            "kept": sum(each.kept for each in self.entries.values()),
            "profile": settings.get("profile"),
            "packageSha256": settings.get("package"),
            "folder": facts.get("folder"),
            "notebook": (settings.get("context") or {}).get("notebook"),
            "host": facts.get("host"),
            "mine": mine,
            "submittedAt": self.since,
            "endedAt": self.ended_at,
            "round": self.number,
            "atOnce": self.at_once,
            "stopAfter": settings.get("stopAfter"),
            "stoppedBy": self.stopped_by,
            "parameters": self.names(),
            "secretReferences": dict(settings.get("secretRefs") or {}),
            "problems": list(self.problems),
        }

    def names(self) -> list[str]:
        """Return the names of all values, in the order in which they first appear."""
        return list(dict.fromkeys(name for each in self.entries.values() for name in each.values))

    def waits(self, entry: Entry) -> str:
        """Say why an experiment has no job yet."""
        if self.trouble:
            return self.trouble
        return _HELD.format(self.at_once) if self.at_once is not None else "Is about to be submitted."

    def _message(self) -> str:
        if self.stopped_by == "failures":
            return f"Stopped after {self.failures} failures: what had not begun does not begin."
        if self.stopped_by:
            return f"Stopped by {self.stopped_by}."
        return self.trouble if self.pending else ""

    def _is_pending(self, entry: Entry) -> bool:
        return entry.job is None and entry.problem is None and entry.round == self.number


def request_of(group: str, number: int, key: str) -> str:
    """Return the request id of an experiment's job: asked again, it is the same job."""
    return f"group {group} {number} {key}"


def of_request(request: str) -> tuple[int, str]:
    """Return round and key of such a request id; (0, "") for any other."""
    word, _, rest = request.partition(" ")
    parts = rest.split(" ", 2)
    if word != "group" or len(parts) != 3 or not parts[1].isdecimal():
        return 0, ""
    return int(parts[1]), parts[2]
