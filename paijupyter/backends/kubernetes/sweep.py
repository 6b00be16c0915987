"""Removing what nobody needs: packages and boot files that no job mounts, halves of dead submissions."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from paijupyter.backends.kubernetes import labels, paths
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.transport import METADATA_ONLY, KubeTransport

_log = logging.getLogger(__name__)
UNUSED_SECONDS = 3600.0
"""For so long what jobs share is kept after it was last asked for: a submission may be about to mount it."""
HALF_SECONDS = 900.0
"""After so long a job whose creation never ended is taken for dead."""
_PAGE = "500"


async def sweep(transport: KubeTransport) -> list[str]:
    """Remove what is not needed in the namespace, of all users of ours; return the names.

    Safe beside submissions of any engine: each thing is only deleted as it was when it was looked at, and a
    submission changes what it uses.

    Raises:
        KubeError: the namespace cannot be listed.
    """
    await transport.open()
    owners, shared = [], []
    for thing in await _all(transport):
        kind = thing["metadata"]["labels"].get(labels.KIND)
        if kind == labels.OWNER:
            owners.append(thing)
        elif kind in (labels.BOOT, labels.PACKAGE):
            shared.append(thing)
    gone = []
    for thing in unneeded(owners, shared, time.time()):
        if await _remove(transport, thing):
            gone.append(str(thing["metadata"]["name"]))
    return gone


def unneeded(
    owners: Iterable[Mapping[str, Any]], shared: Iterable[Mapping[str, Any]], now: float
) -> list[Mapping[str, Any]]:
    """Return the owners of dead submissions, and what no owner needs. Pure.

    Args:
        owners: the owner ConfigMaps of the namespace, without their data.
        shared: the boot files and parts of packages.
        now: seconds since the epoch.
    """
    dead = []
    needed: set[str] = set()
    for owner in owners:
        notes = owner["metadata"].get("annotations") or {}
        if labels.SUBMITTED not in notes and now - _created(owner) > HALF_SECONDS:
            dead.append(owner)
        else:
            needed.update(str(notes.get(labels.NEEDS) or "").split())
    unused = [
        each
        for each in shared
        if each["metadata"]["name"] not in needed and now - _used(each) > UNUSED_SECONDS
    ]
    return dead + unused


async def _all(transport: KubeTransport) -> list[Mapping[str, Any]]:
    """List our ConfigMaps, only what describes them: their contents may be megabytes."""
    path = paths.core("configmaps", namespace=transport.namespace)
    found: list[Mapping[str, Any]] = []
    query = {"labelSelector": f"{labels.ours()},{labels.KIND}", "limit": _PAGE}
    while True:
        answer = await transport.request("GET", path, query=query, accept=METADATA_ONLY)
        found += answer.get("items") or ()
        proceed = (answer.get("metadata") or {}).get("continue")
        if not proceed:
            return found
        query = {**query, "continue": proceed}


async def _remove(transport: KubeTransport, thing: Mapping[str, Any]) -> bool:
    metadata = thing["metadata"]
    path = paths.core("configmaps", metadata["name"], namespace=transport.namespace)
    body = {
        "propagationPolicy": "Background",
        "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
    }
    try:
        await transport.request("DELETE", path, body=body)
    except KubeError as error:
        if error.status not in (404, 409):  # gone, or used again meanwhile
            _log.warning("%s cannot be swept: %s", metadata["name"], error)
        return False
    return True


def _created(thing: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(thing["metadata"]["creationTimestamp"].replace("Z", "+00:00")).timestamp()


def _used(thing: Mapping[str, Any]) -> float:
    noted = (thing["metadata"].get("annotations") or {}).get(labels.USED_AT) or ""
    return max(_created(thing), float(noted) if noted.isdigit() else 0.0)
