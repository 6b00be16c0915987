"""Fetching of data by the engine, before a job is handed over: a process per source, once per content.

The job waits with the reason ``data`` meanwhile. A stop ends the process; an engine that ends takes it along,
and the next one begins again, from where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Data, Job
from paijupyter.errors import PaiJupyterError
from paijupyter.jobs import sources
from paijupyter.jobs.catalog import Catalog
from paijupyter.jobs.common_settings import stores_of
from paijupyter.jobs.keyring import from_keyring
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.profiles import ProfileFiles
from paijupyter.jobs.secrets import SecretStore
from paijupyter.jobs.watchers import own_change
from paijupyter.package import readable_size
from paijupyter.protocol.data import scheme_of, shown

_BETWEEN = 2.0  # seconds between two words on progress
_LINE = 1 << 20


class DataFailed(PaiJupyterError):
    """Data of a job cannot be had, so the job cannot run."""


class Fetching:
    """Fetches what a job's tasks cannot fetch themselves.

    Args:
        data: the data folder.
        catalog: is told how far it is.
        profiles: where stores are set up.
        secrets: values that open them.
    """

    def __init__(self, data: Path, catalog: Catalog, profiles: ProfileFiles, secrets: SecretStore) -> None:
        self._data = data
        self._catalog = catalog
        self._profiles = profiles
        self._secrets = secrets

    async def is_needed(self, job: Job) -> bool:
        """Say whether the engine has something to fetch for a job."""
        return await asyncio.to_thread(lambda: any(map(sources.is_fetched_here, job.data)))

    async def announce(self, live: LiveJob) -> None:
        """Let the job wait for its data."""
        await self._say(live, "Data is being fetched.")

    async def provide(self, live: LiveJob, job: Job) -> Job:
        """Return the job with its data in the cache; give up when it is stopped.

        Raises:
            DataFailed: with the reason.
        """
        if not await self.is_needed(job):
            return job
        found = []
        for data in job.data:
            if not live.life.final and await asyncio.to_thread(sources.is_fetched_here, data):
                key = await self._fetch(live, data)
                data = replace(data, key=key)
            found.append(data)
        job = replace(job, data=tuple(found))
        if not live.life.final:
            await asyncio.to_thread(sources.remember, job.folder, job.data)
        return job

    async def _fetch(self, live: LiveJob, data: Data) -> str:
        opening = await self._opening(live, data)
        await self._say(live, f"Data `{data.source.name}` is being fetched from {shown(data.source.uri)}.")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "paijupyter.data",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._data,
            limit=_LINE,
        )
        request = {"data": str(self._data), "job": live.record.id, "source": data.source.to_json(), **opening}
        talk = asyncio.create_task(self._talk(process, request, live, data))
        ended = asyncio.create_task(live.ended.wait())
        try:
            await asyncio.wait({talk, ended}, return_when=asyncio.FIRST_COMPLETED)
            return talk.result() if talk.done() else ""
        finally:
            for task in (talk, ended):
                task.cancel()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.gather(talk, ended, return_exceptions=True)
            await process.wait()

    async def _opening(self, live: LiveJob, data: Data) -> dict[str, Any]:
        """Return what opens a source's store: options of the profile, a secret of the job or the profile."""
        scheme, secret = scheme_of(data.source.uri), data.source.secret
        try:
            profile = await asyncio.to_thread(lambda: self._profiles.read().get(live.record.profile))
            options = dict(stores_of(profile).get(scheme, {}))
            reference = options.pop("secret", "")
            if secret:
                values = await asyncio.to_thread(self._secrets.get, live.record.id) or {}
                return {"options": options, "credentials": values.get(secret, "")}
            entry = reference.partition(":")[2]
            credentials = await from_keyring(f"stores.{scheme}.secret", entry) if entry else ""
        except PaiJupyterError as error:
            raise DataFailed("data", error.message, error.hint, 422) from error
        except ValueError as error:
            raise DataFailed("data", f"Setting {error}.", "Correct it in profiles.yaml.", 422) from error
        return {"options": options, "credentials": credentials}

    async def _talk(self, process: Any, request: dict[str, Any], live: LiveJob, data: Data) -> str:
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        complaint = asyncio.create_task(process.stderr.read())
        answer: dict[str, Any] = {}
        said = time.monotonic()
        try:
            async for line in process.stdout:
                answer = json.loads(line)
                if "done" in answer and time.monotonic() - said >= _BETWEEN:
                    said = time.monotonic()
                    await self._say(live, f"Data `{data.source.name}`: {_share(answer)}.")
            if "key" not in answer and "problem" not in answer:
                words = (await complaint).decode(errors="replace").strip().splitlines()[-1:]
                answer = {"problem": {"title": f"Data `{data.source.name}` cannot be fetched: {words}."}}
        finally:
            complaint.cancel()
        if "problem" in answer:
            error = PaiJupyterError.from_problem_json(answer["problem"])
            raise DataFailed("data", error.message, error.hint, 422)
        return str(answer["key"])

    async def _say(self, live: LiveJob, words: str) -> None:
        if not live.life.stopped_by:
            await self._catalog.append(live.record.id, own_change("waiting", "data", words))


def _share(answer: dict[str, Any]) -> str:
    done, total = int(answer["done"]), answer.get("total")
    if not total:
        return readable_size(done)
    return f"{100 * done // int(total)} % of {readable_size(int(total))}"
