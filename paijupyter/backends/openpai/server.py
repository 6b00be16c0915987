"""What a server is and who we are there: asked once, asked again after a failure."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import quote

from paijupyter.backends.openpai.answers import mapping, text
from paijupyter.backends.openpai.client import OpenPaiClient
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.settings import OpenPaiSettings


class Server:
    """One server, as one user.

    Attributes:
        client: the way to it.
        settings: of the profile.
    """

    def __init__(self, client: OpenPaiClient, settings: OpenPaiSettings) -> None:
        self.client = client
        self.settings = settings
        self._user = settings.user
        self._version: tuple[int, int] | None = None
        self._info: dict[str, Any] = {}
        self._lock = asyncio.Lock()

    async def user(self) -> str:
        """Return our name there.

        Raises:
            PaiError: it cannot be asked, or is too old to know (before 1.6) and the profile has no ``user``.
        """
        async with self._lock:
            if not self._user:
                try:
                    found = await self.client.call("GET", "/tokens/check")
                except PaiError as error:
                    if error.status != 404:
                        raise
                    raise PaiError(
                        400, "NoUser", "this version does not say whose a token is: set `user` in the profile"
                    ) from error
                self._user = text(mapping(found).get("username"))
                if not self._user:
                    raise PaiError(0, "NotOpenPai", "it does not say whose the token is")
            return self._user

    async def info(self) -> dict[str, Any]:
        """Return what it says of itself.

        Raises:
            PaiError: it cannot be asked, or is no OpenPAI server.
        """
        if not self._info:
            found = await self.client.call("GET", "/info", login=False)
            if not isinstance(found, dict) or not ({"launcherType", "authnMethod"} & found.keys()):
                raise PaiError(0, "NotOpenPai", "its description of itself is none of OpenPAI")
            self._info = found
        return self._info

    async def version(self) -> tuple[int, int]:
        """Return major and minor number of its version; one that cannot be read counts as the newest.

        Raises:
            PaiError: it cannot be asked.
        """
        found = re.search(r"(\d+)\.(\d+)", text((await self.info()).get("version")))
        return (int(found[1]), int(found[2])) if found else (1, 8)

    async def path(self, name: str) -> str:
        """Return the path of one of our jobs."""
        return f"/jobs/{quote(await self.user(), safe='')}~{quote(name, safe='')}"

    def forget(self) -> None:
        """Ask anew who we are: the login may be another one."""
        self._user = self.settings.user
        self._info = {}
