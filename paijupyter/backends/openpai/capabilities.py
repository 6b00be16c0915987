"""What a cluster has, and what of it is free: asked now and then, said in words where it cannot be asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paijupyter.backends.base import Capabilities
from paijupyter.backends.openpai.answers import mapping, number, text
from paijupyter.backends.openpai.errors import PaiError
from paijupyter.backends.openpai.server import Server

FEATURES = frozenset({"gpu", "image", "queue"})
_FRESH = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Sku:
    """One kind of cell of a virtual cluster: what of each resource it has, memory in MB."""

    cpu: float
    memory_mb: float
    gpu: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is known of a cluster for its user.

    Attributes:
        version: of the server.
        release: its major and minor number.
        user: our name there.
        virtual_clusters: those that the user may use, each with total and used ``cpu memoryMB gpu``.
        storages: names of those granted.
        skus: kinds of cells by name; empty without HiveD.
        unreachable: why it cannot be asked, or "".
    """

    version: str = ""
    release: tuple[int, int] = (1, 8)
    user: str = ""
    virtual_clusters: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]] = field(
        default_factory=dict
    )
    storages: tuple[str, ...] = ()
    skus: Mapping[str, Sku] = field(default_factory=dict)
    unreachable: str = ""


class Asker:
    """Asks for what a plan needs to know, and keeps it for a while."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = asyncio.Lock()
        self._found = Cluster(unreachable="it was not asked yet")
        self._at = -_FRESH

    async def cluster(self) -> Cluster:
        """Return what is known; never raises."""
        async with self._lock:
            if self._found.unreachable or time.monotonic() - self._at > _FRESH:
                try:
                    self._found = await self._ask()
                except PaiError as error:
                    self._found = Cluster(unreachable=str(error.for_people("answer")))
                self._at = time.monotonic()
            return self._found

    async def _ask(self) -> Cluster:
        client = self._server.client
        info = await self._server.info()
        user = await self._server.user()
        own = mapping(await client.call("GET", f"/users/{user}"))
        granted = own.get("virtualCluster")
        clusters = mapping(await client.call("GET", "/virtual-clusters"))
        names = [str(each) for each in granted] if isinstance(granted, list) else list(clusters)
        return Cluster(
            version=text(info.get("version")),
            release=await self._server.version(),
            user=user,
            virtual_clusters={name: _amounts(mapping(clusters[name])) for name in names if name in clusters},
            storages=await self._storages(),
            skus=await self._skus(),
        )

    async def _storages(self) -> tuple[str, ...]:
        try:
            found = mapping(await self._server.client.call("GET", "/storages")).get("storages")
        except PaiError as error:
            if error.status not in (404, 500):
                raise
            return ()
        return tuple(text(mapping(each).get("name")) for each in (found if isinstance(found, list) else ()))

    async def _skus(self) -> Mapping[str, Sku]:
        try:
            found = mapping(await self._server.client.call("GET", "/cluster/sku-types"))
        except PaiError as error:
            if error.status not in (404, 500):
                raise
            return {}
        return {
            str(name): Sku(_number(each, "cpu"), _number(each, "memory"), _number(each, "gpu"))
            for name, each in found.items()
            if isinstance(each, Mapping)
        }


def capabilities_of(cluster: Cluster, kind: str) -> Capabilities:
    """Return what screens show of a cluster."""
    totals, used = (
        _sum(pair[0] for pair in cluster.virtual_clusters.values()),
        _sum(pair[1] for pair in cluster.virtual_clusters.values()),
    )
    return Capabilities(
        kind=kind,
        version=cluster.version,
        features=FEATURES,
        capacity=totals,
        free={key: max(value - used.get(key, 0.0), 0.0) for key, value in totals.items()},
        queues=tuple(cluster.virtual_clusters),
        storages=cluster.storages,
        unreachable=cluster.unreachable,
    )


def _sum(amounts: Any) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in amounts:
        for key, value in each.items():
            total[key] = total.get(key, 0.0) + value
    return total


def _amounts(data: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Return total and used resources of a virtual cluster; keys differ between versions."""
    return _resources(mapping(data.get("resourcesTotal"))), _resources(mapping(data.get("resourcesUsed")))


def _resources(data: Mapping[str, Any]) -> dict[str, float]:
    return {
        "cpu": number(data.get("cpu")) or number(data.get("vCores")) or 0.0,
        "memoryMB": number(data.get("memory")) or 0.0,
        "gpu": number(data.get("gpu")) or number(data.get("GPUs")) or 0.0,
    }


def _number(data: Mapping[str, Any], key: str) -> float:
    found = data.get(key)
    if isinstance(found, str):
        try:
            return float(found.removesuffix("Mi").removesuffix("Gi"))
        except ValueError:
            return 0.0
    return number(found) or 0.0
