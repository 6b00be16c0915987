"""A running job is activity: a Hub must not cull the server while one runs.

Requests that only look do not count (see handlers.py). This never starts an engine.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from tornado.ioloop import PeriodicCallback
from tornado.iostream import StreamClosedError

from paijupyter import paths
from paijupyter.errors import PaiJupyterError
from paijupyter.server.door import Collector, Upstream

SECONDS = 60.0


def keep_server_awake(settings: dict[str, Any]) -> PeriodicCallback:
    """Look every minute for unfinished jobs; a Hub's culler sees when some were found last."""

    async def look() -> None:
        if await unfinished() > 0:
            settings["last_activity_times"]["paijupyter"] = datetime.now(timezone.utc)

    callback = PeriodicCallback(look, SECONDS * 1000, jitter=0.1)
    callback.start()
    return callback


async def unfinished() -> int:
    """Return the number of unfinished jobs; 0 if no engine runs."""
    try:
        path = paths.engine_socket()
        if not path.exists():
            return 0
        upstream = await Upstream.connect(path)
    except (OSError, StreamClosedError, PaiJupyterError):
        return 0
    answer = Collector()
    await upstream.exchange("GET", "/v1/version", {}, None, answer)
    return int(json.loads(answer.body)["unfinished"]) if answer.status == 200 else 0
