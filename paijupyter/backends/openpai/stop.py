"""Stopping a job: asked for until the state says so (openpai.md 6.5, D10).

A stop that comes right after the submission can be lost, one of an ended job answers 500, and one takes 30
seconds: so the state is what counts, never the answer.
"""

from __future__ import annotations

import asyncio
import logging
import time

from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.hub import Hub
from paijupyter.backends.openpai.run import JobRun
from paijupyter.backends.openpai.server import Server
from paijupyter.backends.waiting import happens

_log = logging.getLogger(__name__)
_HOLD = 1.0  # seconds after the submission in which a stop is held back
_LOOKS = (0.3, 3.0)  # seconds between two looks: at first, and at most
_AGAIN = 15.0  # seconds after which a stop that shows no effect is asked for again
_PAUSE = 5.0  # seconds before the next try where the server does not answer


class Stopper:
    """Carries one job to its end.

    Attributes:
        trouble: why the server was not asked last time, or None.
    """

    def __init__(self, run: JobRun, hub: Hub, server: Server) -> None:
        self.trouble: PaiError | None = None
        self._run = run
        self._hub = hub
        self._server = server

    async def carry(self) -> None:
        """Ask for the stop, and again if need be, until the job is final."""
        run = self._run
        await asyncio.sleep(max(run.born + _HOLD - time.monotonic(), 0))
        asked_at, pause = -_AGAIN, _LOOKS[0]
        while not run.done.is_set():
            try:
                if await self._is_over():
                    await run.done.wait()
                    return
                if time.monotonic() - asked_at >= _AGAIN and not self._is_stopping():
                    asked_at = time.monotonic()
                    await self._ask()
                self.trouble = None
            except PaiError as error:
                self.trouble = error
                _log.warning("job %s is not stopped yet: %s", run.name, error)
                await happens(run.done, _PAUSE)
                if error.status in (401, 403):
                    return
            await happens(run.done, pause)
            pause = min(1.5 * pause, _LOOKS[1], max(self._server.settings.poll_seconds, _LOOKS[0]))

    def _is_stopping(self) -> bool:
        summary = self._run.summary
        return summary is not None and summary.state == "STOPPING"

    async def _is_over(self) -> bool:
        run = self._run
        try:
            await self._hub.look(run)
        except PaiError as error:
            if error.status == 404:
                self._hub.hurry()  # it counts how often it is not there
                return self._has_ended
            if error.status != 500:
                raise
            self._hub.hurry()  # a job whose detail cannot be read is in the list all the same
        return self._has_ended

    @property
    def _has_ended(self) -> bool:
        return self._run.ending or self._run.done.is_set()

    async def _ask(self) -> None:
        path = await self._server.path(self._run.name)
        try:
            await self._server.client.call("PUT", f"{path}/executionType", body={"value": "STOP"})
        except PaiError as error:
            if error.status == 500:
                return  # of a job that has ended long ago: the next look tells
            if error.status != 404:
                raise
        self._hub.hurry()
