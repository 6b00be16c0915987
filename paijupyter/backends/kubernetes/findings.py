"""What is found out about something that waits, and what it is found out from. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paijupyter.backends.kubernetes.facts import Object, seconds

_LONGEST = 700  # characters of evidence in a sentence


@dataclass(frozen=True, slots=True)
class Finding:
    """Why something waits.

    Attributes:
        reason: the finer fact of the state ``waiting``.
        message: one sentence with the evidence, without the task's name; ends without a full stop.
        advice: what to do, or "".
        for_ever: whether it does not end by itself.
    """

    reason: str
    message: str = ""
    advice: str = ""
    for_ever: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an object.

    Attributes:
        at: when it was last seen.
        about: name of the object.
    """

    reason: str
    message: str
    at: float
    is_warning: bool = True
    about: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a task asks for, as far as it explains why it has no place.

    Attributes:
        amounts: of each resource, in the API's base units (cores, bytes).
        largest: the most that one node of the cluster has of it; empty where nodes may not be read.
        image: of the task.
        service_account: whose admission it is.
    """

    amounts: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    image: str = ""


def event_of(data: Object) -> Event:
    """Read an event of either API group."""
    series = data.get("series") or {}
    times = (series.get("lastObservedTime"), data.get("lastTimestamp"), data.get("eventTime"))
    at = next((found for found in map(seconds, times) if found is not None), 0.0)
    message = str(data.get("message") or data.get("note") or "")
    about = str((data.get("involvedObject") or data.get("regarding") or {}).get("name") or "")
    return Event(str(data.get("reason") or ""), message, at, data.get("type") != "Normal", about)


def newest(events: Sequence[Event], *reasons: str) -> Event | None:
    """Return the newest event with one of these reasons."""
    found = [each for each in events if each.reason in reasons]
    return max(found, key=lambda each: each.at, default=None)


def short(text: Any) -> str:
    """Return evidence on one line, cut where it is very long."""
    flat = re.sub(r"\s+", " ", str(text)).strip()
    return flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…"
