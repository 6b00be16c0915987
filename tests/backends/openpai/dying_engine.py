"""An engine that is killed in the middle of a submission: run as a process by ``test_kills.py``.

It submits the job of the file ``argv[1]`` and kills itself after its step number ``argv[2]``, which is before
the next one; it ends with 0 if it was through before that. Steps are the records that it writes, the package
that it brings to a storage, and its calls of the server.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Package, Place, Profile, load_backend
from paijupyter.backends.delivery import folder
from paijupyter.backends.openpai import journal
from paijupyter.backends.openpai.client import OpenPaiClient

_seen = 0


def die_after(number: int) -> None:
    """Let this process end after a step."""

    def done() -> None:
        global _seen
        _seen += 1
        if _seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def step(called: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(called)
        def dying(*args: Any, **more: Any) -> Any:
            found = called(*args, **more)
            done()
            return found

        return dying

    ask = OpenPaiClient.ask

    async def dying_ask(self: OpenPaiClient, *args: Any, **more: Any) -> Any:
        found = await ask(self, *args, **more)
        done()
        return found

    OpenPaiClient.ask = dying_ask  # type: ignore[method-assign]
    journal.save = step(journal.save)
    folder.put = step(folder.put)


async def submit(told: dict[str, Any]) -> None:
    """Submit the job."""
    package = told["job"].pop("package")
    found = Package(package["sha256"], Path(package["folder"]), Path(package["blobs"]))
    job = Job(**{**told["job"], "folder": Path(told["job"]["folder"])}, package=found)
    place = Place(Path(told["data"]), Path(told["runtime"]))
    backend = load_backend(Profile("pai", "openpai", told["settings"]), place)
    await backend.submit(job, told["secrets"])
    await backend.close()


if __name__ == "__main__":
    die_after(int(sys.argv[2]))
    asyncio.run(submit(json.loads(Path(sys.argv[1]).read_text())))
