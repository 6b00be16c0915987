"""Submitting to a Kubernetes cluster beside ``kubectl apply`` of the same objects, where there is one."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.boot import boot_zipapp
from paijupyter.backends.kubernetes import capabilities, labels, paths, render
from paijupyter.backends.kubernetes.backend import KubernetesBackend
from paijupyter.backends.kubernetes.delivery import boot_file, ladder
from paijupyter.backends.kubernetes.gang import Gang
from paijupyter.backends.kubernetes.plan import Planner
from paijupyter.backends.kubernetes.render import Frame
from paijupyter.backends.kubernetes.settings import settings_of
from paijupyter.backends.kubernetes.submit import Submitter
from paijupyter.backends.kubernetes.transport import KubeTransport
from paijupyter.experiments.manifest import convert
from paijupyter.jobs.group_runner import AT_A_TIME
from paijupyter.jobs.profiles import user_file
from paijupyter.protocol import read
from tests.bench.places import document as document_of
from tests.bench.places import engine, home
from tests.bench.rows import Row, sized
from tests.cluster.reach import Cluster, reached

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "backends"))
from staging import document, make_job, role

RUNS = sized(7, 2)
BATCH, LOOP = sized(300, 60), sized(30, 5)  # jobs; of which a loop is measured
NOWHERE = {"paijupyter.io/bench": "never"}
FILES = {f"f{index}.py": "x = 1\n" * 200 for index in range(50)}


def run() -> list[Row]:
    """Measure; the pods wait for a node that never comes, so that only submitting costs."""
    cluster = reached()
    if isinstance(cluster, str):
        print(f"  no figures of Kubernetes: {cluster}", file=sys.stderr)
        return []
    namespace = f"pj-bench-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    try:
        with tempfile.TemporaryDirectory() as home:
            return asyncio.run(_Bench(cluster, namespace, Path(home)).rows())
    finally:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false", seconds=300)


class _Bench:
    def __init__(self, cluster: Cluster, namespace: str, home: Path) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._place = Place(home / "data", home / "run")
        values = {
            "kubeconfig": str(cluster.kubeconfig),
            "namespace": namespace,
            "nodeSelector": NOWHERE,
        }
        self._values = values
        self._settings = settings_of(Profile("bench", "kubernetes", values))
        self._transport = KubeTransport(kubeconfig=values["kubeconfig"], namespace=namespace)  # type: ignore[arg-type]
        asker = capabilities.Asker(self._transport)
        self._planner = Planner(self._transport, self._settings, asker.cluster, self._boot)
        self._submitter = Submitter(
            self._transport, self._settings, asker.cluster, self._boot, self._place.data
        )

    async def rows(self) -> list[Row]:
        try:
            await self._submit(self._job())  # the first one asks the cluster everything
            await self._apply(self._job())
            pairs = [(await self._submit(self._job()), await self._apply(self._job())) for _ in range(RUNS)]
            ours, peer = (statistics.median(each[i] for each in pairs) for i in (0, 1))
            swept = await asyncio.to_thread(self._sweep)
            loop, article = await self._loop(self._apply_one), await self._loop(self._delete_and_create)
            batch = await self._batch(self._backend(), self._jobs())
            written = await self._batch(self._backend(), [self._written(key) for key in range(BATCH)])
        finally:
            await self._submitter.close()
            await self._transport.close()
        many, loops = f"Kubernetes: {BATCH} jobs as a batch", "a loop of kubectl delete and create"
        return [
            Row(
                "Kubernetes: plan and submit to pod created",
                ours,
                peer,
                "kubectl apply",
                "ms",
                "1.3 × + 150 ms",
                ours <= 1.3 * peer + 150,
            ),
            Row(
                f"{many}, a Job each",
                batch,
                loop,
                "a loop of kubectl apply",
                "ms",
                "a tenth",
                batch * 10 <= loop,
            ),
            Row(
                f"Kubernetes: a sweep of {BATCH}, from submitting it to their Indexed Jobs",
                swept,
                article,
                loops,
                "ms",
                "a twentieth",
                swept * 20 <= article,
            ),
            Row(f"{many}, their own manifests", written, article, loops, "ms", "tell", True),
        ]

    async def _submit(self, job: Job) -> float:
        start = time.perf_counter()
        await self._planner.plan(job)
        await self._submitter.create(job, {})
        return await self._until_pod(job, start)

    async def _apply(self, job: Job) -> float:
        text = self._manifests(job)
        start = time.perf_counter()
        await asyncio.to_thread(self._kubectl, text)
        return await self._until_pod(job, start)

    def _backend(self) -> KubernetesBackend:
        settings = {**self._values, "indexedFrom": 0}
        return KubernetesBackend(Profile("bench", "kubernetes", settings), self._place)

    async def _batch(self, backend: KubernetesBackend, jobs: Sequence[Job]) -> float:
        """Submit as a group does: planned once, then created in calls of some jobs each."""
        try:
            await backend.submit(self._job(), {})  # the first one asks the cluster everything
            start = time.perf_counter()
            await backend.plan(jobs[0])
            for first in range(0, len(jobs), AT_A_TIME):
                told = await backend.submit_many([(job, {}) for job in jobs[first : first + AT_A_TIME]])
                assert not any(told), told
            return (time.perf_counter() - start) * 1e3
        finally:
            await backend.close()

    def _sweep(self) -> float:
        """Give a sweep to an engine that runs; until each experiment is an index of a Job on the cluster."""
        rows = json.dumps({"rows": [{"n": n} for n in range(BATCH)]})
        template = document_of("echo <% $parameters.n %>", cpu=0)
        request = {"template": template, "experiments": rows, "name": "swept", "profile": "bench"}
        with home():
            file = user_file()
            file.parent.mkdir(parents=True)
            profile = {"kind": "kubernetes", **self._values}
            file.write_text(json.dumps({"profiles": {"bench": profile}}))
            with engine() as client:
                client.plan({"document": template, "profile": "bench"})
                start = time.perf_counter()
                client.groups.submit(request)
                while self._indexes("swept-") < BATCH:
                    time.sleep(0.02)
                took = (time.perf_counter() - start) * 1e3
                client.groups.stop("swept")
        return took

    def _indexes(self, prefix: str) -> int:
        """Return how many pods the Jobs of a beginning of names are to have."""
        form = '{range .items[*]}{.metadata.name} {.spec.completions}{"\\n"}{end}'
        told = self._cluster.kubectl("get", "jobs", "-n", self._namespace, "-o", f"jsonpath={form}")
        return sum(int(each.split()[1]) for each in told.splitlines() if each.startswith(prefix))

    async def _loop(self, one: Callable[[int], float]) -> float:
        """Measure some and count for all: each takes the same time."""
        took = 0.0
        for key in range(LOOP):
            took += await asyncio.to_thread(one, key)
        return took * BATCH / LOOP

    def _apply_one(self, key: int) -> float:
        text = self._manifests(self._job())
        start = time.perf_counter()
        self._kubectl(text)
        return (time.perf_counter() - start) * 1e3

    def _delete_and_create(self, key: int) -> float:
        text = json.dumps(_manifest(f"loop-{key}"))
        start = time.perf_counter()
        options = ("-n", self._namespace, "--ignore-not-found")
        self._cluster.kubectl("delete", "job", f"loop-{key}", *options)
        self._cluster.kubectl("create", "-n", self._namespace, "-f", "-", given=text)
        return (time.perf_counter() - start) * 1e3

    def _jobs(self) -> list[Job]:
        return [replace(self._job(), group="bench", experiment=str(key)) for key in range(BATCH)]

    def _written(self, key: int) -> Job:
        return make_job(self._place, read(convert(json.dumps(_manifest(f"written-{key}")))[0]).data)

    async def _until_pod(self, job: Job, start: float) -> float:
        path = paths.core("pods", namespace=self._namespace)
        query = {"labelSelector": labels.of_job_id(job.id), "limit": "1"}
        while not (await self._transport.request("GET", path, query=query))["items"]:
            pass
        return (time.perf_counter() - start) * 1e3

    def _job(self) -> Job:
        small = {"cpu": 0.01, "memoryMB": 16, "gpu": 0}
        return make_job(self._place, document({"worker": role("true", resourcePerInstance=small)}), FILES)

    def _manifests(self, job: Job) -> str:
        archive = boot_file.packed(self._boot())
        parcels = ladder.preview(ladder.choose(job, self._settings), self._settings)
        cluster = capabilities.Cluster(version=(1, 34))
        frame = Frame(job, self._settings, cluster, Gang(), render.boot_name(archive), parcels)
        objects: Sequence[Any] = [
            render.owner(frame, {"schema": 1, "document": job.document}),
            render.boot_object(frame.boot, archive),
            *(each for parcel in parcels for each in parcel.shared),
            *render.own(frame, {}, "0" * 64, {}),
            *render.attempt(frame, 0, {"schema": 1}),
        ]
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})

    def _kubectl(self, text: str) -> None:
        # By the server: kubectl's own way writes what is large into an annotation, and then fails.
        options = ("--server-side", "--force-conflicts", "-f", "-")
        self._cluster.kubectl("apply", "-n", self._namespace, *options, given=text)

    def _boot(self) -> Path:
        return boot_zipapp(self._place.data)


def _manifest(name: str) -> dict[str, Any]:
    """Return a Job as the article's template makes them; no node is there for it."""
    container = {"name": "main", "image": "python", "command": ["python", "-u", "train.py"]}
    pod = {"restartPolicy": "Never", "nodeSelector": NOWHERE, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"jobgroup": "group-small"}},
        "spec": {"backoffLimit": 1, "template": {"spec": pod}},
    }
