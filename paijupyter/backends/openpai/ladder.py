"""Which way each package of a job travels, and sending it: the first way of the profile that it fits.

A server takes no files, only a document of at most 102,400 bytes. So small packages travel inside it, larger
ones by a storage that this host and the tasks both have, or by a store that both reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Package
from paijupyter.backends.delivery import archive
from paijupyter.backends.openpai import emit, payload
from paijupyter.backends.openpai.emit import Carried
from paijupyter.backends.openpai.settings import OpenPaiSettings
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.quantities import format_memory

_INSIDE = 512 * 1024
"""Bytes of a package that may still fit into a document; more are not tried."""
WORDS = {
    "document": "inside the document",
    "storage": "by storage `{storage}`, which this host has too",
    "object": "by bucket `{bucket}`",
    "webhdfs": "by WebHDFS at {webhdfs}",
}


@dataclass(frozen=True, slots=True)
class Leg:
    """The chosen way of one package.

    Attributes:
        number: of the package in the job.
        package: what travels.
        way: one of ``settings.WAYS``.
        size: its bytes.
    """

    number: int
    package: Package
    way: str
    size: int


@dataclass(frozen=True, slots=True)
class Load:
    """Everything of ours that a job takes along: how its packages travel, and what its document carries."""

    legs: tuple[Leg, ...]
    carried: Carried


def load(job: Job, name: str, settings: OpenPaiSettings, secrets: Mapping[str, str]) -> Load:
    """Choose the ways; sends nothing. Blocking.

    Args:
        job: the job, with what was fetched for it as packages.
        name: what it is called on the server.
        settings: of the profile.
        secrets: their values, for they count for the size of the document.

    Raises:
        PaiJupyterError: ``package-too-big`` if no way takes one; it lists what could be set up.
    """
    packages = archive.packages_of(job)
    sizes = [archive.size_of(package) for package in packages]
    first = _first(settings)
    inside = {number for number, size in enumerate(sizes) if first == "document" and size <= _INSIDE}
    while True:
        ways = [
            "document" if number in inside else _elsewhere(settings, sizes[number])
            for number in range(len(packages))
        ]
        legs = tuple(
            Leg(number, package, way, sizes[number])
            for number, (package, way) in enumerate(zip(packages, ways, strict=True))
        )
        found = Load(legs, _carried(job, name, settings, legs, {}, {}))
        size = len(emit.text_of(job, name, settings, secrets, found.carried).encode())
        if size <= emit.LARGEST:
            return found
        if not inside:
            raise _too_long(size)
        inside.remove(max(inside, key=lambda number: sizes[number]))


async def send(found: Load, job: Job, name: str, settings: OpenPaiSettings, staging: Path) -> Carried:
    """Bring the packages to where the tasks find them; return what the document carries.

    Args:
        found: from :func:`load`.
        job: the job.
        name: what it is called on the server.
        settings: of the profile.
        staging: a folder for archives on their way.

    Raises:
        PaiJupyterError: ``package-not-sent`` with the reason.
    """
    facts: dict[int, archive.Archive] = {}
    urls: dict[int, str] = {}
    for leg in found.legs:
        if leg.way == "storage":
            await asyncio.to_thread(_to_storage, leg.package, settings)
        elif leg.way == "object" and settings.bucket is not None:
            from paijupyter.backends.delivery import objects

            sent = await asyncio.to_thread(objects.put, leg.package, settings.bucket, staging)
            facts[leg.number], urls[leg.number] = sent
        elif leg.way == "webhdfs" and settings.webhdfs is not None:
            from paijupyter.backends.openpai.webhdfs import put

            sent = await asyncio.to_thread(put, leg.package, settings.webhdfs, staging)
            facts[leg.number], urls[leg.number] = sent
    if not urls:
        return found.carried
    return await asyncio.to_thread(_carried, job, name, settings, found.legs, facts, urls)


def in_words(leg: Leg, settings: OpenPaiSettings) -> str:
    """Say by which way a package travels."""
    return WORDS[leg.way].format(
        storage=settings.storage,
        bucket=settings.bucket.bucket if settings.bucket else "",
        webhdfs=settings.webhdfs.url if settings.webhdfs else "",
    )


def kept_folder(name: str, settings: OpenPaiSettings) -> str | None:
    """Return the folder of a job in the profile's storage as its tasks have it, None without a storage."""
    shared = settings.shared
    return f"{shared.mount_path}/{settings.folder}/jobs/{name}" if shared else None


