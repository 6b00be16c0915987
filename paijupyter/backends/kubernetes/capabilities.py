"""Asking a cluster what it is and what we may do there. What may not be seen is left empty, and no error."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from paijupyter.backends.base import Capabilities
from paijupyter.backends.kubernetes import amounts, paths
from paijupyter.backends.kubernetes.cluster import Cluster
from paijupyter.backends.kubernetes.errors import KubeError
from paijupyter.backends.kubernetes.settings import KubeSettings
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.errors import PaiJupyterError

_FRESH = 300.0  # seconds for which what was found is believed
_FRESH_FAILURE = 5.0
_TIMEOUT = 15.0
_ENFORCED = "pod-security.kubernetes.io/enforce"


class Asker:
    """Knows a cluster, and asks again when what it knows is old."""

    def __init__(self, transport: KubeTransport) -> None:
        self._transport = transport
        self._found: Cluster | None = None
        self._at = 0.0
        self._turn = asyncio.Lock()

    async def cluster(self) -> Cluster:
        """Return what is known; never raises for what cannot be reached."""
        async with self._turn:
            fresh = _FRESH_FAILURE if self._found and self._found.unreachable else _FRESH
            if self._found is None or time.monotonic() - self._at > fresh:
                self._found = await ask(self._transport)
                self._at = time.monotonic()
            return self._found

    def forget(self) -> None:
        """Ask anew next time."""
        self._found = None


async def ask(transport: KubeTransport) -> Cluster:
    """Ask a cluster everything at once."""
    try:
        await transport.open()
        version = await transport.request("GET", "/version", timeout=_TIMEOUT)
        groups = await transport.request("GET", "/apis", timeout=_TIMEOUT)
    except KubeError as error:
        return Cluster(unreachable=str(error.for_people("answer")))
    except PaiJupyterError as error:
        return Cluster(unreachable=str(error))
    namespace = transport.namespace
    preferred = {
        each["name"]: each["preferredVersion"]["groupVersion"] for each in groups.get("groups") or ()
    }
    kueue = preferred.get("kueue.x-k8s.io", "")
    (rules, space), (queues, classes, quotas, limits), (claims, nodes) = await asyncio.gather(
        asyncio.gather(_rules(transport), _get(transport, paths.core("namespaces", namespace))),
        asyncio.gather(
            _items(transport, paths.api(kueue, "localqueues", namespace=namespace) if kueue else ""),
            _items(transport, paths.api("storage.k8s.io/v1", "storageclasses")),
            _items(transport, paths.core("resourcequotas", namespace=namespace)),
            _items(transport, paths.core("limitranges", namespace=namespace)),
        ),
        asyncio.gather(
            _listed(transport, paths.core("persistentvolumeclaims", namespace=namespace)),
            _listed(transport, paths.core("nodes")),
        ),
    )
    usable = [each for each in nodes or () if not _cordoned(each)]
    return Cluster(
        version=(_digits(version.get("major")), _digits(version.get("minor"))),
        text=str(version.get("gitVersion") or ""),
        namespace=namespace,
        groups=frozenset(preferred),
        queues={_name(each): str((each.get("spec") or {}).get("clusterQueue") or "") for each in queues},
        storage_classes=tuple(_name(each) for each in classes),
        claims=None if claims is None else {_name(each): _phase(each) for each in claims},
        rules=tuple(rules.get("resourceRules") or ()),
        rules_incomplete=bool(rules.get("incomplete", True)),
        pod_security=str(((space or {}).get("metadata", {}).get("labels") or {}).get(_ENFORCED) or ""),
        quotas=tuple(quotas),
        limits=tuple(limits),
        nodes=None if nodes is None else tuple(map(_gives, usable)),
        silent=bool(usable) and not any(map(_answers, usable)),
    )


def capabilities_of(cluster: Cluster, settings: KubeSettings, features: frozenset[str]) -> Capabilities:
    """Return what screens show of a profile.

    Args:
        cluster: from :func:`ask`.
        settings: of the profile.
        features: of the backend itself; those of the cluster are added.
    """
    capacity, used = room(cluster, settings)
    more = {"image"}
    if cluster.queues:
        more.add("queue")
    if capacity.get("gpu"):
        more.add("gpu")
    return Capabilities(
        kind="kubernetes",
        version=cluster.text,
        features=features | more,
        capacity=capacity,
        free={key: max(capacity[key] - amount, 0.0) for key, amount in used.items()},
        queues=tuple(cluster.queues),
        storages=tuple(sorted(settings.storages)),
        unreachable=cluster.unreachable,
    )


def room(cluster: Cluster, settings: KubeSettings) -> tuple[dict[str, float], dict[str, float]]:
    """Return what jobs may have in all, and what of a quota is used: ``cpu``, ``memoryMB``, ``gpu``.

    A quota counts before what the nodes have.
    """
    ours = {
        "cpu": ("cpu", 1.0),
        "memoryMB": ("memory", amounts.MEBIBYTE),
        "gpu": (settings.gpu_resource, 1.0),
    }
    there = amounts.total(cluster.nodes or ())
    capacity: dict[str, float] = {}
    used: dict[str, float] = {}
    for key, (resource, unit) in ours.items():
        if resource in there:
            capacity[key] = there[resource] / unit
        for quota in cluster.quotas:
            status = quota.get("status") or {}
            hard, taken = status.get("hard") or {}, status.get("used") or {}
            for name in (f"requests.{resource}", f"limits.{resource}", resource):
                if name in hard:
                    most = amounts.number(hard[name]) / unit
                    capacity[key] = min(capacity.get(key, most), most)
                    used[key] = max(used.get(key, 0.0), amounts.number(taken.get(name)) / unit)
    return capacity, used


async def _rules(transport: KubeTransport) -> Mapping[str, Any]:
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": transport.namespace},
    }
    path = paths.api("authorization.k8s.io/v1", "selfsubjectrulesreviews")
    try:
        found = await transport.request("POST", path, body=body, timeout=_TIMEOUT)
    except KubeError:
        return {}
    status: Mapping[str, Any] = found.get("status") or {}
    return status


async def _get(transport: KubeTransport, path: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = await transport.request("GET", path, timeout=_TIMEOUT)
    except KubeError:
        return None
    return found


async def _listed(transport: KubeTransport, path: str) -> list[Mapping[str, Any]] | None:
    found = await _get(transport, path) if path else None
    return None if found is None else list(found.get("items") or ())


async def _items(transport: KubeTransport, path: str) -> list[Mapping[str, Any]]:
    return await _listed(transport, path) or []


def _name(thing: Mapping[str, Any]) -> str:
    return str(thing["metadata"]["name"])


def _phase(claim: Mapping[str, Any]) -> str:
    return str((claim.get("status") or {}).get("phase") or "")


def _gives(node: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = (node.get("status") or {}).get("allocatable") or {}
    return found


def _cordoned(node: Mapping[str, Any]) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _answers(node: Mapping[str, Any]) -> bool:
    """Say whether a node is ready; of one whose kubelet is silent the cluster says that it does not know."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _digits(text: object) -> int:
    digits = "".join(each for each in str(text) if each.isdigit())
    return int(digits) if digits else 0
