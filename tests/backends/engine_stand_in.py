"""A process that uses a backend as the engine does, to be killed: submit the pickled jobs and watch."""

from __future__ import annotations

import asyncio
import pickle
import sys
from pathlib import Path

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.local import LocalBackend


async def main(jobs: list[Job], place: Place) -> None:
    backend = LocalBackend(Profile("local", "local", {"cpu": 2}), place)
    print("begin", flush=True)
    for job in jobs:
        await backend.submit(job, {name: "value" for name in job.document.get("secrets") or {}})
    async for change in backend.watch([]):
        print(change.job, change.state, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*pickle.loads(Path(sys.argv[1]).read_bytes())))
