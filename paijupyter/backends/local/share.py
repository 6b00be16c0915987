"""What a job holds of the machine: its place in the queue, then its resources, ports and GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.changes import Changes
from paijupyter.backends.local.disk import Disk
from paijupyter.backends.local.ports import Ports, allocate
from paijupyter.backends.local.queue import Entry, Queue, needs_of
from paijupyter.backends.told import tasks_of, wanted_ports
from paijupyter.errors import PaiJupyterError

Devices = Mapping[str, list[str]]


@dataclass(eq=False)
class Hall:
    """What all jobs of a profile share.

    Attributes:
        boot: returns the zipapp that tasks run, building it if need be. Blocking.
        gpus: the GPUs that jobs may use, by the names that CUDA knows.
        disk: where jobs write.
        ports: those that jobs hold, though perhaps not yet bound.
        busy_gpus: those that jobs hold.
    """

    profile: Profile
    place: Place
    queue: Queue
    changes: Changes
    boot: Callable[[], Path]
    gpus: tuple[str, ...]
    disk: Disk
    ports: set[int] = field(default_factory=set)
    busy_gpus: set[str] = field(default_factory=set)


class Share:
    """The part of a hall that one job waits for and holds.

    Args:
        on_room: called when the job has got its resources.
        on_news: called with a sentence when what it waits for has changed.

    Attributes:
        has_room: whether it holds its resources.
        is_asked: whether it is in the queue, or through it.
    """

    def __init__(
        self, job: Job, hall: Hall, on_room: Callable[[], None], on_news: Callable[[str], None]
    ) -> None:
        self.has_room = False
        self.is_asked = False
        self._job = job
        self._hall = hall
        self._on_room = on_room
        self._needs = needs_of(job)
        self._entry = Entry(self._needs, self._enter_room, on_news)
        self._ports: set[int] = set()
        self._gpus: set[str] = set()

    @property
    def too_big(self) -> str:
        """What the job lacks even when it has the machine for itself, in words; "" if it fits."""
        return " and ".join(self._needs.beyond(self._hall.queue.capacity))

    def ask(self) -> None:
        """Wait in the queue; a job that can never fit does not, since all others would wait behind it."""
        self.is_asked = True
        if not self.too_big:
            self._hall.queue.enter(self._entry)

    def take(self, ports: set[int], devices: Devices) -> None:
        """Hold what an adopted job has."""
        self._hall.queue.take(self._needs)
        self.is_asked = self.has_room = True
        self._hold(ports, devices)

    def choose(self) -> tuple[Ports, dict[str, list[str]]]:
        """Choose ports and GPUs for every task, and hold them.

        Raises:
            PaiJupyterError: ``no-free-port``.
        """
        self._let_go()
        ports = allocate(wanted_ports(self._job), self._hall.ports)
        devices = self._choose_gpus()
        self._hold(numbers(ports), devices)
        return ports, devices

    def give_back(self) -> None:
        """Give everything back; no error if nothing is held."""
        self._let_go()
        self._hall.queue.leave(self._entry)
        if self.has_room:
            self.has_room = False
            self._hall.queue.give(self._needs)

    def _enter_room(self) -> None:
        self.has_room = True
        self._on_room()

    def _choose_gpus(self) -> dict[str, list[str]]:
        free = [name for name in self._hall.gpus if name not in self._hall.busy_gpus]
        chosen = {}
        for task in tasks_of(self._job):
            count = int(self._job.roles[task.role]["resourcePerInstance"].get("gpu") or 0)
            chosen[task.key], free = free[:count], free[count:]
        return chosen

    def _hold(self, ports: set[int], devices: Devices) -> None:
        self._ports = ports
        self._gpus = {name for names in devices.values() for name in names}
        self._hall.ports |= self._ports
        self._hall.busy_gpus |= self._gpus

    def _let_go(self) -> None:
        self._hall.ports -= self._ports
        self._hall.busy_gpus -= self._gpus
        self._ports, self._gpus = set(), set()


def refuse_too_big(job: Job, hall: Hall) -> None:
    """Refuse a job that would wait for ever.

    Raises:
        PaiJupyterError: ``never-fits``.
    """
    lacking = " and ".join(needs_of(job).beyond(hall.queue.capacity))
    if lacking:
        raise PaiJupyterError(
            "never-fits",
            f"Job `{job.name}` would never start: profile `{hall.profile.name}` lacks {lacking}.",
            "Ask for less, or raise the profile's capacity.",
            422,
        )


def numbers(ports: Ports) -> set[int]:
    """Return all ports of all tasks."""
    return {port for labels in ports.values() for found in labels.values() for port in found}
