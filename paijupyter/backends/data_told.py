"""What a task elsewhere is told of its sources of data. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from paijupyter.backends.base import Data, Job
from paijupyter.data.kinds import storage_of
from paijupyter.protocol.data import DataSource, place_of, shown


def travels(data: Data) -> bool:
    """Say whether a source of data reaches the tasks as a package."""
    return bool(data.package or data.key)


def data_told(
    job: Job,
    parcels: Sequence[Mapping[str, Any]],
    storages: Sequence[Mapping[str, Any]],
    work: str,
    home: str,
) -> dict[str, Any] | None:
    """Return ``data`` of ``spec.json``, None if the job has none.

    Args:
        job: the job.
        parcels: the packages that travel: the trainer package first, if the job has one, then those of its
            data in their order.
        storages: each ``name`` and ``path`` in the task.
        work: the package folder in the task.
        home: folder in the task for what stands in a home folder here.
    """
    if not job.data:
        return None
    mounted = {str(each["name"]): str(each["path"]) for each in storages}
    sources, parcel = [], 1 if job.package else 0
    for data in job.data:
        sources.append(_source(data, mounted, work, home))
        if travels(data):
            sources[-1]["package"] = {"parcel": parcel, "sha256": parcels[parcel]["sha256"]}
            parcel += 1
    return {"sources": sources}


def _source(data: Data, mounted: Mapping[str, str], work: str, home: str) -> dict[str, Any]:
    source = data.source
    found: dict[str, Any] = {
        **source.to_json(),
        "shown": shown(source.uri),
        "base": source.base,
        "place": _place(source, work, home),
        "inside": bool(source.path) and not source.path.startswith("/"),
        "key": "",
    }
    if source.kind == "storage":
        name, path = storage_of(source)
        found["link"] = posixpath.join(mounted.get(name, f"/mnt/{name}"), path)
    return found


def _place(source: DataSource, work: str, home: str) -> str:
    """Return the folder of a source in the task: an absolute one is mounted where it is wanted."""
    return source.path.rstrip("/") if source.path.startswith("/") else place_of(source, work, home)
