"""The server extension: routes below ``<base_url>/paijupyter/v1/``."""

from __future__ import annotations

from typing import Any

from jupyter_server.extension.application import ExtensionApp

from paijupyter.server import handlers, openpai, outputs, paddle, ports
from paijupyter.server.activity import keep_server_awake
from paijupyter.server.door import Door


class PaiJupyterExtension(ExtensionApp):
    """Serves the job server's API to browsers and other hosts. The engine starts with the first request."""

    name = "paijupyter"
    load_other_extensions = True
    extension_url = "/lab"

    def initialize_settings(self) -> None:
        """Add the way to the engine to the application's settings (called by jupyter-server)."""
        self.settings["paijupyter_door"] = Door()

    def initialize_handlers(self) -> None:
        """Add the handlers (called by jupyter-server)."""
        self.handlers.extend([*ports.RULES, *outputs.RULES, *paddle.RULES, *openpai.RULES, *handlers.RULES])

    async def _start_jupyter_server_extension(self, serverapp: Any) -> None:
        """Begin to tell the server of running jobs, once its loop is up (called by jupyter-server)."""
        self._awake = keep_server_awake(serverapp.web_app.settings)

    async def stop_extension(self) -> None:
        """Let go; engine and jobs run on (called by jupyter-server)."""
        awake = getattr(self, "_awake", None)
        if awake is not None:
            awake.stop()
