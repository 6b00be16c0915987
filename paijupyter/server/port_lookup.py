"""Where a port of a running task is reached on this host: the engine says so, for each request anew."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from urllib.parse import quote

from paijupyter.errors import NotFound, PaiJupyterError
from paijupyter.server.door import Collector, Door

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS = "0A"


async def number_of(door: Door, job: str, task: str, label: str) -> int:
    """Return the number under which this host reaches a port.

    That of a process here is its own; for a task elsewhere the engine listens, and carries what comes there.

    Raises:
        PaiJupyterError: there is no such job, it does not run, it has no such port, or another user took it.
    """
    upstream, answer = await door.open(), Collector()
    body = json.dumps({"task": task, "port": label}).encode()
    target = f"/v1/jobs/{quote(job, safe='')}/forward"
    await upstream.exchange("POST", target, {"Content-Type": "application/json"}, body, answer)
    if answer.status in (400, 422):  # no name that a task or a port may have
        raise NotFound("Port", f"{task} {label}", "See the ports of a job with: get.")
    if answer.status != 200:
        raise _refused(answer)
    number = int(json.loads(answer.body)["local"])
    if await asyncio.to_thread(is_of_another_user, number):
        raise PaiJupyterError(
            "port-taken",
            f"Port `{label}` of `{task}` was taken by another user of this host.",
            "Submit the job again: it gets other ports.",
            409,
        )
    return number


def _refused(answer: Collector) -> PaiJupyterError:
    try:
        problem = json.loads(answer.body)
        return PaiJupyterError(problem["code"], problem["title"], problem.get("hint", ""), answer.status)
    except (ValueError, KeyError, TypeError):
        return PaiJupyterError("engine-lost", "The engine ended before it answered.", "Try again.", 503)


def silent(task: str, label: str) -> PaiJupyterError:
    """Return what is said of a port that nobody listens on."""
    role, _, index = task.rpartition("-")
    variable = f"PAI_PORT_LIST_{role}_{index}_{label.partition('.')[0]}"
    return PaiJupyterError(
        "port-silent",
        f"Port `{label}` of `{task}` does not answer.",
        f"The program may still be starting, or listen on another port than the one in {variable}.",
        502,
    )


def is_of_another_user(port: int) -> bool:
    """Say whether who listens on a port is certainly somebody else; on a shared host that may happen."""
    owners = set()
    for table in TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 7 and fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                owners.add(int(fields[7]))
    return bool(owners) and os.getuid() not in owners
