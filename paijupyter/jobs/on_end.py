"""The exit hook of a profile: a command or a webhook that hears of every job that has ended, once.

A note of its own (``hooks/<job>``) is written before the end of a job is, and removed when the hook is over;
so an engine that comes later finds what an earlier one still owed. A hook that was under way when its engine
was killed is not begun again: it may have done its work. What becomes of it is an event of the job, and never
changes the job's state.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paijupyter.errors import PaiJupyterError
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.clock import now
from paijupyter.jobs.common_settings import Hook, hook_of
from paijupyter.jobs.files import replace_synced
from paijupyter.jobs.identity import is_id
from paijupyter.jobs.keyring import from_keyring
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.profiles import ProfileFiles

_log = logging.getLogger(__name__)
PAUSES = (1.0, 5.0)  # seconds before a further try: the first, and all later ones
HOME = os.path.expanduser("~")
_AT_ONCE = 4
_SAID = 400  # characters kept of what a failing hook has to say
_LAST_WORDS = 5.0  # seconds that hooks under way get when the engine ends


class HookFailed(Exception):
    """A try of a hook failed; the text says why."""


class Hooks:
    """Runs the hooks of the jobs of this host.

    Args:
        folder: where notes of hooks that are owed lie.
        catalog: where jobs are.
        profiles: where hooks are set.
    """

    def __init__(self, folder: Path, catalog: Catalog, profiles: ProfileFiles) -> None:
        self._folder = folder
        self._catalog = catalog
        self._profiles = profiles
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_AT_ONCE)

    @property
    def busy(self) -> int:
        """Number of hooks that are not over."""
        return len(self._tasks)

    def owe(self, live: LiveJob) -> None:
        """Note, before a job's end is written, that its hook is owed. Blocking."""
        try:
            if self._hook(live) is None:
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_synced(self._folder / live.record.id, b"owed\n")
        except (ValueError, PaiJupyterError) as error:
            _log.warning("hook of profile %s cannot be used: %s", live.record.profile, error)
        except OSError:
            _log.exception("hook of job %s could not be noted; it runs if the engine lives", live.record.id)

    def begin(self, live: LiveJob) -> None:
        """Run the hook of a job that has just ended."""
        task = asyncio.create_task(self._run(live), name=f"hook of job {live.record.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def resume(self) -> None:
        """Run what an earlier engine still owed."""
        for job in await asyncio.to_thread(self._owed):
            row = self._catalog.index.get(job)
            if row is None:
                self._forget(job)
            elif row.final and row.host == self._catalog.host.name:
                try:
                    live = self._catalog.job(row)
                except PaiJupyterError:
                    continue
                if live.life.on_end and live.life.on_end["state"] == "running":
                    await self._say(live, "failed", "The engine ended while it ran; it is not run again.")
                    self._forget(job)
                else:
                    self.begin(live)

    async def close(self) -> None:
        """Give hooks under way a moment, then let go; one that did not finish is noted by the next engine."""
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_WORDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, live: LiveJob) -> None:
        job = live.record.id
        try:
            hook = self._hook(live)
        except (ValueError, PaiJupyterError) as error:
            await self._say(live, "failed", f"It cannot be used: {error}.")
        else:
            if hook is None:
                return
            async with self._room:
                # First noted, then done: whatever is killed in between, it is not done twice.
                await self._say(live, "running", "")
                try:
                    await _with_patience(hook, live)
                except (HookFailed, PaiJupyterError) as error:
                    await self._say(live, "failed", str(error)[:_SAID])
                except Exception as error:
                    _log.exception("hook of job %s failed", job)
                    await self._say(live, "failed", type(error).__name__)
                else:
                    await self._say(live, "done", "")
        self._forget(job)

    def _hook(self, live: LiveJob) -> Hook | None:
        return hook_of(self._profiles.read().get(live.record.profile))

    async def _say(self, live: LiveJob, state: str, message: str) -> None:
        if state == "failed":
            _log.warning("hook of job %s failed: %s", live.record.id, message)
        event = {"type": "on-end", "at": now(), "state": state, "message": message}
        try:
            await self._catalog.annotate(live, event)
        except OSError:
            _log.exception("what became of the hook of job %s could not be noted", live.record.id)

    def _owed(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if is_id(name))
        except FileNotFoundError:
            return []

    def _forget(self, job: str) -> None:
        with contextlib.suppress(OSError):
            (self._folder / job).unlink(missing_ok=True)


