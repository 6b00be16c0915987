"""A package on its way: what pods mount, what tasks are told, what has to be created for it. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paijupyter.backends.delivery.archive import Archive, facts_of
from paijupyter.backends.kubernetes import labels, layout
from paijupyter.backends.kubernetes.settings import ClaimStore
from paijupyter.backends.kubernetes.volumes import Mounted, mounted

PART_BYTES = 1_000_000
"""Of an archive in one ConfigMap, which may hold 1 MiB."""
LARGEST_IN_CONFIGMAPS = 6 * PART_BYTES
URLS = f"{layout.ROOT}/urls"
"""Where a pod finds the addresses of packages that it fetches."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """One package of a job.

    Attributes:
        sha256: of its manifest.
        way: how it travels, one of ``settings.WAYS``.
        told: its entry of ``parcels`` in ``spec.json``.
        mounted: the volume with it.
        shared: objects that hold it, shared by the jobs of the namespace.
        url: the address from which the pod fetches it; "" for none. It opens the package, so it is a secret.
    """

    sha256: str
    way: str
    told: Mapping[str, Any]
    mounted: Mounted | None
    shared: tuple[Mapping[str, Any], ...] = ()
    url: str = ""


def in_configmaps(index: int, sha256: str, data: bytes) -> Parcel:
    """Return the parcel of a package whose archive travels in ConfigMaps.

    Args:
        index: of the parcel in the job.
        sha256: of the package's manifest.
        data: its archive.
    """
    facts = facts_of(data)
    pieces = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    objects = [_part(facts, number, piece) for number, piece in enumerate(pieces)]
    sources = [{"configMap": {"name": each["metadata"]["name"]}} for each in objects]
    folder = f"{layout.PARCELS}/{index}"
    return Parcel(
        sha256,
        "configmap",
        {
            "sha256": sha256,
            "way": "parts",
            "folder": folder,
            "archive": {"sha256": facts.sha256, "bytes": facts.size, "parts": len(pieces)},
        },
        mounted(f"parcel-{index}", {"projected": {"sources": sources}}, folder),
        tuple(objects),
    )


def in_claim(index: int, sha256: str, store: ClaimStore) -> Parcel:
    """Return the parcel of a package that lies unpacked on a claim."""
    folder = f"{layout.PARCELS}/{index}"
    source = {"persistentVolumeClaim": {"claimName": store.claim, "readOnly": True}}
    volume = mounted(f"parcel-{index}", source, folder, subPath=f"{store.folder}/{sha256}")
    return Parcel(sha256, "claim", {"sha256": sha256, "way": "folder", "folder": folder}, volume)


def in_image(index: int, sha256: str, reference: str) -> Parcel:
    """Return the parcel of a package that is an image, which the pod mounts as a volume."""
    folder = f"{layout.PARCELS}/{index}"
    source = {"image": {"reference": reference, "pullPolicy": "IfNotPresent"}}
    volume = mounted(f"parcel-{index}", source, folder)
    return Parcel(sha256, "image", {"sha256": sha256, "way": "folder", "folder": folder}, volume)


def from_url(index: int, sha256: str, facts: Archive, url: str) -> Parcel:
    """Return the parcel of a package that the pod fetches from an object store."""
    told = {
        "sha256": sha256,
        "way": "url",
        "urlFile": f"{URLS}/url-{index}",
        "archive": {"sha256": facts.sha256, "bytes": facts.size},
    }
    return Parcel(sha256, "object", told, None, url=url)


def config_map_name(facts: Archive, number: int) -> str:
    """Return the name of the ConfigMap with one part of an archive."""
    return f"paijupyter-package-{facts.sha256[:20]}-{number}"


def _part(facts: Archive, number: int, piece: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": config_map_name(facts, number),
            "labels": labels.shared(labels.PACKAGE),
        },
        "immutable": True,
        "binaryData": {f"part-{number:04d}": base64.b64encode(piece).decode("ascii")},
    }
