"""The handle of a job in a notebook: what ``%%paijob --as job`` and ``JobsClient`` give to people."""

from __future__ import annotations

import contextlib
import getpass
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client import card, follow
from paijupyter.client.words import FINAL
from paijupyter.errors import PaiJupyterError, Problem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient


class JobFailed(PaiJupyterError):
    """A job that somebody waited for did not succeed; ``view`` is its JobView."""

    def __init__(self, view: Mapping[str, Any]) -> None:
        said = card.outcome(view)
        message = f"Job `{view['name']}` {said}" + ("" if said.endswith(".") else ".")
        super().__init__("job-" + str(view["state"]), message, str(view.get("advice") or ""), 409)
        self.view = view

    def _render_traceback_(self) -> list[str]:
        """Show one line in a notebook (IPython asks for it): the cause lies in the job, not in the cell."""
        return [str(self)]


class Job:
    """A submitted job.

    Attributes:
        view: the JobView as last seen; :meth:`refresh` looks again.
    """

    def __init__(
        self, view: Mapping[str, Any], client: JobsClient | None = None, problems: Iterable[Problem] = ()
    ) -> None:
        self.view: Mapping[str, Any] = view
        self._client = client
        self._problems = tuple(problems)

    @classmethod
    def attach(cls, ref: str, client: JobsClient | None = None) -> Job:
        """Return the handle of a job by name, short name, id, or ``last``.

        Raises:
            NotFound: there is no such job.
        """
        found = client or _connect()
        return cls(found.get(ref), found)

    @property
    def client(self) -> JobsClient:
        """The client that this handle speaks through; connects on first use."""
        if self._client is None:
            self._client = _connect()
        return self._client

    @property
    def id(self) -> str:
        """The id, unique for ever."""
        return str(self.view["id"])

    @property
    def name(self) -> str:
        """The full name, with suffix."""
        return str(self.view["name"])

    @property
    def state(self) -> str:
        """``waiting``, ``running``, ``succeeded``, ``failed`` or ``stopped``, as last seen."""
        return str(self.view["state"])

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.state in FINAL

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters it was submitted with."""
        return dict(self.view.get("parameters") or {})

    @property
    def metrics(self) -> dict[str, Any]:
        """The latest value of each metric, looked up now."""
        found = self.refresh().view.get("metrics") or {}
        return dict(found.get("last") or {})

    @property
    def outputs(self) -> list[str]:
        """Paths of its output files, below the task that wrote them."""
        return [str(each["path"]) for each in self.client.files(self.id)]

    def refresh(self) -> Job:
        """Look up the job's state; return this handle."""
        self.view = self.client.get(self.id)
        return self

    def wait(self, timeout: float | None = None) -> Job:
        """Wait until the job has ended; return this handle. Interrupting leaves the job running.

        Args:
            timeout: seconds to wait at most.

        Raises:
            PaiJupyterError: the time is up.
        """
        self.view = self.client.wait(self.id, timeout=timeout)
        return self

    def check(self) -> Job:
        """Return this handle if the job succeeded.

        Raises:
            JobFailed: it failed or was stopped; it says which task and why.
        """
        if self.state in ("failed", "stopped"):
            raise JobFailed(self.view)
        return self

    def logs(self, task: str | None = None, tail: int | None = None) -> str:
        """Return the log so far: of one task as it is, of all with each line's task before it.

        Args:
            task: key of a task, for example ``worker-0``.
            tail: only so many last lines of each task.
        """
        chunks = self.client.logs(self.id, task=task, tail=tail)
        if task is not None:
            return "".join(chunk.text for chunk in chunks)
        return "".join(follow.prefixed(chunks, self.view))

    def stop(self) -> Job:
        """Stop the job; its record and logs stay. Return this handle."""
        self.view = self.client.stop(self.id)
        return self

    def retry(self, resume_from: str | None = None) -> Job:
        """Submit the same document and package once more; return the new job's handle.

        Secrets of ``ask`` are asked for, those of ``env:`` read from this process's environment.

        Args:
            resume_from: a job with whose checkpoints it begins, often this one's name.
        """
        from paijupyter.client.submission import again

        secrets = again(self.view.get("secretReferences") or {}, (), getpass.getpass)
        return Job(self.client.retry(self.id, secrets or None, resume_from=resume_from), self.client)

    def pull(self, dest: str | Path = ".", paths: Sequence[str] | None = None) -> list[Path]:
        """Bring the output files into a folder; return their paths there.

        Args:
            dest: the folder, made if absent.
            paths: only these output files.
        """
        return list(self.client.pull(self.id, Path(dest), paths))

    def __repr__(self) -> str:
        return f"<Job {self.name} {self.state}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Show the card: a reference that a front end draws live, and snapshots as HTML and text."""
        if not self.is_final:
            # A job server that does not answer now must not keep a notebook from showing what was seen last.
            with contextlib.suppress(PaiJupyterError, OSError):
                self.refresh()
        return card.bundle(self.view, self._problems)


def _connect() -> JobsClient:
    from paijupyter.client.client import JobsClient

    return JobsClient.connect()
