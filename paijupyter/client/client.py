"""The client of the job server: one method per thing the API can do."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter import paths
from paijupyter._version import __version__
from paijupyter.client.transport import Answer, Body, Transport, UnixTransport, Unreachable, quoted
from paijupyter.errors import PaiJupyterError

if TYPE_CHECKING:
    from paijupyter.client.groups import GroupsClient
    from paijupyter.client.history import HistoryClient
    from paijupyter.client.settings import SettingsClient
    from paijupyter.client.storages import StoragesClient
    from paijupyter.client.store import RemoteStore
    from paijupyter.client.streams import LogChunk

View = dict[str, Any]
Rows = list[View]
Paths = list[Path]
_FINAL = frozenset({"succeeded", "failed", "stopped"})
_TRIES = 4
_PAUSE = 0.1
_SILENCE_SECONDS = 300.0


class JobsClient:
    """Speaks to the job server. Threads may share it; an interrupt only ends the call, never a job.

    When the connection drops, the request is sent again; on this host the engine is started again if need be.

    Args:
        transport: how requests travel.
        revive: makes the server answer again, or raises; None where that is not in our hands.
    """

    def __init__(self, transport: Transport, revive: Callable[[], object] | None = None) -> None:
        self._transport = transport
        self._revive = revive

    @classmethod
    def connect(cls, *, start: bool = True) -> JobsClient:
        """Return a client of the engine of this user and host.

        Args:
            start: start the engine if none runs, and replace one that is older than this client.

        Raises:
            PaiJupyterError: ``engine-failed`` if it cannot be started, ``server-unreachable`` if it may not.
        """
        from paijupyter.client.start import current_engine, ensure_engine

        if not start:
            client = cls(UnixTransport(paths.engine_socket()))
            client.version()
            return client
        client = cls(UnixTransport(ensure_engine()), revive=ensure_engine)
        current_engine(client)
        return client

    @classmethod
    def over_http(cls, url: str, token: str = "") -> JobsClient:
        """Return a client that goes through a Jupyter server.

        Args:
            url: base URL of the server.
            token: its token.
        """
        from paijupyter.client.transport import HttpTransport

        return cls(HttpTransport(url, token))

    # -- one request ----------------------------------------------------------------------------------

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request and return the JSON of its answer, None for an empty one.

        Raises:
            PaiJupyterError: what the server says is wrong, or ``server-unreachable``.
        """
        _, value = self._ask(method, path, query, body)
        return value

    def send(self, path: str, chunks: Iterable[bytes]) -> None:
        """Send bytes as they come (PUT); this cannot be repeated here."""
        headers = {"Content-Type": "application/octet-stream"}
        with self.open("PUT", path, body=chunks, headers=headers):
            return

    def open(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Answer:
        """Send a request and return the head of its good answer; see :meth:`Transport.request`.

        Raises:
            PaiJupyterError: what the server says is wrong, or ``server-unreachable``.
        """
        answer = self._transport.request(method, path, query, body, headers, seconds)
        if answer.status < 400:
            return answer
        with answer:
            raise _refusal(answer)

    def again(self, failed: int) -> None:
        """Prepare to repeat a request that got no answer: wait, and make the server answer.

        Args:
            failed: how often it has failed in a row.
        """
        time.sleep(_PAUSE * (2**failed - 1))
        if self._revive is not None:
            self._revive()

    def _ask(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: Mapping[str, Any] | None
    ) -> tuple[int, Any]:
        raw = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json"} if raw is not None else None
        for failed in range(_TRIES):
            try:
                with self.open(method, path, query, raw, headers, _SILENCE_SECONDS) as answer:
                    data = answer.read()
                return answer.status, json.loads(data) if data else None
            except Unreachable as error:
                if error.silent or failed == _TRIES - 1:
                    raise
                self.again(failed)
            except PaiJupyterError as error:
                if method == "DELETE" and failed and error.status == 404:
                    return 204, None  # the first try did it, only its answer was lost
                raise
        raise AssertionError("unreachable")

    # -- the server -----------------------------------------------------------------------------------

    def version(self) -> dict[str, Any]:
        """Return ``{version, api, engine: {pid, startedAt, host}, backends, unfinished}``."""
        return dict(self.ask("GET", "/v1/version"))

    def schema(self) -> dict[str, Any]:
        """Return ``{fields, document}``: the table of fields and the document's JSON schema."""
        return dict(self.ask("GET", "/v1/schema"))

    def profiles(self) -> Rows:
        """Return the profiles."""
        return list(self.ask("GET", "/v1/profiles")["profiles"])

    @property
    def settings(self) -> SettingsClient:
        """Profiles, stored secrets, and the engine's own checks."""
        from paijupyter.client.settings import SettingsClient

        return SettingsClient(self)

    def storages(self, profile: str | None = None) -> StoragesClient:
        """Return the storages of a profile, by default of the default one."""
        from paijupyter.client.storages import StoragesClient

        return StoragesClient(self, profile)

    @property
    def history(self) -> HistoryClient:
        """What jobs were made of; notebooks that are jobs."""
        from paijupyter.client.history import HistoryClient

        return HistoryClient(self)

    @property
    def groups(self) -> GroupsClient:
        """The groups of experiments."""
        from paijupyter.client.groups import GroupsClient

        return GroupsClient(self)

    @property
    def store(self) -> RemoteStore:
        """The package store of the server."""
        from paijupyter.client.store import RemoteStore

        return RemoteStore(self)

    # -- documents ------------------------------------------------------------------------------------

    def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Say what a submission would do; findings are in ``problems``, not raised."""
        return dict(self.ask("POST", "/v1/plan", body=self.here(request)))

    def check(self, text: str, target: str = "paijupyter") -> Rows:
        """Return everything that is wrong with a job document."""
        return list(self.ask("POST", "/v1/document/check", body={"text": text, "target": target})["problems"])

    def edit(self, text: str, patch: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Apply a JSON Patch to a document's text: ``{text, problems}``."""
        return dict(self.ask("POST", "/v1/document/edit", body={"text": text, "patch": list(patch)}))

    # -- jobs -----------------------------------------------------------------------------------------

    def submit(self, request: Mapping[str, Any]) -> View:
        """Submit a job; a repeated ``requestId`` gives the same job.

        Returns:
            The JobView, with ``created``: False if it is an unfinished job of the same cell.

        Raises:
            InvalidDocument: with all problems.
        """
        named = {**request, "requestId": request.get("requestId") or str(uuid.uuid4())}
        status, view = self._ask("POST", "/v1/jobs", None, self.here(named))
        return {**view, "created": status == 201}

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
        """Return a page of jobs, latest first: ``{jobs, next, seq}``.

        ``group`` names the group whose jobs are meant; ``-`` means jobs of no group.
        """
        query = {"state": state, "profile": profile, "folder": folder, "limit": limit, "cursor": cursor}
        return dict(self.ask("GET", "/v1/jobs", {**query, "group": group}))

    def get(self, ref: str, *, folder: str | None = None, kernel: str | None = None) -> View:
        """Return a job by id, name, short name, or ``last`` (of a folder or kernel)."""
        return dict(self.ask("GET", quoted("jobs", ref), {"folder": folder, "kernel": kernel}))

    def tasks(
        self, ref: str, *, attempt: int | None = None, offset: int = 0, limit: int = 100
    ) -> dict[str, Any]:
        """Return a page of tasks: ``{tasks, total}``."""
        query = {"attempt": attempt, "offset": offset, "limit": limit}
        return dict(self.ask("GET", quoted("jobs", ref, "tasks"), query))

    def stop(self, ref: str) -> View:
        """Stop a job, and return when its processes are gone."""
        return dict(self.ask("POST", quoted("jobs", ref, "stop"), body={}))

    def retry(
        self, ref: str, secrets: Mapping[str, Any] | None = None, *, resume_from: str | None = None
    ) -> View:
        """Submit the same document and package as a new job.

        Args:
            ref: the job.
            secrets: values that cannot be resolved again.
            resume_from: the job with whose checkpoints it begins, often the same; None: with none.
        """
        changes = {"secrets": secrets, "resumeFrom": resume_from}
        body = {"requestId": str(uuid.uuid4()), **{name: value for name, value in changes.items() if value}}
        return dict(self.ask("POST", quoted("jobs", ref, "retry"), body=body))

    def clone(self, ref: str, changes: Mapping[str, Any]) -> View:
        """Submit a changed copy as a new job.

        Args:
            ref: the job.
            changes: ``document``: another text; ``secrets``: values that cannot be resolved again;
                ``resumeFrom``: the job with whose checkpoints it begins.
        """
        body = {"requestId": str(uuid.uuid4()), **changes}
        return dict(self.ask("POST", quoted("jobs", ref, "clone"), body=body))

    def delete(self, ref: str) -> None:
        """Forget a final job, its logs and outputs."""
        self.ask("DELETE", quoted("jobs", ref))

    def export(self, ref: str, what: str = "source") -> str:
        """Return the source document byte for byte, or the ``submitted`` one."""
        for failed in range(_TRIES):
            try:
                with self.open("GET", quoted("jobs", ref, "export"), {"what": what}) as answer:
                    return answer.read().decode()
            except Unreachable:
                if failed == _TRIES - 1:
                    raise
                self.again(failed)
        raise AssertionError("unreachable")

    def wait(self, ref: str, timeout: float | None = None) -> View:
        """Wait until a job is final. Interrupting leaves the job running.

        Args:
            ref: the job.
            timeout: seconds to wait at most.

        Raises:
            PaiJupyterError: ``timeout`` if the time is up.
        """
        from paijupyter.client.streams import wait_for

        return wait_for(self, ref, timeout)

    # -- streams --------------------------------------------------------------------------------------

    def logs(
        self, ref: str, task: str | None = None, *, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogChunk]:
        """Yield the log of one task or of all, in pieces; see :func:`streams.task_log`."""
        from paijupyter.client import streams

        if task is None:
            return streams.merged_log(self, ref, follow=follow, tail=tail)
        return streams.task_log(self, ref, task, follow=follow, tail=tail)

    def events(self, since: int | None = None, *, follow: bool = False) -> Iterator[dict[str, Any]]:
        """Yield changes after a number; see :func:`streams.events`."""
        from paijupyter.client import streams

        return streams.events(self, since, follow=follow)

    # -- outputs --------------------------------------------------------------------------------------

    def files(self, ref: str) -> Rows:
        """List the outputs: ``[{path, size}]``."""
        return list(self.ask("GET", quoted("jobs", ref, "files"))["files"])

    def pull(self, ref: str, dest: Path | str, paths: Sequence[str] | None = None) -> Paths:
        """Bring outputs into a folder; each appears there when it is whole.

        Args:
            ref: the job.
            dest: the folder; made if absent.
            paths: which ones, as :meth:`files` names them; None means all.

        Returns:
            Where they are now.
        """
        from paijupyter.client.pull import pull

        return pull(self, ref, Path(dest), paths)

    def here(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out what names a place of this host, if the server may be on another."""
        if not self._transport.remote or not request.get("context"):
            return dict(request)
        context = {
            name: value
            for name, value in request["context"].items()
            if not (name in {"folder", "notebook", "python"} and os.path.isabs(str(value)))
        }
        return {**request, "context": context}


def is_final(view: Mapping[str, Any]) -> bool:
    """Say whether a job has ended."""
    return view["state"] in _FINAL


def is_older(theirs: str, ours: str = __version__) -> bool:
    """Say whether a server's version is older than ours, by the numbers at its beginning."""
    return _numbers(theirs) < _numbers(ours)


def _numbers(version: str) -> list[int]:
    numbers = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return numbers


def _refusal(answer: Answer) -> PaiJupyterError:
    try:
        data = json.loads(answer.read())
    except ValueError:
        data = {}
    return PaiJupyterError.from_problem_json(data if isinstance(data, dict) else {}, answer.status)
