"""A profile's parts against the cluster of the tests, for tests of planning and submitting."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_BACKENDS = Path(__file__).resolve().parents[1] / "backends"
if str(_BACKENDS) not in sys.path:
    sys.path.insert(0, str(_BACKENDS))
pytest.register_assert_rewrite("staging")

from staging import document, make_job, role, store_package  # noqa: E402 - only importable now
from staging import place as place  # noqa: E402

from paijupyter.backends.base import Job, Place, Profile  # noqa: E402
from paijupyter.backends.boot import boot_zipapp  # noqa: E402
from paijupyter.backends.kubernetes import capabilities, labels  # noqa: E402
from paijupyter.backends.kubernetes.plan import Planner  # noqa: E402
from paijupyter.backends.kubernetes.settings import settings_of  # noqa: E402
from paijupyter.backends.kubernetes.sieve import Sieve  # noqa: E402
from paijupyter.backends.kubernetes.submit import Submitter  # noqa: E402
from paijupyter.backends.kubernetes.transport import KubeTransport  # noqa: E402
from paijupyter.errors import Problem  # noqa: E402
from tests.cluster.lab import addons, lifecycle  # noqa: E402
from tests.cluster.reach import Cluster  # noqa: E402

__all__ = ["SMALL", "Lab", "on", "place", "role", "shared", "store_package", "there"]
SMALL = {"cpu": 0.05, "memoryMB": 96, "gpu": 0}


class Lab:
    """A profile's parts against the cluster, and what a test asks of it."""

    def __init__(self, cluster: Cluster, namespace: str, image: str, place: Place) -> None:
        self.cluster, self.namespace, self.image, self.place = cluster, namespace, image, place
        self._transports: list[KubeTransport] = []
        self.use()

    def use(self, kubeconfig: Path | None = None, **settings: Any) -> None:
        """Take another user or other settings."""
        values = {"kubeconfig": str(kubeconfig or self.cluster.kubeconfig), "namespace": self.namespace}
        self.settings = settings_of(Profile("lab", "kubernetes", {**values, "image": self.image, **settings}))
        self.transport = KubeTransport(kubeconfig=self.settings.kubeconfig, namespace=self.settings.namespace)
        self._transports.append(self.transport)
        self.asker = capabilities.Asker(self.transport)
        boot = lambda: boot_zipapp(self.place.data)  # noqa: E731
        self.submitter = Submitter(self.transport, self.settings, self.asker.cluster, boot, self.place.data)
        self.planner = Planner(self.transport, self.settings, self.asker.cluster, boot)

    async def close(self) -> None:
        for each in self._transports:
            await each.close()

    def job(
        self,
        command: str | dict[str, Any],
        files: dict[str, bytes | str] | None = None,
        **more: Any,
    ) -> Job:
        """Return a small job: of a command (one ``worker``) or of roles."""
        roles = {"worker": role(command)} if isinstance(command, str) else command
        for each in roles.values():
            if each["resourcePerInstance"] == role("")["resourcePerInstance"]:
                each["resourcePerInstance"] = dict(SMALL)
        return make_job(self.place, document(roles, **more), files)

    async def problems(self, job: Job) -> dict[str, Problem]:
        """Return what the plan says, by code."""
        return {each.code: each for each in (await self.planner.plan(job)).problems}

    async def run(self, job: Job, secrets: dict[str, str] | None = None) -> str:
        """Submit a job, wait for the end of its only pod, and return its log."""
        await self.submitter.create(job, secrets or {})
        pod = await self.pod(job, "Succeeded", "Failed")
        text = self.cluster.kubectl("logs", "-n", self.namespace, pod["metadata"]["name"])
        log = Sieve().feed(text.encode())[0].decode()  # without what the task reports of itself
        assert pod["status"]["phase"] == "Succeeded", log
        return log

    async def pod(self, job: Job, *phases: str) -> Any:
        """Return the only pod of a job once it is in one of the phases."""
        end = asyncio.get_running_loop().time() + 120
        while True:
            found = await asyncio.to_thread(self.of, "pods", job)
            if found and found[0]["status"].get("phase") in phases:
                return found[0]
            assert asyncio.get_running_loop().time() < end, [each["status"] for each in found]
            await asyncio.sleep(0.2)

    def of(self, kind: str, job: Job) -> list[Any]:
        """Return the objects of a job."""
        selector = labels.of_job_id(job.id)
        found: list[Any] = self.cluster.get(kind, "-n", self.namespace, "-l", selector)["items"]
        return found

    def everything(self) -> set[str]:
        """Return all objects of ours in the namespace, by kind and name."""
        kinds = "configmaps,secrets,services,jobs,pods"
        found = self.cluster.get(kinds, "-n", self.namespace, "-l", labels.ours())["items"]
        return {f"{each['kind']} {each['metadata']['name']}" for each in found}


@contextlib.asynccontextmanager
async def on(lab: Lab) -> AsyncIterator[Lab]:
    """Close everything at the end of a test."""
    try:
        yield lab
    finally:
        await lab.close()


@pytest.fixture
def there(cluster: Cluster, namespace: str, image: Callable[[str], str], place: Place) -> Lab:
    """Give a profile in a namespace of its own."""
    return Lab(cluster, namespace, image("python"), place)


@pytest.fixture
def shared(cluster: Cluster, namespace: str, lab: lifecycle.Facts) -> Iterator[Path]:
    """Give the folder on this host of a claim ``shared`` in the namespace."""
    folder = addons.SHARED / namespace
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    size = {"storage": "1Gi"}
    modes = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            **modes,
            "capacity": size,
            "hostPath": {"path": str(folder)},
            "claimRef": {"namespace": namespace, "name": "shared"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared"},
        "spec": {**modes, "volumeName": namespace, "resources": {"requests": size}},
    }
    cluster.apply(namespace, volume, claim)
    yield folder
    cluster.kubectl("delete", f"pv/{namespace}", "--wait=false")
