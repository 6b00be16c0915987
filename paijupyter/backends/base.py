"""The seam between the service and a place where jobs run.

A backend is a class that satisfies :class:`Backend`, found by the entry point group ``paijupyter.backends``
under its kind (``local``, ``kubernetes``, ``openpai``, or one from another package) and proved by the
contract tests of ``tests/backends/contract.py``.

States on every screen are those of :data:`State`; the finer fact goes into ``reason``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

from paijupyter.data.storages import Storage
from paijupyter.errors import PaiJupyterError, Problem
from paijupyter.protocol.data import DataSource

State = Literal["waiting", "running", "succeeded", "failed", "stopped"]
FINAL: frozenset[str] = frozenset({"succeeded", "failed", "stopped"})


@dataclass(frozen=True, slots=True)
class Profile:
    """A named, configured backend; ``settings`` hold only what the backend's kind understands."""

    name: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Package:
    """A trainer package in the store of this host.

    Attributes:
        sha256: hash of the manifest, 64 hex digits.
        folder: where its ``manifest.json`` and ``pack`` lie.
        blobs: folder of the large files' blobs, ``<blobs>/<first two digits>/<sha256>``.
    """

    sha256: str
    folder: Path
    blobs: Path


@dataclass(frozen=True, slots=True)
class Data:
    """A source of a job's data, as far as it was prepared on this host.

    Attributes:
        source: the source as the document names it.
        package: files that travelled with the job (kind ``file``), in the store of this host; else None.
        key: of what the engine has fetched, in the cache of this host (``datasets/<key>/content``); "" for
            what the task fetches itself, or what lies in a storage.
    """

    source: DataSource
    package: Package | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """What a backend is told of a job. All of it is in the job's folder, so it can be read again at any time.

    Attributes:
        id: unique, never reused.
        name: the user's short name and a suffix, unique per user.
        user: the name the job runs for (``PAI_USER_NAME``).
        folder: the job's folder on this host; the backend may write below ``tasks/`` and ``output/``.
        document: the checked job document as plain values, parameters not yet rendered.
        commands: per task role the rendered command text; only ``$secrets`` references are left in it.
        package: its trainer package, or None.
        python: interpreter of the submitting kernel, for backends that run on this host.
        data: its sources of data, in the order of the document.
        group: id of the group whose experiment it is, or "".
        experiment: the experiment's key in that group, or "".
        resumes: name of an earlier job of the same profile, with whose checkpoints it begins, where the
            profile keeps them and not this host; else "".
    """

    id: str
    name: str
    user: str
    folder: Path
    document: Mapping[str, Any]
    commands: Mapping[str, str]
    package: Package | None = None
    python: str | None = None
    data: tuple[Data, ...] = ()
    group: str = ""
    experiment: str = ""
    resumes: str = ""

    @property
    def roles(self) -> Mapping[str, Mapping[str, Any]]:
        """The document's ``taskRoles``."""
        return cast("Mapping[str, Mapping[str, Any]]", self.document["taskRoles"])

    @property
    def extras(self) -> Mapping[str, Any]:
        """The document's ``extras.paijupyter``, or an empty mapping."""
        extras = self.document.get("extras") or {}
        return cast("Mapping[str, Any]", extras.get("paijupyter") or {})


@dataclass(frozen=True, slots=True)
class Exit:
    """Why a task ended.

    Attributes:
        code: exit status of the user's command, or None if it never ran or died by a signal.
        signal: name of the signal that ended it (``SIGKILL``), or None.
        last_lines: the last lines of its log, masked, at most 20.
    """

    code: int | None = None
    signal: str | None = None
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """One task as a backend sees it. Times are seconds since the epoch (UTC)."""

    role: str
    index: int
    attempt: int
    state: State
    reason: str = ""
    message: str = ""
    exit: Exit | None = None
    started_at: float | None = None
    ended_at: float | None = None

    @property
    def key(self) -> str:
        """``<role>-<index>``, the task's name on every screen."""
        return f"{self.role}-{self.index}"


@dataclass(frozen=True, slots=True)
class Change:
    """One step in the life of a job.

    Attributes:
        job: id of the job.
        attempt: number of the attempt, from 0.
        state: the job's state after this step; a final state is sent exactly once.
        reason: the finer fact, from the list in docs/reference/states.
        message: one sentence for people.
        tasks: the tasks that changed, not all of them.
        failed_task: key of the task that decided a failure.
        at: seconds since the epoch (UTC).
    """

    job: str
    attempt: int
    state: State
    at: float
    reason: str = ""
    message: str = ""
    tasks: tuple[TaskStatus, ...] = ()
    failed_task: str | None = None


@dataclass(frozen=True, slots=True)
class GpuUsage:
    """What is used of one GPU: its name, how busy it is (0 to 1, None if it does not say), memory in MiB."""

    name: str
    busy: float | None = None
    memory_mb: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a task uses.

    Attributes:
        cpu: cores, as the mean since it was last measured.
        memory_mb: resident memory of all its processes, in MiB.
        gpus: the GPUs that it has.
    """

    cpu: float
    memory_mb: float
    gpus: tuple[GpuUsage, ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a profile can do now. ``unreachable`` says why it cannot be asked, instead of raising."""

    kind: str
    version: str = ""
    features: frozenset[str] = frozenset()  # of: exec forward gpu image queue stop-saves-logs
    capacity: Mapping[str, float] = field(default_factory=dict)  # cpu, memoryMB, gpu in total
    free: Mapping[str, float] = field(default_factory=dict)
    queues: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()
    unreachable: str = ""


