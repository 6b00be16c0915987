"""Data and storages of a job on this machine: what its tasks are told, and what the plan says of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from paijupyter.backends.base import Data, Job, Place, Profile
from paijupyter.backends.local.files import TaskFiles
from paijupyter.data.kinds import storage_of
from paijupyter.data.storages import Storage, existing, storages_of, used_by
from paijupyter.errors import PaiJupyterError, Problem
from paijupyter.protocol.data import place_of, shown

_DATA = "/extras/paijupyter/data"
_STORAGES = "/extras/storages"


def told(job: Job, files: TaskFiles, place: Place, profile: Profile) -> dict[str, Any] | None:
    """Return ``data`` of a task's spec, None for a job without data."""
    if not job.data:
        return None
    work, own = str(files.folder / "work"), str(files.folder / "data")
    storages = storages_of(profile.settings)
    return {
        "cache": str(place.data / "datasets"),
        # The same for all attempts: what a job was trained with does not change on the way.
        "resolved": str(job.folder / "tasks" / "data"),
        "sources": [_source(each, work, own, storages) for each in job.data],
    }


def _source(data: Data, work: str, own: str, storages: dict[str, Storage]) -> dict[str, Any]:
    source = data.source
    found: dict[str, Any] = {
        **source.to_json(),
        "shown": shown(source.uri),
        "base": source.base,
        "place": place_of(source, work, own),
        "inside": bool(source.path) and not source.path.startswith("/"),
        "key": data.key,
    }
    if data.package is not None:
        found["package"] = {
            "manifest": str(data.package.folder / "manifest.json"),
            "pack": str(data.package.folder / "pack"),
            "blobs": str(data.package.blobs),
            "sha256": data.package.sha256,
        }
    if source.kind == "storage":
        name, path = storage_of(source)
        found["link"] = str(existing(storages[name], path))
    return found


def storages_told(job: Job, profile: Profile) -> list[dict[str, str]]:
    """Return ``storages`` of a task's spec."""
    there = storages_of(profile.settings)
    names = [name for name, _ in used_by(job.document, there) if name in there]
    return [{"name": name, "path": str(there[name].folder)} for name in dict.fromkeys(names)]


def problems(job: Job, profile: Profile) -> Iterator[Problem]:
    """Yield what the plan says of data and storages."""
    try:
        there = storages_of(profile.settings)
    except PaiJupyterError as error:
        yield Problem("error", error.code, error.message, hint=error.hint)
        return
    yield from _storage_problems(job, profile, there)
    for index, data in enumerate(job.data):
        source, path = data.source, f"{_DATA}/{index}"
        if source.path.startswith("/") and not _leads_to(source.path, source.base):
            yield Problem(
                "warning",
                "data-path",
                f"Data `{source.name}` will not be at `{source.path}`: a local job makes no folders there.",
                f"{path}/path",
                hint=f"Read ${source.variable}/{source.base} instead; that works on every backend.",
            )
        if source.kind == "storage":
            yield from _in_storage(data, path, profile, there)


def _leads_to(path: str, base: str) -> bool:
    return os.path.exists(os.path.join(path, base))


def _in_storage(data: Data, path: str, profile: Profile, there: dict[str, Storage]) -> Iterator[Problem]:
    name, below = storage_of(data.source)
    if name not in there:
        yield _unknown(name, f"{path}/uri", profile, there)
        return
    try:
        existing(there[name], below)
    except PaiJupyterError as error:
        yield Problem("error", "data-missing", error.message, f"{path}/uri", hint=error.hint)


def _storage_problems(job: Job, profile: Profile, there: dict[str, Storage]) -> Iterator[Problem]:
    for name, mount in used_by(job.document, there):
        storage = there.get(name)
        if storage is None:
            yield _unknown(name, _STORAGES, profile, there)
            continue
        if storage.folder is None or not storage.folder.is_dir():
            yield Problem(
                "error",
                "storage-unusable",
                f"Storage `{name}` is not there: no folder at `{storage.folder}` on this machine.",
                _STORAGES,
                hint="Mount it, or correct `path` in the profile.",
            )
        elif os.path.realpath(mount) != os.path.realpath(storage.folder):
            limits = "; it is not write-protected there" if storage.read_only else ""
            yield Problem(
                "hint",
                "storage-mount",
                f"Storage `{name}` is not mounted at `{mount}`: a local job reads it where it lies{limits}.",
                _STORAGES,
                hint=f"Use $PAI_STORAGE_{_capitals(name)}; that works on every backend.",
            )


def _unknown(name: str, path: str, profile: Profile, there: dict[str, Storage]) -> Problem:
    return Problem(
        "error",
        "no-storage",
        f"Storage `{name}` is not one of profile `{profile.name}`.",
        path,
        hint=f"It has: {', '.join(sorted(there)) or 'none'}.",
    )


def _capitals(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name.upper())
