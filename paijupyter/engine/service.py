"""What the engine asks of the job service: the seam that routes are written against.

``paijupyter.jobs.JobService`` satisfies it; the tests of the engine have a smaller one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from paijupyter.backends.accounts import Login


class EventBus(Protocol):
    """The ordered stream of changes."""

    @property
    def seq(self) -> int:
        """Number of the latest event."""

    def since(self, seq: int) -> list[dict[str, Any]]:
        """Return the events after a number; raises ``events-gone`` (410) if some of them are forgotten."""

    def follow(self, since: int) -> AsyncIterator[dict[str, Any]]:
        """Yield the events after a number, for ever."""


class PackageStore(Protocol):
    """The trainer packages of this host; the manifest type is the store's own."""

    def missing(self, manifest: Any) -> Any:
        """Say what is not there yet."""

    def put_pack(self, manifest: Any, chunks: Iterable[bytes]) -> None:
        """Store the small files of a package."""

    def put_blob(self, sha256: str, chunks: Iterable[bytes]) -> None:
        """Store one large file."""

    def commit(self, manifest: Any) -> Any:
        """Make a complete package visible."""

    def manifest(self, sha256: str) -> Any:
        """Return the manifest of a package."""


class Accounts(Protocol):
    """Who the user is on the servers of profiles."""

    async def account(self, name: str) -> dict[str, Any]:
        """Say who is logged in."""

    async def login(self, name: str, login: Login) -> dict[str, Any]:
        """Log in and keep what the server gives."""

    async def logout(self, name: str) -> dict[str, Any]:
        """Forget what logins have kept."""

    async def offers(self, name: str, refresh: bool) -> dict[str, Any]:
        """Return what a form offers."""


