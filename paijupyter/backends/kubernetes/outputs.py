"""Bringing the outputs of tasks home: a tar archive streamed out of each pod before it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tarfile
import tempfile
from collections.abc import Callable

from paijupyter.backends.base import Job
from paijupyter.backends.delivery import returned
from paijupyter.backends.kubernetes import layout, pod_options
from paijupyter.backends.kubernetes.channels import STATUS, STDERR, STDOUT, exit_of
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.protocol.names import split_task_key

_log = logging.getLogger(__name__)
_TRIES = 3
_PAUSE = 2.0


class Fetcher:
    """Fetches the outputs of a job's tasks, each once, into ``output/<task>`` of the job's folder."""

    def __init__(self, job: Job, transport: KubeTransport, settings: KubeSettings) -> None:
        self._job = job
        self._transport = transport
        self._settings = settings
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, key: str, pod: str) -> None:
        """Fetch the outputs of a task; called again for the same pod, it does nothing."""
        if pod not in self._tasks:
            self._tasks[pod] = asyncio.create_task(self._fetch(key, pod), name=f"outputs {pod}")

    async def finish(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def close(self) -> None:
        """Let go; what was not acknowledged waits in its pod for the next engine."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _fetch(self, key: str, pod: str) -> None:
        for _ in range(_TRIES):
            try:
                await self._receive(key, pod)
                await self._run(pod, key, "taken", lambda data: None)
                return
            except (KubeError, OSError, tarfile.TarError) as error:
                _log.warning("outputs of %s in pod %s: %s", key, pod, error)
            await asyncio.sleep(_PAUSE)

    async def _receive(self, key: str, pod: str) -> None:
        folder = self._job.folder / "output" / key
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder.parent) as archive:
            await self._run(pod, key, "send", archive.write)
            await asyncio.to_thread(returned.receive, archive, folder)

    async def _run(self, pod: str, key: str, verb: str, take: Callable[[bytes], object]) -> None:
        role = (split_task_key(key) or (key, 0))[0]
        python = pod_options.of_role(self._settings.pods, self._job, role).python
        channels = await self._transport.exec(pod, layout.outputs_command(python, verb))
        said, ended = b"", None
        try:
            async for channel, data in channels:
                if channel == STDOUT:
                    take(data)
                elif channel == STDERR:
                    said = (said + data)[-2000:]
                elif channel == STATUS:
                    ended = exit_of(data)
        finally:
            with contextlib.suppress(KubeError):
                await channels.close()
        if ended is None or ended.code:
            words = said.decode("utf-8", "replace").strip() or (
                ended.message if ended else "the stream was cut"
            )
            raise KubeError(0, "Unreachable", words)
