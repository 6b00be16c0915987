"""Which way a package travels, and sending it: the first way of the profile that it fits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Package
from paijupyter.backends.delivery import archive
from paijupyter.backends.delivery.archive import Archive
from paijupyter.backends.kubernetes.delivery import parcels
from paijupyter.backends.kubernetes.delivery.parcels import LARGEST_IN_CONFIGMAPS, Parcel
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.quantities import format_memory

_WORTH_COMPRESSING = 64 * 2**20
"""Bytes of a package that may still fit into ConfigMaps; more are not tried."""


@dataclass(frozen=True, slots=True)
class Leg:
    """The chosen way of one package.

    Attributes:
        index: of the package in the job.
        package: what travels.
        way: one of ``settings.WAYS``.
        data: its archive, where it travels in ConfigMaps.
    """

    index: int
    package: Package
    way: str
    data: bytes = b""


def choose(job: Job, settings: KubeSettings) -> list[Leg]:
    """Choose the way of each package of a job; sends nothing. Blocking.

    Raises:
        PaiJupyterError: ``package-too-big`` if no way takes one; it lists what could be set up.
    """
    return [_choose(index, package, settings) for index, package in enumerate(archive.packages_of(job))]


def preview(legs: Sequence[Leg], settings: KubeSettings) -> list[Parcel]:
    """Return the parcels as a plan shows them; what only sending can tell is left empty."""
    return [_parcel(leg, settings, Archive("", 0), "", f":{leg.package.sha256[:40]}") for leg in legs]


async def send(legs: Sequence[Leg], settings: KubeSettings, staging: Path) -> list[Parcel]:
    """Bring the packages to where the pods find them, and return the parcels.

    What travels in ConfigMaps is created with the job's other objects.

    Args:
        legs: from :func:`choose`.
        settings: of the profile.
        staging: a folder for archives on their way.

    Raises:
        PaiJupyterError: ``package-not-sent`` with the reason.
    """
    return [await asyncio.to_thread(_send, leg, settings, staging) for leg in legs]


def _choose(index: int, package: Package, settings: KubeSettings) -> Leg:
    size = archive.size_of(package)
    for way in settings.ways:
        if way == "configmap" and size <= _WORTH_COMPRESSING:
            data = archive.in_memory(package, LARGEST_IN_CONFIGMAPS)
            if data is not None:
                return Leg(index, package, way, data)
        stores: dict[str, Any] = {
            "claim": settings.claim_store,
            "object": settings.object_store,
            "image": settings.image_store,
        }
        if stores.get(way) is not None:
            return Leg(index, package, way)
    raise PaiJupyterError(
        "package-too-big",
        f"Package of {format_memory(max(size / 2**20, 0.1))} is too big for the ways that profile "
        f"`{settings.name}` has ({', '.join(settings.ways)}).",
        "Leave large files out (.paiignore) and read them as data; or set up `packageClaim`, `packageObject` "
        "or `packageImage` in the profile.",
        413,
    )


def _send(leg: Leg, settings: KubeSettings, staging: Path) -> Parcel:
    facts, url, reference = Archive("", 0), "", ""
    if leg.way == "claim" and settings.claim_store is not None:
        from paijupyter.backends.kubernetes.delivery import claim

        claim.put(leg.package, settings.claim_store)
    elif leg.way == "object" and settings.object_store is not None:
        from paijupyter.backends.delivery import objects

        facts, url = objects.put(leg.package, settings.object_store, staging)
    elif leg.way == "image" and settings.image_store is not None:
        from paijupyter.backends.kubernetes.delivery import images

        reference = f"@{images.push(leg.package, settings.image_store, staging)}"
    return _parcel(leg, settings, facts, url, reference)


def _parcel(leg: Leg, settings: KubeSettings, facts: Archive, url: str, reference: str) -> Parcel:
    index, sha256 = leg.index, leg.package.sha256
    if leg.way == "claim" and settings.claim_store is not None:
        return parcels.in_claim(index, sha256, settings.claim_store)
    if leg.way == "object":
        return parcels.from_url(index, sha256, facts, url)
    if leg.way == "image" and settings.image_store is not None:
        return parcels.in_image(index, sha256, settings.image_store.repository + reference)
    return parcels.in_configmaps(index, sha256, leg.data)
