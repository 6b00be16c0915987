"""Following the logs of pods into this host's copies, without a lost or doubled byte.

The cluster keeps little: a node throws away all but the newest 10 MiB of a log, and a deleted pod takes its
log along. So every task is followed from its start, whether somebody looks or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from pathlib import Path

from paijupyter.backends.base import Usage
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.facts import Pod
from paijupyter.backends.kubernetes.layout import OUTPUTS_LINE
from paijupyter.backends.kubernetes.paths import core
from paijupyter.backends.kubernetes.stamps import Unstamper
from paijupyter.backends.kubernetes.tasklog import BUILT, TaskLog
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.backends.waiting import happens

_log = logging.getLogger(__name__)
LIVE = 64  # streams held open at once; the tasks beyond are looked at in turn
LOOKS = 8  # of those beyond, at once
LOOK_EVERY = 4.0  # seconds between two looks
_IDLE = 240.0  # seconds without a byte after which a stream is opened anew: a dead one does not say so
_PAUSES = (0.2, 10.0)  # seconds before the next try: the first, and at most
_LARGE = 1 << 16  # bytes from which a piece is written beside the loop


class Lines:
    """How many streams the followers of a profile hold."""

    def __init__(self) -> None:
        self.live = asyncio.Semaphore(LIVE)
        self.looks = asyncio.Semaphore(LOOKS)


class Follower:
    """Follows one task of one attempt.

    Args:
        transport: the way to the cluster.
        lines: shared by all followers of the profile.
        folder: of the attempt of the task, on this host.
        on_outputs: called when the task says that its outputs wait to be fetched.

    Attributes:
        done: set once the copy is complete, or nothing more can be had.
    """

    def __init__(
        self, transport: KubeTransport, lines: Lines, folder: Path, on_outputs: Callable[[], None]
    ) -> None:
        self.done = asyncio.Event()
        self._transport = transport
        self._lines = lines
        self._folder = folder
        self._on_outputs = on_outputs
        self._pod: Pod | None = None
        self._news = asyncio.Event()
        self._copy: TaskLog | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun = ""  # uid of the pod with which it began
        self._caught_up = asyncio.Event()
        self._is_live = False
        self._line = b""  # the last bytes, while they may be the begin of a line of the keeper's

    @property
    def usage(self) -> Usage | None:
        """What the task said lately that it uses."""
        return self._copy.usage if self._copy else None

    def see(self, pod: Pod) -> None:
        """Hear of the task's pod; begin to follow it, at first and when another takes its place."""
        self._pod = pod
        self._news.set()
        if self.done.is_set() and pod.uid != self._begun and pod.container.id:
            self.done.clear()
            self._task = None
        if self._task is None and not self.done.is_set() and (pod.container.id or pod.gone):
            self._begun = pod.uid
            self._task = asyncio.create_task(self._run(), name=f"log {pod.name}")

    async def finish(self, seconds: float) -> None:
        """Wait until the copy is complete; give up after a time, as nothing better may ever come."""
        if self._task is None:
            self.done.set()
            return
        await happens(self.done, seconds)
        if not self.done.is_set():
            await self.close()
            if self._copy:
                self._copy.note("The rest of this log could not be had from the cluster.")
                self._copy.finish()
            self.done.set()

    async def catch_up(self, seconds: float) -> None:
        """Have what the task has printed until now, before its pod is deleted.

        An open stream stays open until the container has ended, so it gets the rest by itself.
        """
        if self._task is None or self.done.is_set() or self._is_live:
            return
        self._caught_up.clear()
        self._news.set()
        await happens(self._caught_up, seconds)

    async def close(self) -> None:
        """Let go; the next follower goes on where this one was."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._copy:
            self._copy.close()

    async def _run(self) -> None:
        copy = self._copy = await asyncio.to_thread(TaskLog, self._folder)
        pod = self._pod
        if copy.complete and (pod is None or not pod.container.id or copy.container == pod.container.id):
            self.done.set()
            return
        copy.complete = False  # of another pod of the same attempt, as a manifest may ask for
        pause = _PAUSES[0]
        try:
            while True:
                self._news.clear()
                ended = self._has_ended
                try:
                    if await self._read(copy, final=ended):
                        break
                    # A node that cannot tell of a container that has ended may be able to in a moment.
                    pause = min(2 * pause, _PAUSES[1]) if ended else _PAUSES[0]
                    await self._wait(pause)
                except KubeError as error:
                    if error.status == 404:
                        break  # the pod is gone, and its log with it
                    if error.status == 400:
                        if ended:
                            break  # it ended before its container was ever made
                        pause = _PAUSES[0]
                    _log.debug("log of %s: %s", self._folder, error)
                    await self._wait(pause * random.uniform(0.5, 1))  # noqa: S311 - spreads load
                    pause = min(2 * pause, _PAUSES[1])
            copy.finish()
            self.done.set()
        except OSError as error:
            _log.error("log of %s cannot be kept: %s", self._folder, error)
            self.done.set()
        finally:
            with contextlib.suppress(OSError):
                if not copy.complete:
                    copy.save()

    @property
    def _has_ended(self) -> bool:
        pod = self._pod
        return pod is not None and (pod.gone or pod.container.ended is not None)

    async def _wait(self, seconds: float) -> None:
        await happens(self._news, seconds)

    async def _read(self, copy: TaskLog, *, final: bool) -> bool:
        """Read a stream to its end; True if nothing is left to come."""
        pod = self._pod
        if pod is None:
            return False
        if copy.container and pod.container.id and copy.container != pod.container.id:
            if pod.container.restarts:
                await self._stream(copy, pod, {"previous": "true"})
                copy.note(f"The container was started again ({pod.container.restarts}).")
            elif copy.container != BUILT:
                copy.note("The task was started again, in another pod.")
            copy.begin_container(pod.container.id)
        elif not copy.container:
            copy.container = pod.container.id
        if final:
            return await self._stream(copy, pod, {})
        if not self._lines.live.locked():
            async with self._lines.live:
                self._is_live = True
                try:
                    await self._stream(copy, pod, {"follow": "true"})
                finally:
                    self._is_live = False
            return False
        async with self._lines.looks:
            await self._stream(copy, pod, {})
        self._caught_up.set()
        await self._wait(LOOK_EVERY)
        return False

    async def _stream(self, copy: TaskLog, pod: Pod, how: dict[str, str]) -> bool:
        """Read one stream; False if the node has said in it that it cannot go on."""
        query = {"container": pod.main, "timestamps": "true", **how}
        if copy.cursor.since:
            query["sinceTime"] = copy.cursor.since
        reader = Unstamper(copy.cursor, follows="follow" in how)
        path = core("pods", pod.name, "log", namespace=self._transport.namespace)
        async with contextlib.aclosing(self._transport.stream(path, query=query, idle=_IDLE)) as pieces:
            async for piece in pieces:
                if len(piece) < _LARGE:
                    found = self._take(copy, reader, piece)
                else:
                    found = await asyncio.to_thread(self._take, copy, reader, piece)
                if found:
                    self._on_outputs()
        reader.end()
        for words in reader.said:
            _log.warning("log of pod %s: %s", pod.name, words.decode("utf-8", "replace"))
        return not reader.said

    def _take(self, copy: TaskLog, reader: Unstamper, piece: bytes) -> bool:
        """Write a piece down; say whether the task tells in it that its outputs wait."""
        data = reader.feed(piece)
        if reader.gap:
            reader.gap = False
            copy.note("Lines may be missing here: the node had thrown them away.")
        if not data:
            return False
        copy.append(data, reader.first)
        tail = self._line + data
        self._line = tail[-len(OUTPUTS_LINE) :]
        return OUTPUTS_LINE in tail


def follow_until(done: asyncio.Event) -> Callable[[], bool]:
    """Return what tells a reader of the copy that nothing more will come."""
    return done.is_set