class Settings(Protocol):
    """Profiles and stored secrets."""

    @property
    def accounts(self) -> Accounts:
        """Logins at profiles' servers."""

    def profiles(self) -> dict[str, Any]:
        """Return the profiles and where they are written."""

    def profile(self, name: str) -> dict[str, Any]:
        """Return one profile."""

    async def add_profile(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Write a new profile."""

    async def edit_profile(
        self, name: str, changes: Mapping[str, Any], unset: Sequence[str]
    ) -> dict[str, Any]:
        """Change fields of a profile."""

    async def remove_profile(self, name: str) -> dict[str, Any] | None:
        """Remove a profile; return what an administrator's file leaves of it."""

    async def choose_profile(self, name: str) -> dict[str, Any]:
        """Make a profile the default one."""

    async def test_profile(self, name: str) -> dict[str, Any]:
        """Ask a profile's backend what it can do."""

    async def secrets(self) -> list[str]:
        """Return the names of the stored secrets."""

    async def put_secret(self, name: str, value: str) -> None:
        """Store a secret."""

    async def remove_secret(self, name: str) -> None:
        """Remove a secret."""

    async def doctor(self) -> list[dict[str, Any]]:
        """Return the checks of this side."""


class Storages(Protocol):
    """The storages of the profiles; see :class:`paijupyter.jobs.storages.Storages`."""

    async def list(self, profile: str | None = None) -> dict[str, Any]:
        """List the storages of a profile."""

    async def entries(self, storage: str, path: str = "", profile: str | None = None) -> dict[str, Any]:
        """List what lies in a folder."""

    async def remove(
        self, storage: str, path: str, *, recursive: bool = False, profile: str | None = None
    ) -> None:
        """Remove a file or folder."""

    async def begin(
        self, storage: str, path: str, size: int, sha256: str, profile: str | None = None
    ) -> dict[str, Any]:
        """Say how much of a file is there."""

    async def receive(
        self,
        storage: str,
        path: str,
        sha256: str,
        offset: int,
        size: int,
        chunks: Iterable[bytes],
        profile: str | None = None,
    ) -> dict[str, Any]:
        """Take bytes of a file."""


class WholeLogs(Protocol):
    """What is asked about logs as a whole; see :class:`paijupyter.jobs.whole_logs.WholeLogs`."""

    async def search(
        self, ref: str, text: str, task: str | None = None, attempt: int | None = None, most: int = 1000
    ) -> dict[str, Any]:
        """Search a log."""

    async def times(
        self, ref: str, places: Sequence[tuple[str, int]], attempt: int | None = None, most: int = 1000
    ) -> dict[str, Any]:
        """Say when lines were written."""


class History(Protocol):
    """What jobs were made of; see :class:`paijupyter.jobs.history.History`."""

    async def provenance(self, ref: str) -> dict[str, Any]:
        """Return what a job was made of."""

    async def diff(self, before: str, after: str) -> dict[str, Any]:
        """Return what changed from one job to another."""

    async def rerun(
        self, ref: str, secrets: Mapping[str, Any] | None = None, request_id: str | None = None
    ) -> dict[str, Any]:
        """Submit exactly the same once more."""

    async def report(
        self, refs: Sequence[str], title: str | None = None, tag: str | None = None
    ) -> dict[str, Any]:
        """Return a notebook that shows jobs side by side."""


class Groups(Protocol):
    """Groups of experiments; see :class:`paijupyter.jobs.groups.Groups`."""

    async def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Say what running experiments would do."""

    async def submit(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Record a round of experiments; the flag says whether the group is new."""

    def list(
        self, *, folder: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> dict[str, Any]:
        """Return a page of groups, latest first."""

    def get(self, ref: str) -> dict[str, Any]:
        """Return one group."""

    async def experiments(
        self, ref: str, *, offset: int = 0, limit: int = 1000, series: bool = False
    ) -> dict[str, Any]:
        """Return a page of experiments."""

    async def stop(self, ref: str) -> dict[str, Any]:
        """Stop all of a group."""

    async def retry(self, ref: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Run experiments once more."""

    async def remove(self, ref: str, only: str = "") -> None:
        """Stop and delete experiments."""

    async def delete(self, ref: str) -> None:
        """Delete a settled group."""


class Entrances(Protocol):
    """The ways into running tasks; see :class:`paijupyter.jobs.entering.Entrances`."""

    def exec(
        self, ref: str, task: str | None, command: Sequence[str], stdin: bytes
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Run a command in a task."""

    async def forward(self, ref: str, task: str | None, port: int | str) -> dict[str, Any]:
        """Listen for a port of a task."""


class Outputs(Protocol):
    """What jobs have left; see :class:`paijupyter.jobs.job_outputs.JobOutputs`."""

    def list(self, ref: str) -> Iterable[Mapping[str, Any]]:
        """List the outputs."""

    def file(self, ref: str, path: str) -> Path:
        """Return where one output lies."""

    def pull(
        self, ref: str, folder: Path, paths: Sequence[str] | None = None, replace: bool = False
    ) -> AsyncIterator[dict[str, Any]]:
        """Copy outputs into a folder."""

    async def tensorboard(self, ref: str, python: str | None = None) -> dict[str, Any]:
        """Start TensorBoard on the outputs."""


class Adoption(Protocol):
    """Jobs that another host submitted; see :class:`paijupyter.jobs.adopting.Adoption`."""

    async def adopt(self, profile: str | None, user: str | None) -> dict[str, Any]:
        """Take over the unfinished jobs of a user."""


class Service(Protocol):
    """All work on jobs, as the routes call it."""

    @property
    def groups(self) -> Groups:
        """The groups of experiments."""

    @property
    def storages(self) -> Storages:
        """The storages of the profiles."""

    @property
    def adoption(self) -> Adoption:
        """Jobs that another host submitted."""

    @property
    def entrances(self) -> Entrances:
        """The ways into running tasks."""

    @property
    def outputs(self) -> Outputs:
        """What jobs have left."""

    @property
    def history(self) -> History:
        """What jobs were made of."""

    @property
    def whole_logs(self) -> WholeLogs:
        """What is asked about logs as a whole."""

    @property
    def events(self) -> EventBus:
        """The stream of changes."""

    @property
    def packages(self) -> PackageStore:
        """The package store."""

    async def start(self) -> None:
        """Open the index and adopt unfinished jobs."""

    async def close(self) -> None:
        """Let go; tasks run on."""

    @property
    def settings(self) -> Settings:
        """Profiles and stored secrets."""

    async def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Say what a submission would do."""

    async def submit(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Submit a job; the flag says whether it is new."""

    def list(
        self,
        *,
        state: str | None = None,
        profile: str | None = None,
        folder: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        group: str | None = None,
    ) -> dict[str, Any]:
        """Return a page of jobs, latest first."""

    def get(self, ref: str, *, folder: str | None = None, kernel: str | None = None) -> dict[str, Any]:
        """Return one job."""

    def tasks(
        self, ref: str, *, attempt: int | None = None, offset: int = 0, limit: int = 100
    ) -> dict[str, Any]:
        """Return a page of tasks."""

    def ports(self, ref: str) -> Iterable[Mapping[str, Any]]:
        """List the open ports of a running job."""

    async def stop(self, ref: str) -> dict[str, Any]:
        """Stop a job."""

    async def retry(self, ref: str, request_id: str | None = None) -> dict[str, Any]:
        """Submit the same job again."""

    async def clone(
        self, ref: str, changes: Mapping[str, Any], request_id: str | None = None
    ) -> dict[str, Any]:
        """Submit a changed copy."""

    async def give_secrets(self, ref: str, secrets: Mapping[str, Any]) -> dict[str, Any]:
        """Give a waiting job the values of its secrets again."""

    async def delete(self, ref: str) -> None:
        """Forget a final job."""

    def export(self, ref: str, what: str) -> str:
        """Return the source or the submitted document."""

    def log_size(self, ref: str, task: str, attempt: int | None = None) -> int:
        """Return the size of a task's log in bytes."""

    def logs(
        self, ref: str, task: str, attempt: int | None = None, offset: int = 0, follow: bool = False
    ) -> AsyncIterator[bytes]:
        """Yield a task's log."""

    def merged_log(
        self,
        ref: str,
        cursor: str | None = None,
        follow: bool = False,
        tail: int | None = None,
        line: tuple[int, str, int] | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield frames of all tasks' logs."""

    def unfinished(self) -> int:
        """Count the jobs that are not final."""
