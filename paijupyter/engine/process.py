"""The life of the engine's process: lock, socket, idle end, hand-over.

The order matters: the lock first, then the facts (``engine.json``), then the service, the socket last - who
sees the socket can use it. At the end the socket goes first, so that nobody new comes, and the lock last.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import tornado.httpserver
from tornado.iostream import IOStream

from paijupyter import paths
from paijupyter._version import __version__
from paijupyter.engine import http, problems
from paijupyter.engine.lock import Lock, acquire
from paijupyter.engine.logfile import open_log
from paijupyter.engine.manifests import PendingManifests
from paijupyter.engine.routes import ROUTES
from paijupyter.engine.service import Service
from paijupyter.engine.socketfile import listen, peer_is_user
from paijupyter.engine.streams import Sender

ServiceFactory = Callable[[Path, Path], Service]
IDLE_SECONDS = 600.0
_LOCK_SECONDS = 30.0
_GRACE_SECONDS = 5.0
_TURN_SECONDS = 0.0005  # how long a thread may keep the loop from going on after each of its system calls
_log = logging.getLogger(__name__)


def run(make_service: ServiceFactory | None = None) -> int:
    """Be the engine of this user, host and data folder; return when that is over.

    Args:
        make_service: makes the job service; None means the real one.

    Returns:
        The exit status: 0 at a proper end, also if another engine serves already.
    """
    try:
        sys.setswitchinterval(_TURN_SECONDS)
        runtime, data = paths.runtime_dir(), paths.data_dir()
        open_log(runtime / "engine.log")
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = acquire(runtime / "engine.lock", runtime / "engine.sock", _LOCK_SECONDS)
        if lock is None:
            announce("served")
            return 0
        engine = Engine(runtime, lock, (make_service or _real_service)(data, runtime))
        asyncio.run(engine.serve())
    except Exception as error:  # the process ends here; the one who started it is told why
        announce(json.dumps(problems.document(problems.as_error(error))))
        return 1
    return 0


def announce(line: str) -> None:
    """Tell the starter what became of the start, in one line, and let go of its pipe.

    ``ready``: this process serves now. ``served``: another one does. Anything else: a problem document.
    """
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        os.dup2(2, 1)


def _real_service(data: Path, runtime: Path) -> Service:
    from paijupyter.jobs import JobService

    service: Service = JobService(data, runtime)
    return service


class _Server(tornado.httpserver.HTTPServer):
    """An HTTP server that talks to its own user only."""

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        """Close a connection of somebody else at once; the mode of the socket forbids it already."""
        if peer_is_user(stream.socket):
            super().handle_stream(stream, address)
        else:
            _log.warning("refused a connection of another user")
            stream.close()


class Engine:
    """The process's state: who is connected, since when nobody is, and whether it shall end."""

    def __init__(self, runtime: Path, lock: Lock, service: Service) -> None:
        self.service = service
        self.manifests = PendingManifests()
        self.facts = {
            "pid": os.getpid(),
            "startedAt": datetime.now(timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z",
            "host": socket.gethostname(),
        }
        self._runtime = runtime
        self._lock = lock
        self._ending = asyncio.Event()
        self._open: set[Sender] = set()
        self._used = time.monotonic()
        self._idle = float(os.environ.get("PAIJUPYTER_IDLE_SECONDS", IDLE_SECONDS))

    async def serve(self) -> None:
        """Serve until idle, told to end, or handed over."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ending.set)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._write_facts()
        server = _Server(
            http.application(self, ROUTES),
            max_body_size=http.UPLOAD_LIMIT_BYTES * 2,
            idle_connection_timeout=600,
        )
        try:
            await self.service.start()
            self._listener = listen(self._socket)
            server.add_socket(self._listener)
            announce("ready")
            _log.info("engine %s serves %s", __version__, self._socket)
            watch = asyncio.create_task(self._watch())
            await self._ending.wait()
            watch.cancel()
        finally:
            await self._end(server)

    def enter(self, sender: Sender) -> None:
        """Take note of a request that keeps this process awake."""
        self._open.add(sender)

    def leave(self, sender: Sender) -> None:
        """Take note of such a request's end; asked twice, it counts once."""
        if sender in self._open:
            self._open.remove(sender)
            self._used = time.monotonic()

    def hand_over(self) -> None:
        """Make way for another engine: from now on nobody finds this one."""
        _log.info("handing over")
        self._hide()
        self._ending.set()

    @property
    def _socket(self) -> Path:
        return self._runtime / "engine.sock"

    @property
    def idle(self) -> bool:
        """Whether nothing was asked for so long, and nothing is unfinished, that the process may end."""
        quiet = not self._open and time.monotonic() - self._used >= self._idle
        return quiet and self.service.unfinished() == 0

    async def _watch(self) -> None:
        """End when idle, or when the folder that makes this the one engine is no longer there."""
        while not self._ending.is_set():
            await asyncio.sleep(min(5.0, max(0.05, self._idle / 4)))
            if not self._lock.intact:
                _log.warning("the runtime folder was removed or replaced")
                self._ending.set()
            elif not self._socket.exists():
                # Somebody cleaned up: nobody can reach this engine, and nobody else may start.
                _log.warning("the socket was removed")
                self._ending.set()
            elif self.idle:
                _log.info("idle")
                self._ending.set()
            else:
                self._lock.touch()

    async def _end(self, server: tornado.httpserver.HTTPServer) -> None:
        self._hide()
        server.stop()
        for sender in list(self._open):
            sender.cut()
        deadline = time.monotonic() + _GRACE_SECONDS
        while self._open and time.monotonic() < deadline:  # noqa: ASYNC110 - no event tells of "none left"
            await asyncio.sleep(0.02)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(server.close_all_connections(), _GRACE_SECONDS)
        try:
            await asyncio.wait_for(self.service.close(), _GRACE_SECONDS * 2)
        except Exception:  # the end of the process must not depend on it
            _log.exception("closing the service failed")
        if self._lock.intact:
            (self._runtime / "engine.json").unlink(missing_ok=True)
        _log.info("engine ended")
        self._lock.release()

    def _hide(self) -> None:
        """Remove the socket's file, unless it is another engine's by now."""
        if self._lock.intact:
            self._socket.unlink(missing_ok=True)

    def _write_facts(self) -> None:
        target = self._runtime / "engine.json"
        fresh = target.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps({**self.facts, "version": __version__}))
        fresh.replace(target)