def told(view: Mapping[str, Any]) -> bytes:
    """Return what a hook is told: the job's view, without what refers to its secrets."""
    return json.dumps({name: value for name, value in view.items() if name != "secretReferences"}).encode()


async def _with_patience(hook: Hook, live: LiveJob) -> None:
    body = told(live.view())
    for left in range(hook.retries, -1, -1):
        try:
            await (_command(hook, live, body) if hook.command else _post(hook, body))
        except HookFailed:
            if not left:
                raise
            await asyncio.sleep(PAUSES[0] if left == hook.retries else PAUSES[1])
        else:
            return


async def _command(hook: Hook, live: LiveJob, body: bytes) -> None:
    words = ("bash", "-c", hook.command) if isinstance(hook.command, str) else hook.command
    facts = {"PAI_JOB_ID": live.record.id, "PAI_JOB_NAME": live.record.facts["name"]}
    facts["PAI_JOB_STATE"] = live.life.state
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **facts},
            cwd=HOME,
            start_new_session=True,
        )
    except OSError as error:
        raise HookFailed(f"`{words[0]}` could not be started: {error.strerror or error}.") from error
    try:
        said = await asyncio.wait_for(_talk(process, body), hook.timeout)
    except asyncio.TimeoutError:
        raise HookFailed(f"The command took longer than {hook.timeout:g} s.") from None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # also what it has left in the background
        await process.wait()
    if process.returncode:
        last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise HookFailed(f"The command ended with {process.returncode}" + (f": {last}" if last else "."))


async def _talk(process: asyncio.subprocess.Process, body: bytes) -> bytes:
    """Give a process its input; return the end of what it says once it has ended."""
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise RuntimeError("both are pipes")
    said = b""

    async def listen() -> None:
        nonlocal said
        while chunk := await stdout.read(1 << 16):
            said = (said + chunk)[-4 * _SAID :]

    listening = asyncio.create_task(listen())
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(body)
            await stdin.drain()
        stdin.close()
        await process.wait()
        # What it left in the background may hold the pipe open for ever.
        await asyncio.wait({listening}, timeout=0.2)
    finally:
        listening.cancel()
    return said


async def _post(hook: Hook, body: bytes) -> None:
    url = await _resolved("onEnd.url", hook.url)
    if not url.startswith(("http://", "https://")):
        raise HookFailed("The address is none of http:// or https://.")
    headers = {name: await _resolved(name, value) for name, value in (hook.headers or {}).items()}
    request = urllib.request.Request(  # noqa: S310 - its scheme was looked at
        url, body, {"Content-Type": "application/json", "User-Agent": "paijupyter", **headers}, method="POST"
    )
    try:
        await asyncio.wait_for(asyncio.to_thread(_send, request, hook.timeout), hook.timeout + 1)
    except asyncio.TimeoutError:
        raise HookFailed(f"The address did not answer within {hook.timeout:g} s.") from None


def _send(request: urllib.request.Request, timeout: float) -> None:
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=timeout) as answer:
            answer.read(1 << 16)
    except urllib.error.HTTPError as error:
        error.close()
        raise HookFailed(f"The address answered {error.code}.") from None
    except (OSError, ValueError) as error:
        # The reason alone: the address may itself be a secret.
        reason = getattr(error, "reason", error)
        raise HookFailed(f"The address could not be reached: {type(reason).__name__}.") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What a webhook is told is for that address alone."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follow no redirect: it becomes the error that it is."""


async def _resolved(name: str, value: str) -> str:
    if not value.startswith("keyring:"):
        return value
    return await from_keyring(name, value.partition(":")[2])
