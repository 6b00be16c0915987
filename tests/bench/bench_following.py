"""Following jobs on a Kubernetes cluster: long logs beside ``kubectl logs -f``, and many tasks at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from paijupyter.backends.base import FINAL, Job, Place, Profile
from paijupyter.backends.kubernetes import labels
from paijupyter.backends.kubernetes.backend import KubernetesBackend
from tests.bench.rows import Row
from tests.cluster.lab.build import program
from tests.cluster.reach import Cluster, reached

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "backends"))
from staging import document, make_job, role

LINES, TASKS = 500_000, 800
SMALL = {"cpu": 0.1, "memoryMB": 128, "gpu": 0}
PRINT = f"sleep 2; seq 1 {LINES}; sleep 20"
LAST = str(LINES).encode()
KWOK = {
    "nodeSelector": {"type": "kwok"},
    "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}],
}


def run() -> list[Row]:
    """Measure what the cluster has: nodes of KWOK for many tasks, its own for logs."""
    cluster = reached()
    if isinstance(cluster, str):
        print(f"  no figures of Kubernetes: {cluster}", file=sys.stderr)
        return []
    namespace = f"pj-bench-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    try:
        with tempfile.TemporaryDirectory() as home:
            return asyncio.run(_rows(cluster, namespace, Path(home)))
    finally:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false", seconds=300)


async def _rows(cluster: Cluster, namespace: str, home: Path) -> list[Row]:
    rows = []
    async with _backend(cluster, namespace, home / "log", {}) as (backend, place):
        await _follow(backend, _job(cluster, place, f"echo {LINES}"), 1)  # what is loaded once is no growth
        memory = _memory()
        ours = await _follow(backend, _job(cluster, place, PRINT))
        grown = _memory() - memory
        peer = await _kubectl_follow(cluster, namespace, backend, _job(cluster, place, PRINT))
        what = f"Kubernetes: following {LINES:,} lines"
        rows.append(Row(what, ours, peer, "kubectl logs -f", "ms", "1.0 × its time", ours <= 1.0 * peer))
        rows.append(Row(f"{what}: memory", grown, float("nan"), "nothing", "MB", "flat", grown < 40))
    nodes = json.loads(cluster.kubectl("get", "nodes", "-l", "type=kwok", "-o", "json"))["items"]
    if nodes:
        async with _backend(cluster, namespace, home / "many", KWOK) as (backend, place):
            rows += await _many(cluster, backend, place)
    else:
        print(f"  no figures of {TASKS} tasks: the cluster has no nodes of KWOK", file=sys.stderr)
    return rows


@contextlib.asynccontextmanager
async def _backend(
    cluster: Cluster, namespace: str, home: Path, more: dict[str, Any]
) -> AsyncIterator[tuple[KubernetesBackend, Place]]:
    place = Place(home / "data", home / "run")
    for folder in (place.data, place.runtime):
        folder.mkdir(parents=True)
    settings = {"kubeconfig": str(cluster.kubeconfig), "namespace": namespace, **more}
    backend = KubernetesBackend(Profile("bench", "kubernetes", settings), place)
    watch = asyncio.create_task(_drain(backend))
    try:
        yield backend, place
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        await backend.close()


async def _drain(backend: KubernetesBackend) -> None:
    async for _ in backend.watch([]):
        pass


async def _follow(backend: KubernetesBackend, job: Job, lines: int = LINES) -> float:
    """Return the milliseconds from the first line to the last."""
    await backend.submit(job, {})
    first, tail = 0.0, b""
    async for piece in backend.logs(job, "worker", 0, 0, 0):
        first = first or time.perf_counter()
        tail = (tail + piece)[-100:]
        if LAST in tail:
            break
    took = (time.perf_counter() - first) * 1e3
    await backend.stop(job)
    whole = (job.folder / "tasks" / "worker-0" / "0" / "log").read_bytes()
    if whole.count(b"\n") < lines:
        print(f"  ours has only {whole.count(10):,} lines", file=sys.stderr)
    return took


async def _kubectl_follow(cluster: Cluster, namespace: str, backend: KubernetesBackend, job: Job) -> float:
    await backend.submit(job, {})
    selector = labels.of_job_id(job.id)
    while '"running"' not in cluster.kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "json"):
        await asyncio.sleep(0.2)
    took = await asyncio.to_thread(_read_to_last, cluster, namespace, selector)
    await backend.stop(job)
    return took


def _read_to_last(cluster: Cluster, namespace: str, selector: str) -> float:
    tool = str(program("kubernetes", "kubectl")) if cluster.lab else "kubectl"
    command = [tool, f"--kubeconfig={cluster.kubeconfig}", "logs", "-f", "-n", namespace, "-l", selector]
    with subprocess.Popen([*command, "--tail=-1"], stdout=subprocess.PIPE) as reader:
        assert reader.stdout
        first, tail, count = 0.0, b"", 0
        while piece := reader.stdout.read1(1 << 16):  # type: ignore[attr-defined]
            first = first or time.perf_counter()
            tail, count = (tail + piece)[-100:], count + piece.count(b"\n")
            if LAST in tail:
                break
        took = (time.perf_counter() - first) * 1e3
        reader.kill()
    if count < LINES:
        print(f"  kubectl has only {count:,} lines", file=sys.stderr)
    return took


async def _many(cluster: Cluster, backend: KubernetesBackend, place: Place) -> list[Row]:
    """Follow many tasks to their end: what that costs this process."""
    job = _job(cluster, place, "true", instances=TASKS)
    memory, cpu, start = _memory(), time.process_time(), time.perf_counter()
    done = asyncio.Event()

    async def hear() -> None:
        async for change in backend.watch([]):
            if change.job == job.id and change.state in FINAL:
                done.set()

    hearing = asyncio.create_task(hear())
    await backend.submit(job, {})
    await asyncio.wait_for(done.wait(), 600)
    hearing.cancel()
    await asyncio.gather(hearing, return_exceptions=True)
    took = time.perf_counter() - start
    busy, grown = 100 * (time.process_time() - cpu) / took, _memory() - memory
    what, nan = f"Kubernetes: {TASKS} tasks followed for {took:.0f} s", float("nan")
    return [
        Row(f"{what}: memory", grown, nan, "nothing", "MB", "60 MB", grown < 60),
        Row(f"{what}: of one core", busy, nan, "nothing", "%", "15 %", busy < 15),
    ]


def _job(cluster: Cluster, place: Place, command: str, instances: int = 1) -> Job:
    source = document({"worker": role(command, instances=instances, resourcePerInstance=SMALL)})
    source["prerequisites"][0]["uri"] = cluster.images["python"]
    return make_job(place, source)


def _memory() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
