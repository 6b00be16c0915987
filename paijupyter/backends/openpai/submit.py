"""Posting a job: once however often it is asked, and never in doubt for long (openpai.md 8.3, D10).

A name is unique per user for ever, so a server that has the name has the job: what was posted and never
answered, or answered with an error although it was taken, is found again by its name and our mark in it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from paijupyter.backends.base import Job
from paijupyter.backends.delivery.commits import Mirror
from paijupyter.backends.fetched import packed
from paijupyter.backends.openpai import emit, journal, ladder, returning
from paijupyter.backends.openpai.answers import mapping
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.journal import Journal
from paijupyter.backends.openpai.server import Server
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.names import with_suffix

_log = logging.getLogger(__name__)
_LOOKS = (0.3, 1.0, 3.0)  # seconds before each look for a job that may have been taken
_NAMES = 3  # tries with another name


class Unsure(Exception):
    """The server was asked to take the job, and cannot be asked whether it has."""


class Submitter:
    """Posts the jobs of a profile.

    Args:
        server: who takes them.
        data: the data folder of this host.
        mirror: the commits of the profile's git remote.
    """

    def __init__(self, server: Server, data: Path, mirror: Mirror | None) -> None:
        self._server = server
        self._data = data
        self._mirror = mirror

    async def create(self, job: Job, state: Journal, secrets: Mapping[str, str]) -> None:
        """See that the server has the job; its name there is in the journal then.

        Raises:
            PaiJupyterError: what the server has against it; it does not have it then.
            Unsure: it was asked, and then nothing more could be heard.
        """
        asked_before = bool(state.name)
        if asked_before and await self._found(job, state.name):
            return
        state.name = state.name or job.name
        await asyncio.to_thread(journal.save, job, state)
        for _ in range(_NAMES):
            try:
                body = (await self._text(job, state.name, secrets)).encode()
                await self._post(job, state.name, body)
                return
            except PaiError as error:
                if error.status != 409:
                    raise error.for_people("take the job") from error
                if await self._found(job, state.name):
                    return
            # Somebody else's, most often one of our own of long ago: names are never free again.
            state.name = with_suffix(job.name)
            await asyncio.to_thread(journal.save, job, state)
        raise PaiJupyterError(
            "name-taken", f"Name `{job.name}` is taken on the server.", "Give the job another name.", 409
        )

    async def _text(self, job: Job, name: str, secrets: Mapping[str, str]) -> str:
        settings = self._server.settings
        if not emit.carries(job):
            return emit.text_of(job, name, settings, secrets, None)
        whole = await asyncio.to_thread(packed, job, self._data)
        load = await asyncio.to_thread(ladder.load, whole, name, settings, secrets, self._mirror)
        carried = await ladder.send(load, whole, name, settings, self._data / "staging", self._mirror)
        if carried.outputs is not None:
            outputs = await asyncio.to_thread(returning.told, whole, name, settings)
            carried = replace(carried, outputs=outputs)
        return emit.text_of(whole, name, settings, secrets, carried)

    async def _post(self, job: Job, name: str, body: bytes) -> None:
        """Post the document.

        Raises:
            PaiError: the server does not have the job.
            Unsure: nobody knows.
        """
        if len(body) > emit.LARGEST:
            raise PaiError(413, "", f"the document has {len(body)} bytes")
        try:
            await self._server.client.ask("POST", "/jobs", body=body, content_type="text/yaml")
            return
        except PaiError as error:
            flake = error.status == 404 and error.code != "NoStorageError"
            if not (error.is_unclear or flake) or error.code in ("Tls", "NotOpenPai"):
                raise
            _log.warning("job %s: the server answered its submission with %s", job.name, error)
            if await self._appears(job, name, error):
                return
            raise

    async def _appears(self, job: Job, name: str, error: PaiError) -> bool:
        """Say whether the server has a job after all.

        Raises:
            Unsure: it cannot be asked.
        """
        silent = 0
        for pause in _LOOKS:
            await asyncio.sleep(pause)
            try:
                if await self._found(job, name):
                    return True
                silent = 0
            except PaiJupyterError:
                silent += 1
        # A connection that was refused has carried nothing.
        if silent == len(_LOOKS) and not (error.code == "Unreachable" and "refused" in error.message.lower()):
            raise Unsure from error
        return False

    async def _found(self, job: Job, name: str) -> bool:
        """Say whether the server has this very job under a name.

        Raises:
            PaiJupyterError: it cannot be asked.
        """
        try:
            path = await self._server.path(name)
            answer = await self._server.client.ask("GET", f"{path}/config")
        except PaiError as error:
            if error.status == 404:
                return False
            raise error.for_people("say whether it has the job") from error
        try:
            extras = mapping(mapping(json.loads(answer.body)).get("extras"))
        except ValueError:
            return False
        mark = mapping(mapping(extras.get("paijupyter")).get("openpai"))
        return mark.get("job") == job.id
