"""Logs, events and waiting: streams that go on where they were when the connection drops.

Nothing is lost or doubled: each stream knows the offset, cursor or number of what it has passed on.
"""

from __future__ import annotations

import codecs
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paijupyter.client.transport import Answer, Unreachable, quoted
from paijupyter.errors import PaiJupyterError

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

_SILENCE_SECONDS = 60.0  # the server says something every 15 s
_TRIES = 5


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of the log of one task.

    Attributes:
        task: ``<role>-<index>``.
        attempt: number of the attempt, from 0.
        text: its text; not always whole lines.
    """

    task: str
    attempt: int
    text: str


class _Patience:
    """Counts failures in a row, and gives up at last."""

    def __init__(self, client: JobsClient) -> None:
        self._client = client
        self._failed = 0

    def progress(self) -> None:
        """Take note that something arrived."""
        self._failed = 0

    def failed(self, error: Unreachable) -> None:
        """Make ready for another try; raises the error if it was tried too often."""
        if self._failed >= _TRIES:
            raise error
        self._client.again(self._failed)
        self._failed += 1


def task_log(
    client: JobsClient, ref: str, task: str, *, follow: bool = False, tail: int | None = None
) -> Iterator[LogChunk]:
    """Yield the log of one task.

    Args:
        client: the client.
        ref: the job.
        task: ``<role>-<index>``.
        follow: go on until the task has ended.
        tail: begin with so many last lines.
    """
    patience = _Patience(client)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offset: int | None = None
    attempt = 0
    while True:
        # After a lost connection the same attempt goes on, also if the job is at another one by now.
        start = {"tail": tail} if offset is None else {"offset": offset, "attempt": attempt}
        try:
            query = {"task": task, "follow": follow, **start}
            with client.open("GET", quoted("jobs", ref, "logs"), query) as answer:
                if offset is None:
                    offset = int(answer.headers["X-Log-Offset"])
                    attempt = int(answer.headers["X-Log-Attempt"])
                while piece := answer.piece():
                    offset += len(piece)
                    patience.progress()
                    text = decoder.decode(piece)
                    if text:
                        yield LogChunk(task, attempt, text)
            rest = decoder.decode(b"", final=True)
            if rest:
                yield LogChunk(task, attempt, rest)
            return
        except Unreachable as error:
            patience.failed(error)


def merged_log(
    client: JobsClient, ref: str, *, follow: bool = False, tail: int | None = None
) -> Iterator[LogChunk]:
    """Yield the log of all tasks, by lines.

    Args:
        client: the client.
        ref: the job.
        follow: go on until the job is final.
        tail: begin with so many last lines of each task.
    """
    patience = _Patience(client)
    cursor: str | None = None
    while True:
        start = {"tail": tail} if cursor is None else {"cursor": cursor}
        try:
            query = {"follow": follow, **start}
            with client.open("GET", quoted("jobs", ref, "logs"), query, seconds=_SILENCE_SECONDS) as answer:
                for frame in objects(answer):
                    cursor = frame["cursor"]
                    patience.progress()
                    yield LogChunk(frame["task"], frame["attempt"], frame["text"])
            return
        except Unreachable as error:
            patience.failed(error)


def events(client: JobsClient, since: int | None = None, *, follow: bool = False) -> Iterator[dict[str, Any]]:
    """Yield changes, each a dictionary with ``seq`` and ``type``; complete from the time of this call.

    After a reconnection that cannot resume (the engine was started anew) comes
    ``{"type": "reset", "seq": n}``: list the jobs again; what follows is complete from there.

    Args:
        client: the client.
        since: number of the last event read; None: only those to come.
        follow: go on for ever.

    Raises:
        PaiJupyterError: ``events-gone`` if the number is too old at the first request.
    """
    return _events(client, _latest(client) if since is None else since, follow=follow)


def _events(client: JobsClient, last: int, *, follow: bool) -> Iterator[dict[str, Any]]:
    patience = _Patience(client)
    resumed = False
    while True:
        try:
            query = {"since": last, "follow": follow}
            with client.open("GET", "/v1/events", query, seconds=_SILENCE_SECONDS) as answer:
                for event in objects(answer):
                    last = event["seq"]
                    resumed = True
                    patience.progress()
                    yield event
            if not follow:
                return
        except Unreachable as error:
            patience.failed(error)
        except PaiJupyterError as error:
            if error.status != 410 or not resumed:
                raise
            last = _latest(client)
            yield {"type": "reset", "seq": last}
        resumed = True


def _latest(client: JobsClient) -> int:
    return int(client.list(limit=1)["seq"])


def until(client: JobsClient, since: int, end: float | None) -> Iterator[dict[str, Any]]:
    """Yield changes after a number, until the stream ends or a time is up.

    Args:
        client: the client.
        since: number of the last event read.
        end: moment of the monotonic clock, or None.

    Raises:
        Unreachable: the connection dropped.
        PaiJupyterError: ``events-gone`` if the number is too old.
    """
    with client.open("GET", "/v1/events", {"since": since, "follow": True}) as answer:
        yield from objects(answer, end)


def wait_for(client: JobsClient, ref: str, timeout: float | None) -> dict[str, Any]:
    """Return a job's view once it is final.

    Raises:
        PaiJupyterError: ``timeout`` if that takes too long.
    """
    end = None if timeout is None else time.monotonic() + timeout
    patience = _Patience(client)
    while True:
        last = _latest(client)
        view = client.get(ref)
        try:
            found = _final_view(client, view, last, end)
            if found is not None:
                return found
        except Unreachable as error:
            patience.failed(error)
        except PaiJupyterError as error:
            if error.status != 410:
                raise


def _final_view(
    client: JobsClient, view: dict[str, Any], since: int, end: float | None
) -> dict[str, Any] | None:
    """Follow events until the job is final; None if the stream ended first."""
    from paijupyter.client.client import is_final

    if is_final(view):
        return view
    try:
        with client.open("GET", "/v1/events", {"since": since, "follow": True}) as answer:
            for event in objects(answer, end):
                if event["type"] == "job" and event["job"]["id"] == view["id"] and is_final(event["job"]):
                    return dict(event["job"])
                if event["type"] == "deleted" and event["id"] == view["id"]:
                    return None  # asking for it again tells so
    except Unreachable:
        if end is None or time.monotonic() < end:
            raise
    if end is not None and time.monotonic() >= end:
        raise PaiJupyterError(
            "timeout", f"The job `{view['name']}` has not ended yet.", "It runs on; wait again.", 408
        )
    return None


def objects(answer: Answer, end: float | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of an NDJSON answer, until a time at most; a problem among them is raised."""
    rest = b""
    while True:
        left = _SILENCE_SECONDS if end is None else min(_SILENCE_SECONDS, end - time.monotonic())
        if left <= 0:
            return
        answer.silence(left)
        piece = answer.piece()
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if not line:
                continue
            value = json.loads(line)
            if "problem" in value:
                raise PaiJupyterError.from_problem_json(value["problem"])
            yield value
