"""The local queue: first in, first out, a whole job or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paijupyter.backends.base import Job, Profile
from paijupyter.backends.local import host
from paijupyter.backends.local.settings import number

_CPU_PER_CORE = 4  # most training processes on a notebook machine wait for something most of the time
_COUNTED = 20  # jobs that hear of each step forward; for those behind it is not worth an event


@dataclass(frozen=True, slots=True)
class Resources:
    """CPUs, MiB of memory and GPUs."""

    cpu: float = 0
    memory_mb: float = 0
    gpu: float = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(self.cpu + other.cpu, self.memory_mb + other.memory_mb, self.gpu + other.gpu)

    def __sub__(self, other: Resources) -> Resources:
        return Resources(self.cpu - other.cpu, self.memory_mb - other.memory_mb, self.gpu - other.gpu)

    def fits(self, free: Resources) -> bool:
        """Say whether these resources are all within others."""
        return self.cpu <= free.cpu and self.memory_mb <= free.memory_mb and self.gpu <= free.gpu

    def beyond(self, free: Resources) -> list[str]:
        """Name what of these is more than there is, in words."""
        over = self - free
        parts = []
        if over.cpu > 0:
            parts.append(f"{over.cpu:g} more CPU{'' if over.cpu == 1 else 's'}")
        if over.memory_mb > 0:
            parts.append(f"{over.memory_mb:g} MB more memory")
        if over.gpu > 0:
            parts.append(f"{over.gpu:g} more GPU{'' if over.gpu == 1 else 's'}")
        return parts

    def to_json(self) -> dict[str, float]:
        """Return the mapping that capabilities show."""
        return {"cpu": self.cpu, "memoryMB": self.memory_mb, "gpu": self.gpu}


@dataclass(eq=False)
class Entry:
    """One job in the queue.

    Attributes:
        needs: what the whole job takes.
        start: called when it has got it.
        tell: called with a message when what it waits for has changed.
    """

    needs: Resources
    start: Callable[[], None]
    tell: Callable[[str], None]
    message: str = field(default="", init=False)


class Queue:
    """Shares out a machine's resources."""

    def __init__(self, capacity: Resources) -> None:
        self.capacity = capacity
        self.used = Resources()
        self._waiting: list[Entry] = []

    @property
    def free(self) -> Resources:
        """What is left, never below nothing (adopted jobs are not asked whether they fit)."""
        left = self.capacity - self.used
        return Resources(max(left.cpu, 0), max(left.memory_mb, 0), max(left.gpu, 0))

    def __len__(self) -> int:
        return len(self._waiting)

    def starts_now(self, needs: Resources) -> bool:
        """Say whether a job would start at once."""
        return not self._waiting and needs.fits(self.free)

    def take(self, needs: Resources) -> None:
        """Take resources for a job that runs."""
        self.used += needs

    def give(self, needs: Resources) -> None:
        """Give resources back; whoever they suffice for starts."""
        self.used -= needs
        self._advance()

    def enter(self, entry: Entry) -> None:
        """Put a job at the end."""
        self._waiting.append(entry)
        self._advance()

    def leave(self, entry: Entry) -> None:
        """Take a job out; no error if it is not in."""
        if entry in self._waiting:
            self._waiting.remove(entry)
            self._advance()

    def _advance(self) -> None:
        while self._waiting and self._waiting[0].needs.fits(self.free):
            entry = self._waiting.pop(0)
            self.take(entry.needs)
            entry.start()
        for position, entry in enumerate(self._waiting):
            message = self._message(position, entry)
            if message != entry.message:
                entry.message = message
                entry.tell(message)

    def _message(self, position: int, entry: Entry) -> str:
        if position >= _COUNTED:
            return f"Waiting in this machine's queue, more than {_COUNTED - 1} jobs before it."
        if position:
            waits = f"{position} {'jobs' if position > 1 else 'job'} before it"
        else:
            waits = " and ".join(entry.needs.beyond(self.free))
        return f"Number {position + 1} in this machine's queue, waiting for {waits}."


def capacity_of(profile: Profile, gpus: int = 0) -> Resources:
    """Return what a profile may use: its settings ``cpu``, ``memoryMB`` and ``gpu``, else the machine's.

    Args:
        profile: the profile.
        gpus: how many GPUs the machine has.

    Raises:
        PaiJupyterError: ``bad-setting`` if one is no number.
    """
    return Resources(
        number(profile, "cpu", _CPU_PER_CORE * host.cores()),
        number(profile, "memoryMB", host.memory_mb()),
        number(profile, "gpu", gpus),
    )


def needs_of(job: Job) -> Resources:
    """Return what a whole job takes."""
    return sum((_role_needs(role) for role in job.roles.values()), Resources())


def _role_needs(role: Mapping[str, Any]) -> Resources:
    count = int(role.get("instances") or 1)
    each = role["resourcePerInstance"]
    return Resources(
        count * max(each.get("cpu") or 0, 0),
        count * max(each.get("memoryMB") or 0, 0),
        count * max(each.get("gpu") or 0, 0),
    )
