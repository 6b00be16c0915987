"""Going into running tasks: commands in them, and ports of theirs brought to this host."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from paijupyter.backends.base import Connection, Entering, Job
from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs import boards
from paijupyter.jobs.boards import Boards
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.logs import task_of
from paijupyter.jobs.ports import open_ports
from paijupyter.jobs.watchers import Backends

_log = logging.getLogger(__name__)
_PIECE = 64 * 1024
_HOST = "127.0.0.1"


@dataclass(eq=False)
class Forwarded:
    """A port of a task that this host listens for.

    Attributes:
        number: of the port on this host.
        connections: those that are open.
    """

    server: asyncio.Server
    number: int
    connections: set[asyncio.Task[None]] = field(default_factory=set)


class Entrances:
    """Opens the ways into tasks; each ends with its job, or with the engine.

    Args:
        catalog: where jobs are kept.
        backends: who runs them.
        to_job: builds what a backend is told of a job; it may read the job's folder.
        boards: what is reached like a task, and is none.
    """

    def __init__(
        self, catalog: Catalog, backends: Backends, to_job: Callable[[LiveJob], Job], boards: Boards
    ) -> None:
        self._catalog = catalog
        self._backends = backends
        self._to_job = to_job
        self._boards = boards
        self._forwarded: dict[tuple[str, str, int], Forwarded] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._opening = asyncio.Lock()

    async def exec(
        self, ref: str, task: str | None, command: Sequence[str], stdin: bytes
    ) -> AsyncIterator[tuple[str, bytes]]:
        """Run a command in a task: yield ``stdout`` and ``stderr`` pieces, and ``exit`` with its code last.

        Raises:
            Conflict: ``not-running``, or ``no-exec`` where the job's place cannot do that.
        """
        live, key = self._running(ref, task)
        backend = await self._backend(live, "no-exec", "run commands in tasks")
        job = await asyncio.to_thread(self._to_job, live)
        role, index = task_of(live, key)
        async with contextlib.aclosing(backend.exec(job, role, index, command, stdin)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    async def forward(self, ref: str, task: str | None, port: int | str) -> dict[str, Any]:
        """Have this host listen for a port of a task, until the job has ended: ``{task, port, local}``.

        Args:
            ref: the job.
            task: its task; None: the first that runs.
            port: its number, or a label of the job's ports.

        Raises:
            Conflict: ``not-running``.
            NotFound: the task has no such port.
        """
        if task == boards.TASK:
            number = self._boards.number(ref, port)
            return {"task": task, "port": number, "local": number}
        live, key = self._running(ref, task)
        number = self._number(live, key, port)
        backend = await self._backends.of(live.record.profile)
        if not isinstance(backend, Entering):
            return {"task": key, "port": number, "local": number}  # it is a port of this host
        place = (live.record.id, key, number)
        async with self._opening:  # a page asks for many things at once: all by one door
            if place not in self._forwarded:
                self._forwarded[place] = await self._listen(live, backend, key, number)
        return {"task": key, "port": number, "local": self._forwarded[place].number}

    async def close(self) -> None:
        """End all ways."""
        for task in self._watching.values():
            task.cancel()
        await asyncio.gather(*self._watching.values(), return_exceptions=True)
        for place in list(self._forwarded):
            await self._end(place)

    def _running(self, ref: str, task: str | None) -> tuple[LiveJob, str]:
        row = self._catalog.find(ref)
        live = self._catalog.live.get(row.id)
        if live is None or live.life.state != "running":
            raise Conflict(
                "not-running",
                f"Job `{row.name}` does not run, so nobody can go into its tasks.",
                "Its logs and outputs stay; see them with: get.",
            )
        if task is not None:
            task_of(live, task)
            return live, task
        names = (f"{role}-{index}" for role, count in live.record.roles.items() for index in range(count))
        running = next((name for name in names if live.life.task(name)["state"] == "running"), None)
        if running is None:
            raise Conflict("not-running", f"No task of job `{row.name}` runs now.", "Try again in a moment.")
        return live, running

    async def _backend(self, live: LiveJob, code: str, what: str) -> Entering:
        backend = await self._backends.of(live.record.profile)
        if isinstance(backend, Entering):
            return backend
        raise Conflict(
            code,
            f"Profile `{live.record.profile}` cannot {what}.",
            "Its tasks are processes of this host: go into them with a terminal here.",
        )

    def _number(self, live: LiveJob, key: str, port: int | str) -> int:
        if isinstance(port, int):
            return port
        for each in open_ports(live):
            if (each["task"], each["label"]) == (key, port):
                return int(each["port"])
        raise NotFound("Port", f"{key} {port}", "Name its number, or a label of the document's ports.")

    async def _listen(self, live: LiveJob, backend: Entering, key: str, port: int) -> Forwarded:
        job = await asyncio.to_thread(self._to_job, live)
        role, index = task_of(live, key)
        open_ones: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - a server runs this in a task
            open_ones.add(task)
            try:
                connection = await backend.connect(job, role, index, port)
                await _carry(reader, writer, connection)
            except PaiJupyterError as error:
                _log.info("port %s of %s: %s", port, key, error)
            finally:
                open_ones.discard(task)
                writer.transport.abort()

        server = await asyncio.start_server(serve, _HOST, 0)
        number = int(server.sockets[0].getsockname()[1])
        if live.record.id not in self._watching:
            self._watching[live.record.id] = asyncio.create_task(self._until_ended(live))
        return Forwarded(server, number, open_ones)

    async def _until_ended(self, live: LiveJob) -> None:
        await live.ended.wait()
        for place in [each for each in self._forwarded if each[0] == live.record.id]:
            await self._end(place)
        self._watching.pop(live.record.id, None)

    async def _end(self, place: tuple[str, str, int]) -> None:
        forwarded = self._forwarded.pop(place)
        forwarded.server.close()
        for task in list(forwarded.connections):
            task.cancel()
        await asyncio.gather(*forwarded.connections, return_exceptions=True)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: Connection) -> None:
    """Carry bytes both ways until one side ends."""

    async def out() -> None:
        while data := await reader.read(_PIECE):
            await connection.write(data)

    async def back() -> None:
        while data := await connection.read():
            writer.write(data)
            await writer.drain()

    ways = [asyncio.create_task(out()), asyncio.create_task(back())]
    try:
        # One that has sent all it had may still want the answer; the other side's end ends both.
        await ways[1]
    except OSError:
        pass
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        await connection.close()
