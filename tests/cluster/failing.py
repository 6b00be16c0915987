"""A namespace in which jobs fail, and what a test asks of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from paijupyter.backends.base import Backend, Job, Place, Profile, load_backend
from tests.cluster.lab import lifecycle
from tests.cluster.profile import SMALL, role
from tests.cluster.reach import Cluster

from staging import Watch, document, make_job, watching  # isort: skip # importable after tests.cluster.profile

PATIENCE = 120.0  # seconds that a change may take on a loaded machine
STUCK = "5s"


@dataclass
class Bench:
    """A namespace of the cluster, and jobs in it by way of the backend."""

    cluster: Cluster
    namespace: str
    image: str
    place: Place
    facts: lifecycle.Facts
    backend: Backend | None = None

    def job(self, roles: str | Mapping[str, Any], image: str = "", auth: Any = None, **extras: Any) -> Job:
        """Return a job: of a command, or of roles; ``extras`` by key of the document's."""
        named = {"name": "image", "type": "dockerimage", "uri": image or self.image}
        if auth:
            named["auth"] = {"registryuri": self.facts.locked_registry, **auth}
        of = {"worker": role(roles)} if isinstance(roles, str) else roles
        small = {
            name: {**each, "resourcePerInstance": {**SMALL, **each.get("asks", {})}}
            for name, each in of.items()
        }
        for each in small.values():
            each.pop("asks", None)
        return make_job(self.place, document(small, prerequisites=[named], extras=extras))

    @contextlib.asynccontextmanager
    async def submitted(self, job: Job, secrets: Any = None, **settings: Any) -> AsyncIterator[Watch]:
        """Submit a job to a profile with these settings, and watch it."""
        values = {
            "kubeconfig": str(self.cluster.kubeconfig),
            "namespace": self.namespace,
            "stuckAfter": STUCK,
        }
        profile = Profile("lab", "kubernetes", {**values, **settings})
        self.backend = backend = load_backend(profile, self.place)
        try:
            async with watching(backend) as watch:
                await backend.submit(job, secrets or {})
                yield watch
        finally:
            await backend.close()


@pytest.fixture
def bench(
    cluster: Cluster, namespace: str, image: Callable[[str], str], place: Place, lab: lifecycle.Facts
) -> Bench:
    """Give a namespace to fail in."""
    return Bench(cluster, namespace, image("python"), place, lab)


def pod_name(bench: Bench) -> str:
    """Return the name of the only pod of the namespace."""
    [pod] = bench.cluster.get("pods", "-n", bench.namespace)["items"]
    return str(pod["metadata"]["name"])