def kept_here(name: str, settings: OpenPaiSettings) -> Path | None:
    """Return the folder of :func:`kept_folder` as this host has it."""
    shared = settings.shared
    return shared.folder / settings.folder / "jobs" / name if shared and shared.folder else None


def _first(settings: OpenPaiSettings) -> str:
    """Return the first way that there is, "" for none."""
    return next(iter(_there(settings)), "")


def _there(settings: OpenPaiSettings) -> list[str]:
    """Return the ways that there are, in the profile's order."""
    there = {
        "document": True,
        "storage": settings.shared is not None,
        "object": settings.bucket is not None,
        "webhdfs": settings.webhdfs is not None,
    }
    return [way for way in settings.ways if there[way]]


def _elsewhere(settings: OpenPaiSettings, size: int) -> str:
    for way in _there(settings):
        if way != "document":
            return way
    raise PaiJupyterError(
        "package-too-big",
        f"Package of {format_memory(max(size / 2**20, 0.1))} does not fit into a job document, and profile "
        f"`{settings.name}` has no other way for it.",
        "Leave large files out (.paiignore) and read them as data; or set up in the profile `storage` (with "
        "`storages`), `packageObject` or `packageWebHdfs`.",
        413,
    )


def _too_long(size: int) -> PaiJupyterError:
    return PaiJupyterError(
        "too-large",
        f"Job document would have {size} bytes; OpenPAI takes at most {emit.LARGEST}.",
        "Make its commands shorter: code and data belong into the trainer package.",
        413,
    )


def _carried(
    job: Job,
    name: str,
    settings: OpenPaiSettings,
    legs: Sequence[Leg],
    facts: Mapping[int, archive.Archive],
    urls: Mapping[int, str],
) -> Carried:
    told = [_told(leg, settings, facts.get(leg.number)) for leg in legs]
    spec = payload.spec_of(job, settings, told, kept_folder(name, settings))
    inside = [(leg.number, leg.package) for leg in legs if leg.way == "document"]
    # What only sending can tell is as long as this.
    shown = {leg.number: "" for leg in legs if leg.way in ("object", "webhdfs")}
    shared = settings.shared
    more = [{"name": shared.name, "path": shared.mount_path}] if shared else []
    return Carried(payload.pack(job, spec, inside), {**shown, **urls}, more)


def _told(leg: Leg, settings: OpenPaiSettings, facts: archive.Archive | None) -> dict[str, Any]:
    sha256, number = leg.package.sha256, leg.number
    if leg.way == "document":
        return {"sha256": sha256, "way": "folder", "folder": f"parcels/{number}"}
    if leg.way == "storage" and settings.shared is not None:
        place = f"{settings.shared.mount_path}/{settings.folder}/packages/{sha256}"
        return {"sha256": sha256, "way": "folder", "folder": place}
    known = facts or archive.Archive("0" * 64, leg.size)
    return {
        "sha256": sha256,
        "way": "url",
        "urlFile": f"url-{number}",
        "archive": {"sha256": known.sha256, "bytes": known.size},
    }


def _to_storage(package: Package, settings: OpenPaiSettings) -> None:
    from paijupyter.backends.delivery import folder

    shared = settings.shared
    if shared is None or shared.folder is None or not shared.folder.is_dir():
        raise _not_sent(settings, "it is no folder on this host")
    try:
        folder.put(package, shared.folder / settings.folder / "packages")
    except OSError as error:
        raise _not_sent(settings, error.strerror or str(error)) from error


def _not_sent(settings: OpenPaiSettings, why: str) -> PaiJupyterError:
    where = settings.shared.folder if settings.shared else "?"
    return PaiJupyterError(
        "package-not-sent",
        f"Package cannot be copied to `{where}`, where storage `{settings.storage}` should be: {why}.",
        "Mount the storage there, correct `storages` of the profile, or take `storage` out of `packageWays`.",
        507,
    )
