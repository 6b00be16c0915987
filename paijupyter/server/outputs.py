"""What jobs have left, for a browser: copied into a folder of this server, or shown by TensorBoard."""

from __future__ import annotations

import sys
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import authorized
from tornado import web

from paijupyter.server.contents import place_of
from paijupyter.server.handlers import RESOURCE, PassOn, rewritten


class PullHandler(PassOn):
    """Outputs into a folder of this server: that writes files, as the file browser would."""

    @web.authenticated
    @authorized("write", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Copy; the folder must lie below the server's root."""
        if not await ensure_async(
            self.authorizer.is_authorized(self, self.current_user, "write", "contents")
        ):
            raise web.HTTPError(403, "Outputs cannot be pulled without the right to write files here.")
        await self.pass_on(rewritten(self.request.body, self._rewrite_folder))

    def _rewrite_folder(self, body: dict[str, Any]) -> None:
        # Anything else than a text is left to the engine to refuse; it must be no path that we have not seen.
        if isinstance(body.get("folder"), str):
            body["folder"] = str(place_of(self.contents_manager, body["folder"]))


class BoardHandler(PassOn):
    """TensorBoard is a program that is run."""

    @web.authenticated
    @authorized("execute", resource=RESOURCE)
    async def post(self, *_: str) -> None:
        """Start it in the environment of this server, or find it."""
        await self.pass_on(rewritten(self.request.body or b"{}", self._add_python))

    def _add_python(self, body: dict[str, Any]) -> None:
        body["python"] = sys.executable


_JOB = r"/paijupyter/v1/jobs/[^/]+"
RULES = [(rf"{_JOB}/pull", PullHandler), (rf"{_JOB}/tensorboard", BoardHandler)]
