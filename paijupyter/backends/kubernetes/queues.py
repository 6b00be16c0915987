"""Why Kueue does not admit something yet: the conditions of its Workload."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.paths import api
from paijupyter.backends.kubernetes.transport import KubeTransport

_KUEUE = "kueue.x-k8s.io/v1beta2"
_OLDER = "kueue.x-k8s.io/v1beta1"
_UNIT = "kueue.x-k8s.io/job-uid"


async def why_waiting(transport: KubeTransport, units: Iterable[str]) -> dict[str, str]:
    """Return words on each of these Jobs or JobSets that waits in a queue, by its uid.

    What may not be read, or is there no Kueue, is left out.
    """
    found = await asyncio.gather(*(_workload(transport, unit) for unit in units))
    return {unit: words_of(workload) for unit, workload in found if workload is not None}


def words_of(workload: Mapping[str, Any]) -> str:
    """Say why a Workload waits, from its conditions."""
    queue = str((workload.get("spec") or {}).get("queueName") or "")
    conditions = {each["type"]: each for each in (workload.get("status") or {}).get("conditions") or ()}
    where = f"it waits in queue `{queue}`" if queue else "it waits in its queue"
    evicted, reserved = conditions.get("Evicted"), conditions.get("QuotaReserved")
    before = ""
    if evicted is not None and evicted.get("status") == "True":
        before = f"its place was taken ({_said(evicted) or evicted.get('reason')}); "
    if reserved is None:
        return before + where
    if reserved.get("status") == "True":
        return f"queue `{queue}` has admitted it, and it waits for its checks"
    said = _said(reserved)
    return f"{before}{where}: {said}" if said else before + where


def _said(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or "").strip().rstrip(".")


async def _workload(transport: KubeTransport, unit: str) -> tuple[str, Mapping[str, Any] | None]:
    for version in (_KUEUE, _OLDER):
        path = api(version, "workloads", namespace=transport.namespace)
        try:
            page = await transport.request(
                "GET", path, query={"labelSelector": f"{_UNIT}={unit}"}, timeout=15
            )
        except KubeError as error:
            if error.status == 404:
                continue
            return unit, None
        return unit, next(iter(page.get("items") or ()), None)
    return unit, None
