"""Groups of experiments over the API: run, look, wait, stop, run again, delete, bring home."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client.transport import Unreachable, quoted
from paijupyter.client.words import FINAL
from paijupyter.errors import PaiJupyterError, UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

View = dict[str, Any]
_PAGE = 1000


class GroupsClient:
    """The groups of the job server; a ``ref`` is an id or a name, then the latest of that name.

    Args:
        client: speaks to it.
    """

    def __init__(self, client: JobsClient) -> None:
        self._client = client

    def plan(self, request: Mapping[str, Any]) -> View:
        """Say what running experiments would do; findings are in ``problems``, not raised."""
        return dict(self._client.ask("POST", "/v1/groups/plan", body=self._client.here(request)))

    def submit(self, request: Mapping[str, Any]) -> View:
        """Run experiments; a repeated ``requestId`` is one round.

        Raises:
            InvalidDocument: with all problems of all experiments.
        """
        named = {**request, "requestId": request.get("requestId") or str(uuid.uuid4())}
        return dict(self._client.ask("POST", "/v1/groups", body=self._client.here(named)))

    def list(self, *, folder: str | None = None, limit: int = 100, cursor: str | None = None) -> View:
        """Return a page of groups, latest first: ``{groups, next, seq}``."""
        return dict(
            self._client.ask("GET", "/v1/groups", {"folder": folder, "limit": limit, "cursor": cursor})
        )

    def get(self, ref: str) -> View:
        """Return one group."""
        return dict(self._client.ask("GET", quoted("groups", ref)))

    def experiments(self, ref: str, *, series: bool = False) -> tuple[View, ...]:
        """Return all experiments of a group, in their order.

        Args:
            ref: the group.
            series: with the course of every metric.
        """
        found: list[View] = []
        while True:
            query = {"offset": len(found), "limit": _PAGE, "series": series}
            page = self._client.ask("GET", quoted("groups", ref, "experiments"), query)
            found += page["experiments"]
            if len(found) >= page["total"] or not page["experiments"]:
                return tuple(found)

    def stop(self, ref: str) -> View:
        """Stop all of a group; what has not begun does not begin."""
        return dict(self._client.ask("POST", quoted("groups", ref, "stop"), body={}))

    def retry(self, ref: str, **changes: Any) -> View:
        """Run experiments once more.

        Args:
            ref: the group.
            changes: ``only``: keys, else those that failed; ``package``: other code; ``resume``: with the
                checkpoints they left; ``secrets``: values that cannot be resolved again.
        """
        body = {"requestId": str(uuid.uuid4()), **{name: value for name, value in changes.items() if value}}
        return dict(self._client.ask("POST", quoted("groups", ref, "retry"), body=body))

    def remove(self, ref: str, only: str = "") -> bool:
        """Stop and delete experiments, by default all of them; say whether there was such a group (T7)."""
        try:
            self._client.ask("POST", quoted("groups", ref, "remove"), body={"only": only} if only else {})
        except PaiJupyterError as error:
            if error.status != 404:
                raise
            return False
        return True

    def delete(self, ref: str) -> None:
        """Delete a group that has ended, with all of its jobs."""
        self._client.ask("DELETE", quoted("groups", ref))

    def wait(
        self, ref: str, timeout: float | None = None, told: Callable[[View], None] | None = None
    ) -> View:
        """Return a group's view once all of it has ended. Interrupting leaves it running.

        Args:
            ref: the group.
            timeout: seconds to wait at most.
            told: called with the group's view whenever something has changed.

        Raises:
            PaiJupyterError: ``timeout`` if the time is up.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            view = self.get(ref)
            if told is not None:
                told(view)
            if is_settled(view):
                return view
            final = self._followed(view, end, told)
            if final is not None:
                return final
            if end is not None and time.monotonic() >= end:
                message = f"Group `{view['name']}` has not ended yet."
                raise PaiJupyterError("timeout", message, "It goes on; wait again.", 408)

    def _followed(
        self, view: Mapping[str, Any], end: float | None, told: Callable[[View], None] | None
    ) -> View | None:
        """Follow events until the group has ended; None if the stream ended first."""
        from paijupyter.client.streams import until

        try:
            for event in until(self._client, int(view["seq"]), end):
                if event["type"] == "group" and event["group"]["id"] == view["id"]:
                    if told is not None:
                        told(event["group"])
                    if is_settled(event["group"]):
                        return dict(event["group"])
                elif event["type"] == "group-deleted" and event["id"] == view["id"]:
                    return None  # asking for it again tells so
        except Unreachable:
            if end is None or time.monotonic() < end:
                self._client.again(0)
        except PaiJupyterError as error:
            if error.status != 410:
                raise
        return None

    def pull(self, ref: str, folder: Path) -> tuple[Path, ...]:
        """Bring a group home: of each experiment its document, its log, and its outputs below its key.

        Raises:
            UsageProblem: the folder cannot be written.
        """
        written: list[Path] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for row in self.experiments(ref):
                if row["job"] is not None:
                    written += self._experiment(row, folder)
        except OSError as error:
            raise UsageProblem(f"Folder `{folder}` cannot be written: {error.strerror or error}.") from error
        return tuple(written)

    def _experiment(self, row: Mapping[str, Any], folder: Path) -> tuple[Path, ...]:
        from paijupyter.client.follow import prefixed

        job, name = str(row["job"]), str(row["key"]).replace("/", "-").lstrip(".") or "_"
        document, log = folder / f"{name}.yaml", folder / f"{name}.log"
        document.write_bytes(self._client.export(job).encode())
        with log.open("w", encoding="utf-8") as stream:
            stream.writelines(prefixed(self._client.logs(job), self._client.get(job)))
        outputs = self._client.pull(job, folder / name) if self._client.files(job) else []
        return document, log, *outputs


def is_settled(view: Mapping[str, Any]) -> bool:
    """Say whether all experiments of a group have ended."""
    return all(state in FINAL for state, count in view["counts"].items() if count)
