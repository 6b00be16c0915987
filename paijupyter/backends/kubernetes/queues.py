"""Why Kueue does not admit something yet, and at which place of its queue it waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.paths import api
from paijupyter.backends.kubernetes.transport import KubeTransport

_KUEUE = "kueue.x-k8s.io/v1beta2"
_OLDER = "kueue.x-k8s.io/v1beta1"
_VISIBILITY = ("visibility.kueue.x-k8s.io/v1beta2", "visibility.kueue.x-k8s.io/v1beta1")
_AHEAD = "1000"  # places that are asked for
_UNIT = "kueue.x-k8s.io/job-uid"


@dataclass(frozen=True, slots=True)
class Standing:
    """At which place something waits, from 0 on: in its own queue, and among all that want the same."""

    local: int
    cluster: int


async def why_waiting(transport: KubeTransport, units: Iterable[str]) -> dict[str, str]:
    """Return words on each of these Jobs or JobSets that waits in a queue, by its uid.

    What may not be read, or is there no Kueue, is left out.
    """
    found = await asyncio.gather(*(_workload(transport, unit) for unit in units))
    workloads = {unit: workload for unit, workload in found if workload is not None}
    queues = {_queue(each) for each in workloads.values() if _queue(each)}
    places: dict[str, Standing] = {}
    for each in await asyncio.gather(*(_standings(transport, queue) for queue in queues)):
        places.update(each)
    return {
        unit: words_of(each, places.get(str((each.get("metadata") or {}).get("name"))))
        for unit, each in workloads.items()
    }


def words_of(workload: Mapping[str, Any], standing: Standing | None = None) -> str:
    """Say why a Workload waits, from its conditions and its place, if that is known."""
    queue = _queue(workload)
    conditions = {each["type"]: each for each in (workload.get("status") or {}).get("conditions") or ()}
    where = f"it waits in queue `{queue}`" if queue else "it waits in its queue"
    where += _place(standing)
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


def _queue(workload: Mapping[str, Any]) -> str:
    return str((workload.get("spec") or {}).get("queueName") or "")


def _place(standing: Standing | None) -> str:
    if standing is None:
        return ""
    if standing.cluster == standing.local:
        return f" at place {standing.local + 1}"
    return f" at place {standing.local + 1} ({standing.cluster + 1} with other queues)"


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


async def _standings(transport: KubeTransport, queue: str) -> dict[str, Standing]:
    """Return where the Workloads of a queue stand, by name; nothing where that cannot be asked."""
    for version in _VISIBILITY:
        path = api(version, "localqueues", queue, "pendingworkloads", namespace=transport.namespace)
        try:
            page = await transport.request("GET", path, query={"limit": _AHEAD}, timeout=15)
        except KubeError as error:
            if error.status == 404:
                continue
            return {}
        return {
            str((each.get("metadata") or {}).get("name")): Standing(
                int(each.get("positionInLocalQueue") or 0), int(each.get("positionInClusterQueue") or 0)
            )
            for each in page.get("items") or ()
        }
    return {}
