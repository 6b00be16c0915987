"""What the tasks of a job use, as screens show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paijupyter.backends.base import Usage


def usage_json(usage: Usage | None) -> dict[str, Any] | None:
    """Return ``{cpu, memoryMB, gpu: [{name, busy, memoryMB}]}`` of one task, or None."""
    if usage is None:
        return None
    gpus = [{"name": gpu.name, "busy": gpu.busy, "memoryMB": gpu.memory_mb} for gpu in usage.gpus]
    return {"cpu": round(usage.cpu, 2), "memoryMB": round(usage.memory_mb), "gpu": gpus}


def total_usage(tasks: Mapping[str, Usage]) -> dict[str, Any] | None:
    """Return ``{tasks, cpu, memoryMB, gpu: {count, busy, memoryMB} | null}`` of a whole job, or None."""
    if not tasks:
        return None
    gpus = [gpu for usage in tasks.values() for gpu in usage.gpus]
    busy = [gpu.busy for gpu in gpus if gpu.busy is not None]
    memory = [gpu.memory_mb for gpu in gpus if gpu.memory_mb is not None]
    return {
        "tasks": len(tasks),
        "cpu": round(sum(usage.cpu for usage in tasks.values()), 2),
        "memoryMB": round(sum(usage.memory_mb for usage in tasks.values())),
        "gpu": {
            "count": len(gpus),
            "busy": round(sum(busy) / len(busy), 2) if busy else None,
            "memoryMB": round(sum(memory)) if memory else None,
        }
        if gpus
        else None,
    }
