"""The logs of tasks, copied to this host by ranges: no byte that the server still has is lost or doubled.

The server keeps a file ``all`` and, once that was full, one older file. Every read begins with the last bytes
that are here already: if they are not the same, the files have been moved on (openpai.md 8.4).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paijupyter.backends import logs
from paijupyter.backends.jsonfiles import read_json, write_json
from paijupyter.backends.openpai.answers import mapping, text
from paijupyter.backends.openpai.budget import Turn
from paijupyter.backends.openpai.client import OpenPaiClient
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.waiting import happens

_log = logging.getLogger(__name__)
_OVERLAP = 64  # bytes that are read again to see that nothing was moved
_PAUSES = (0.5, 10.0)  # seconds between two reads while somebody follows: after news, and at most
_TRIES = 4  # reads of a task that has ended, until its log is given up for now
_FILES = ("all", "stdout", "init.log", "barrier.log")  # the first that is there is the log
_OLDER = ".1"
_FAILURES = 3  # reads in a row that fail, until that is said: one may be cut by chance
_NO_LOG = "NoTaskLogError"  # of a task that has not begun


class Moved(Exception):
    """What was copied is not where it was."""


class TaskLog:
    """The copy of the log of one task of one attempt of the job.

    A task that the cluster tries again alone has attempts of its own: they stand one after the other.

    Args:
        client: the way to the server.
        path: gives the path of the list of its files, below the API, of an attempt of the task.
        folder: of the task's attempt on this host.
        instead: what stands in place of a log that the server does not give, or "".

    Attributes:
        complete: whether all of it is here.
        trouble: why it cannot be read, once that was so several times in a row, or "".
        latest: number of the task's own attempt that goes on, or went on last.
    """

    def __init__(
        self, client: OpenPaiClient, path: Callable[[int], str], folder: Path, instead: str = ""
    ) -> None:
        self.latest = 0
        self._path = path
        self.trouble = ""
        self._client = client
        self._instead = instead
        self._file = folder / "log"
        self._mark = folder / "log.json"
        state = read_json(self._mark) or {}
        self.complete = bool(state.get("complete"))
        self._attempt = int(state.get("attempt") or 0)  # of the task, whose files are read
        self._begin = int(state.get("begin") or 0)  # where that attempt begins in the copy
        self._base = int(state.get("base") or 0)  # where the present file begins in the copy
        self._in_older = bool(state.get("inOlder"))  # whether that is the older one
        self._name = str(state.get("name") or "")
        self._uris: Mapping[str, str] = {}
        self._lock = asyncio.Lock()
        self._failures = 0

    async def read(self, *, final: bool, turn: Turn) -> bool:
        """Copy what is new; return whether there was something.

        Args:
            final: whether the task had ended before, so that this is all.
            turn: for what it is (:class:`Turn`).

        Raises:
            PaiError: the log cannot be had now.
        """
        async with self._lock:
            if self.complete:
                return False
            before = self._size()
            if self._instead:
                self.complete = True
                await asyncio.to_thread(self._write, f"[paijupyter] {self._instead}\n".encode())
                await asyncio.to_thread(self._note)
                return True
            try:
                await self._copy(turn)
            except PaiError as error:
                self._failures += 1
                if error.code != _NO_LOG and (final or self._failures >= _FAILURES):
                    self.trouble = _in_words(error)
                raise
            self._failures, self.trouble = 0, ""
            if final:
                self.complete = True
                await asyncio.to_thread(self._note)
            return self._size() > before

    def give_up(self) -> None:
        """Take it for complete: nothing more can ever be had."""
        self.complete = True
        self._note()

    @property
    def path(self) -> str:
        """Path of the list of files that are read now."""
        return self._path(self._attempt)

    async def _copy(self, turn: Turn) -> None:
        while self._attempt < self.latest:
            try:
                await self._copy_attempt(turn)
            except PaiError as error:
                if error.is_passing:
                    raise
                _log.debug("log %s: %s", self.path, error)  # its files are gone, the next one's need not be
            await asyncio.to_thread(self._go_to_next)
        await self._copy_attempt(turn)

    def _go_to_next(self) -> None:
        self._attempt += 1
        self._say(f"The cluster tries this task again: its attempt {self._attempt}.")
        self._begin = self._base = self._size()
        self._name, self._uris, self._in_older = "", {}, False
        self._note()

    async def _copy_attempt(self, turn: Turn) -> None:
        for fresh in (False, True):
            if fresh or not self._uris:
                self._uris = await self._list(turn)
            try:
                await self._from_files(turn)
                return
            except PaiError as error:
                # An address holds for 120 seconds, and for one node; a page of 404 comes from a log server.
                self._uris = {}
                if (error.status not in (403, 404) and error.code != "NotOpenPai") or fresh:
                    raise

    async def _list(self, turn: Turn) -> dict[str, str]:
        answer = await self._client.call("GET", self.path, turn=turn)
        places = mapping(answer).get("locations")
        found = {}
        for each in places if isinstance(places, list) else ():
            name, uri = text(mapping(each).get("name")), text(mapping(each).get("uri"))
            if name and uri:
                found[name] = uri
        return found

    async def _from_files(self, turn: Turn) -> None:
        name = next((each for each in _FILES if each in self._uris), "")
        if not name:
            return
        if self._name and name != self._name:
            self._base = self._size()  # an image that failed before its command has another file
        self._name = name
        older = self._uris.get(name + _OLDER)
        if older and (self._in_older or self._size() == self._begin):
            await self._copy_older(older, turn)
        try:
            await self._go_on(self._uris[name], turn)
        except Moved:
            # The list is asked again: the older file may not have been in it.
            self._uris = await self._list(turn)
            await self._after_move(name, turn)
        await asyncio.to_thread(self._note)

    async def _copy_older(self, uri: str, turn: Turn) -> None:
        """Copy the older file, or what is missing of it where that was cut, and begin the present one."""
        self._in_older = True
        await asyncio.to_thread(self._note)
        try:
            await self._go_on(uri, turn)
        except Moved:
            self._in_older = False
        else:
            self._in_older = False
            await asyncio.to_thread(self._begin_file)

    async def _after_move(self, name: str, turn: Turn) -> None:
        older = self._uris.get(name + _OLDER)
        if older:
            try:
                await self._go_on(older, turn)
            except Moved:
                await asyncio.to_thread(
                    self._say, "Lines may be missing here: the cluster had thrown them away."
                )
                await asyncio.to_thread(self._begin_file)
                await self._copy_older(older, turn)
            else:
                await asyncio.to_thread(self._begin_file)
        else:
            await asyncio.to_thread(self._say, "Lines may be missing here: the cluster began the log anew.")
            await asyncio.to_thread(self._begin_file)
        if name in self._uris:
            await self._go_on(self._uris[name], turn)

    async def _go_on(self, uri: str, turn: Turn) -> None:
        """Copy what a file has behind that which is here.

        Raises:
            Moved: it does not have what is here.
        """
        size = self._size()
        at = size - self._base
        overlap = min(_OVERLAP, at)
        known = await asyncio.to_thread(self._tail, overlap) if overlap else b""
        try:
            await self._append(uri, at - overlap, turn, known)
        except PaiError as error:
            if error.status != 416:
                raise
            if at:
                raise Moved from None

    async def _append(self, uri: str, start: int, turn: Turn, known: bytes = b"") -> None:
        """Append a file from an offset; what is known at its begin is compared and left out.

        Raises:
            Moved: something else is there.
        """
        stream = self._client.fetch(uri, start, turn=turn)
        async with contextlib.aclosing(stream) as pieces:
            async for piece in pieces:
                if known:
                    shared = min(len(known), len(piece))
                    if piece[:shared] != known[:shared]:
                        raise Moved
                    known, piece = known[shared:], piece[shared:]
                if piece:
                    await asyncio.to_thread(self._write, piece)
        if known:
            raise Moved

    # The copy

    def _size(self) -> int:
        try:
            return self._file.stat().st_size
        except OSError:
            return 0

    def _tail(self, count: int) -> bytes:
        with self._file.open("rb") as file:
            file.seek(-count, os.SEEK_END)
            return file.read()

    def _write(self, data: bytes) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(data)

    def _begin_file(self) -> None:
        """Let what comes now be the begin of a file."""
        self._base = self._size()
        self._note()

    def _say(self, words: str) -> None:
        self._write(f"\n[paijupyter] {words}\n".encode())

    def _note(self) -> None:
        told: dict[str, Any] = {"complete": self.complete, "base": self._base, "name": self._name}
        told["inOlder"] = self._in_older
        write_json(self._mark, {**told, "attempt": self._attempt, "begin": self._begin})


def _in_words(error: PaiError) -> str:
    said = error.message.rstrip(". ")
    return f"its log server answered {error.status}" if said == f"HTTP status {error.status}" else said


def list_path(job: str, attempt: int, role: str, index: int, task_attempt: int) -> str:
    """Return the path of the list of a task's logs.

    Args:
        job: path of the job.
        attempt: of the job.
        role: name of the role, as the server calls it.
        index: of the task.
        task_attempt: of the task, in that attempt of the job.
    """
    return f"{job}/attempts/{attempt}/taskRoles/{quote(role)}/taskIndex/{index}/attempts/{task_attempt}/logs"


async def followed(
    log: TaskLog, folder: Path, offset: int, has_ended: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield a log from an offset, and what comes, until its task has ended and all of it was yielded.

    Args:
        log: the copy that is read into.
        folder: of the copy.
        offset: where to begin, in bytes.
        has_ended: says whether the task has.
    """
    over = asyncio.Event()
    reading = asyncio.create_task(_keep_reading(log, has_ended, over))
    try:
        pieces = logs.follow(folder / "log", offset, lambda: over.is_set() or reading.done())
        async with contextlib.aclosing(pieces) as stream:  # type: ignore[type-var]
            async for piece in stream:
                yield piece
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _keep_reading(log: TaskLog, has_ended: Callable[[], bool], over: asyncio.Event) -> None:
    pause, tries = _PAUSES[0], 0
    never = asyncio.Event()
    while not log.complete and tries < _TRIES:
        ended = has_ended()
        try:
            found = await log.read(final=ended, turn=Turn.FOLLOW)
            pause = _PAUSES[0] if found else min(1.5 * pause, _PAUSES[1])
        except PaiError as error:
            _log.debug("log %s: %s", log.path, error)
            tries += ended
            pause = min(2 * pause, _PAUSES[1])
        if not log.complete:
            await happens(never, pause)
    over.set()
