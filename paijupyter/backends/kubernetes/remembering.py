"""The jobs that a namespace remembers, by their owner ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paijupyter.backends.kubernetes import labels, owner_record
from paijupyter.backends.kubernetes.ending import FINAL
from paijupyter.backends.kubernetes.paths import core
from paijupyter.backends.kubernetes.transport import KubeTransport


async def unfinished(transport: KubeTransport) -> list[Mapping[str, Any]]:
    """Return the records of jobs whose creation was completed and whose end nobody has noted.

    Raises:
        KubeError: they cannot be listed.
    """
    await transport.open()
    selector = labels.selector({labels.MANAGED_BY: labels.OURS, labels.KIND: labels.OWNER})
    path, query = (
        core("configmaps", namespace=transport.namespace),
        {"labelSelector": selector, "limit": "200"},
    )
    found: list[Mapping[str, Any]] = []
    while True:
        page = await transport.request("GET", path, query=query)
        for owner in page.get("items") or ():
            marks = owner["metadata"].get("annotations") or {}
            record = owner_record.read(owner)
            if record and labels.SUBMITTED in marks:
                found += _unfinished(record, marks)
        following = (page.get("metadata") or {}).get("continue")
        if not following:
            return found
        query = {**query, "continue": following}


def _unfinished(record: Mapping[str, Any], marks: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the records in an owner: its own, or those of a bundle."""
    if "jobs" in record:
        return [each for index, each in enumerate(record["jobs"]) if f"{FINAL}-{index}" not in marks]
    return [] if FINAL in marks else [record]
