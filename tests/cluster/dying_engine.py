"""An engine that is killed in the middle of a submission: run as a process by ``killed.py``.

It submits the jobs of ``told.json`` in the folder ``argv[1]`` and kills itself ``before`` or ``after``
(``argv[3]``) its request number ``argv[2]`` that changes something on the cluster, or ``building``: once an
image is being built and some of the build's log is here. It ends with 0 if it was through before that. In the
folder it notes the requests (``steps``) and the end of the submission (``submitted``).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from paijupyter.backends.base import FINAL, Backend, Batching, Job, Package, Place, Profile, load_backend
from paijupyter.backends.kubernetes.transport import KubeTransport

_CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_LOOK = 0.1  # seconds


def die() -> None:
    """End without any farewell."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(number: int, when: str, steps: Path) -> None:
    """Let every transport of this process end it at a request."""
    request = KubeTransport.request
    seen = 0

    async def dying(self: KubeTransport, method: str, path: str, **more: Any) -> Any:
        nonlocal seen
        mine = 0
        if method in _CHANGING and "selfsubject" not in path:
            seen += 1
            mine = seen
            with steps.open("a") as file:
                file.write(f"{method} {path}\n")
        is_it = mine == number and number > 0
        if is_it and when == "before":
            die()
        answer = await request(self, method, path, **more)
        if is_it and when == "after":
            die()
        return answer

    KubeTransport.request = dying  # type: ignore[method-assign]


async def submit(told: dict[str, Any], submitted: Path, when: str) -> None:
    """Submit one job, or many in one call; follow a single one to its end if that is told."""
    jobs = [_job(each) for each in told["jobs"]]
    place = Place(Path(told["data"]), Path(told["runtime"]))
    backend = load_backend(Profile("lab", "kubernetes", told["settings"]), place)
    if len(jobs) == 1:
        await backend.submit(jobs[0], told["secrets"])
    else:
        assert isinstance(backend, Batching)
        await backend.submit_many([(job, told["secrets"]) for job in jobs])
    submitted.touch()
    if told["follow"]:
        await _follow(backend, jobs[0], when)
    await backend.close()


async def _follow(backend: Backend, job: Job, when: str) -> None:
    async for change in backend.watch([job]):
        if when == "building" and "is being built since" in change.message:
            log = job.folder / "tasks" / "worker-0" / "0" / "log"
            while not (log.exists() and log.stat().st_size):
                await asyncio.sleep(_LOOK)
            die()
        if change.state in FINAL:
            return


def _job(told: dict[str, Any]) -> Job:
    package = told.pop("package")
    found = Package(package["sha256"], Path(package["folder"]), Path(package["blobs"])) if package else None
    return Job(**{**told, "folder": Path(told["folder"])}, package=found)


if __name__ == "__main__":
    folder, number, moment = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    die_at(number, moment, folder / "steps")
    asyncio.run(submit(json.loads((folder / "told.json").read_text()), folder / "submitted", moment))
