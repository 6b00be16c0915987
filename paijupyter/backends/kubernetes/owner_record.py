"""The record in the owner ConfigMap: enough for another host to take the job over, and no secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.kubernetes import building
from paijupyter.backends.kubernetes.building import Build
from paijupyter.backends.kubernetes.delivery.parcels import Parcel
from paijupyter.backends.kubernetes.render import JOB_FILE, Frame
from paijupyter.backends.kubernetes.volumes import Mounted

SCHEMA = 1


def record(frame: Frame) -> dict[str, Any]:
    """Return the record of a job that is about to be created. Reads the job's folder, where there is one."""
    job = frame.job
    return {
        "schema": SCHEMA,
        "id": job.id,
        "name": job.name,
        "user": job.user,
        "source": _text(job.folder / "document.yaml"),
        "facts": _facts(job.folder / "job.json"),
        "document": job.document,
        "commands": dict(job.commands),
        "package": job.package.sha256 if job.package else None,
        "jobset": frame.gang.jobset,
        "parcels": [
            {
                "sha256": each.sha256,
                "way": each.way,
                "told": each.told,
                "volume": each.mounted.volume if each.mounted else None,
                "mounts": list(each.mounted.mounts) if each.mounted else [],
            }
            for each in frame.parcels
        ],
        **({"builds": building.to_json(frame.builds)} if frame.builds else {}),
    }


def read(owner: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record in an owner, {} if it has none that can be read."""
    try:
        found = json.loads((owner.get("data") or {}).get(JOB_FILE) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else {}


def builds(owner: Mapping[str, Any]) -> dict[str, Build]:
    """Return the images that are built for a job, by role, as they were chosen when it was created."""
    return building.from_json(read(owner).get("builds") or {})


def parcels(owner: Mapping[str, Any], index: int | None = None) -> list[Parcel]:
    """Return the parcels of a job as they were when it was created.

    Args:
        owner: its owner, or that of its bundle.
        index: of the job in its bundle.
    """
    found, of = [], read(owner)
    if index is not None:
        of = of["jobs"][index] if index < len(of.get("jobs") or ()) else {}
    for each in of.get("parcels") or ():
        mounted = Mounted(each["volume"], tuple(each["mounts"])) if each["volume"] else None
        found.append(Parcel(each["sha256"], each["way"], each["told"], mounted))
    return found


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None


def _facts(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
