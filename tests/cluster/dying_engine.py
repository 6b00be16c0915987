"""An engine that is killed in the middle of a submission: run as a process by ``test_faults.py``.

It submits the jobs of the file ``argv[1]`` and kills itself ``before`` or ``after`` (``argv[3]``) its request
number ``argv[2]`` that changes something on the cluster; it ends with 0 if it was through before that.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Batching, Job, Package, Place, Profile, load_backend
from paijupyter.backends.kubernetes.transport import KubeTransport

_CHANGING = ("POST", "PUT", "PATCH", "DELETE")


def die_at(number: int, when: str) -> None:
    """Let every transport of this process end it at a request."""
    request = KubeTransport.request
    seen = 0

    async def dying(self: KubeTransport, method: str, path: str, **more: Any) -> Any:
        nonlocal seen
        mine = 0
        if method in _CHANGING and "selfsubject" not in path:
            seen += 1
            mine = seen
        if mine == number and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await request(self, method, path, **more)
        if mine == number and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    KubeTransport.request = dying  # type: ignore[method-assign]


async def submit(told: dict[str, Any]) -> None:
    """Submit one job, or many in one call."""
    jobs = [_job(each) for each in told["jobs"]]
    place = Place(Path(told["data"]), Path(told["runtime"]))
    backend = load_backend(Profile("lab", "kubernetes", told["settings"]), place)
    if len(jobs) == 1:
        await backend.submit(jobs[0], told["secrets"])
    else:
        assert isinstance(backend, Batching)
        await backend.submit_many([(job, told["secrets"]) for job in jobs])
    await backend.close()


def _job(told: dict[str, Any]) -> Job:
    package = told.pop("package")
    found = Package(package["sha256"], Path(package["folder"]), Path(package["blobs"])) if package else None
    return Job(**{**told, "folder": Path(told["folder"])}, package=found)


if __name__ == "__main__":
    die_at(int(sys.argv[2]), sys.argv[3])
    asyncio.run(submit(json.loads(Path(sys.argv[1]).read_text())))