@dataclass(frozen=True, slots=True)
class BackendPlan:
    """What ``submit`` would do, found without side effects.

    Attributes:
        submitted: the submitted document, as text.
        objects: what would be created, each with ``kind`` and ``name``.
        problems: everything this backend has against it or leaves out.
        starts: one phrase on when it would start (``now``, ``after 2 jobs``).
        as_written: whether a manifest that the document was made of goes as it is: nothing of it is lost.
    """

    submitted: str
    objects: tuple[Mapping[str, Any], ...] = ()
    problems: tuple[Problem, ...] = ()
    starts: str = ""
    as_written: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a backend may keep things on this host: both folders are private to the user."""

    data: Path
    runtime: Path


@runtime_checkable
class Backend(Protocol):
    """A kind of place where jobs run. All methods may be called at any time, from one event loop."""

    def __init__(self, profile: Profile, place: Place) -> None:
        """Keep the profile; open nothing yet."""

    async def capabilities(self) -> Capabilities:
        """Say what it can do; never raises for "not reachable"."""

    async def plan(self, job: Job) -> BackendPlan:
        """Say what submitting would do; no side effect. The job's folder need not exist."""

    async def submit(self, job: Job, secrets: Mapping[str, str]) -> None:
        """Create the job; idempotent by job id; half-done work is rolled back before it raises."""

    def watch(self, known: Sequence[Job]) -> AsyncIterator[Change]:
        """Stream changes of all jobs of the profile, from before and after this call, until closed.

        Args:
            known: the unfinished jobs that the service has records of. The backend adopts them: their
                current state is the first change of each; one it no longer knows is failed, ``lost``.
        """

    def logs(self, job: Job, role: str, index: int, attempt: int, offset: int) -> AsyncIterator[bytes]:
        """Yield a task's log from a byte offset, and follow until the task has ended."""

    async def stop(self, job: Job) -> None:
        """Save logs, end all processes of the job, return when they are gone; idempotent."""

    async def delete(self, job: Job) -> None:
        """Remove what the backend still keeps of a final job; the job's folder is not its business."""

    async def close(self) -> None:
        """Let go of everything of this process; jobs run on."""


@runtime_checkable
class HasStorages(Protocol):
    """A backend whose profile has storages; ``paijob data`` works on those in a folder of this host."""

    def storages(self) -> Mapping[str, Storage]:
        """Return the storages by name.

        Raises:
            PaiJupyterError: ``bad-storage`` if the profile's settings cannot be used.
        """


@runtime_checkable
class Measuring(Protocol):
    """What a backend may do beside: measure its tasks."""

    async def usage(self, job: Job) -> Mapping[str, Usage]:
        """Return what each running task of the job uses now, by its key; those not known are left out."""


@runtime_checkable
class Batching(Protocol):
    """What a backend may do beside: take many jobs with less work than one after the other."""

    async def submit_many(
        self, jobs: Sequence[tuple[Job, Mapping[str, str]]]
    ) -> Sequence[PaiJupyterError | None]:
        """Create jobs, most of them of one template, each with its secrets; idempotent by job id.

        Returns:
            For each job in order None, or why it was not created, with what was half done rolled back.
        """

    def submitted(self, job: Job) -> str:
        """Return the document of a job as its plan shows it, without planning it."""


@runtime_checkable
class Connection(Protocol):
    """An open connection to a port of a task."""

    async def read(self) -> bytes:
        """Return what has come, at least one byte; b"" at the end."""

    async def write(self, data: bytes) -> None:
        """Send bytes."""

    async def close(self) -> None:
        """End it; no error if it has ended."""


@runtime_checkable
class Entering(Protocol):
    """A backend whose tasks are elsewhere: what runs there is entered through it."""

    def exec(
        self, job: Job, role: str, index: int, command: Sequence[str], stdin: bytes
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Run a command in a running task.

        Yields:
            ``stdout`` or ``stderr`` and bytes, as they come; last ``exit`` and the exit code as a number.

        Raises:
            PaiJupyterError: it cannot be run.
        """

    async def connect(self, job: Job, role: str, index: int, port: int) -> Connection:
        """Open a connection to a port of a running task.

        Raises:
            PaiJupyterError: it cannot be reached.
        """


@runtime_checkable
class Remembering(Protocol):
    """A backend whose place remembers jobs, so that another host can take them over."""

    async def remembered(self) -> Sequence[Mapping[str, Any]]:
        """Return the jobs that have not ended: ``id``, ``user``, ``source``, ``commands`` and ``facts`` each.

        Raises:
            PaiJupyterError: it cannot be asked.
        """


def backend_kinds() -> dict[str, Any]:
    """Return the installed backend kinds and their entry points, not yet loaded."""
    return {point.name: point for point in entry_points(group="paijupyter.backends")}


def load_backend(profile: Profile, place: Place) -> Backend:
    """Make the backend of a profile.

    Raises:
        PaiJupyterError: ``unknown-backend`` if no installed package has the kind.
    """
    kinds = backend_kinds()
    if profile.kind not in kinds:
        raise PaiJupyterError(
            "unknown-backend",
            f"Profile `{profile.name}` is of kind `{profile.kind}`, which no installed package has.",
            f"Installed kinds: {', '.join(sorted(kinds)) or 'none'}.",
            422,
        )
    return cast("Backend", kinds[profile.kind].load()(profile, place))
