"""Prints as JSON what the backend learns of this machine's GPUs, after a job of GPU tasks has run on it.

Usage: ask.py FOLDER, which has ``dev`` with the driver's nodes. A process of its own: libraries are found by
its environment, and stay loaded.
"""

import asyncio
import dataclasses
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from staging import document, log_of, make_job, role, watching

from paijupyter import paths
from paijupyter.backends.base import Place, Profile
from paijupyter.backends.local import LocalBackend, gpus, nvml

SAY = 'echo "$CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES"; '
HOLD = 'until test -e "$PAI_CHECKPOINT_DIR/go"; do sleep 0.02; done'


def one_gpu_each(tasks: int) -> dict:
    resources = {"cpu": 1, "memoryMB": 64, "gpu": 1}
    return role(SAY + HOLD, instances=tasks, resourcePerInstance=resources)


async def ask() -> dict:
    place = Place(paths.data_dir(), paths.runtime_dir())
    backend = LocalBackend(Profile("local", "local", {"cpu": 99}), place)
    capacity = int((await backend.capabilities()).capacity["gpu"])
    wish = make_job(place, document({"worker": one_gpu_each(capacity or 1)}))
    plan = await backend.plan(wish)
    found = {
        "names": gpus.ask().names,
        "capacity": capacity,
        "problems": {problem.code: problem.message for problem in plan.problems},
        "unknown": len(nvml.usage(["77", "GPU-of-nobody"])),
    }
    if capacity:
        found["tasks"] = await run(backend, wish, capacity)
    await backend.close()
    return found


async def run(backend: LocalBackend, job, tasks: int) -> list:
    async with watching(backend) as watch:
        await backend.submit(job, {})
        await watch.running(job)
        usage = await backend.usage(job)
        (job.folder / "checkpoints" / "go").touch()
        final = await watch.final(job)
        assert final.state == "succeeded", final
    said = []
    for index in range(tasks):
        line = (await log_of(backend, job, f"worker-{index}")).decode().rstrip("\n")
        said.append([line, [dataclasses.astuple(gpu) for gpu in usage[f"worker-{index}"].gpus]])
    return said


gpus._DEV = Path(sys.argv[1]) / "dev"
print(json.dumps(asyncio.run(ask())))
