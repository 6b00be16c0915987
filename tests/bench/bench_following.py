"""Following jobs on a Kubernetes cluster beside ``kubectl logs -f``: the first line, and long logs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from paijupyter.backends.base import Job, Place, Profile
from paijupyter.backends.kubernetes import labels, names
from paijupyter.backends.kubernetes.backend import KubernetesBackend
from tests.bench.rows import Row, sized
from tests.cluster.lab.build import program
from tests.cluster.reach import Cluster, reached

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "backends"))
from staging import document, make_job, role

LINES, FIRST = sized(500_000), sized(5, 2)
SMALL = {"cpu": 0.1, "memoryMB": 128, "gpu": 0}
PRINT = f"sleep 2; seq 1 {LINES}; sleep 20"
LAST = str(LINES).encode()
_PATIENCE = 120.0  # seconds


def run() -> list[Row]:
    """Measure on the nodes of the cluster."""
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
        rows.append(await _first_lines(cluster, namespace, backend, place))
        memory = _memory()
        ours = await _follow(backend, _job(cluster, place, PRINT))
        grown = _memory() - memory
        peer = await _kubectl_follow(cluster, namespace, backend, _job(cluster, place, PRINT))
        what = f"Kubernetes: following {LINES:,} lines"
        rows.append(Row(what, ours, peer, "kubectl logs -f", "ms", "1.0 × its time", ours <= 1.0 * peer))
        rows.append(Row(f"{what}: memory", grown, float("nan"), "nothing", "MB", "flat", grown < 40))
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


async def _first_lines(cluster: Cluster, namespace: str, backend: KubernetesBackend, place: Place) -> Row:
    """Measure from the submission to the first line of the log, and the same for copies by kubectl."""
    pattern = _job(cluster, place, "echo here; sleep 300")
    await _first_line(backend, pattern)
    objects = _copied(cluster, namespace, pattern)
    await backend.stop(pattern)
    ours, peer = [], []
    for index in range(FIRST):
        job = _job(cluster, place, "echo here")
        ours.append(await _first_line(backend, job))
        text = objects.replace(names.base(pattern.name), f"copy-{index}").replace(pattern.id, f"copy{index}")
        peer.append(await asyncio.to_thread(_kubectl_first_line, cluster, namespace, text, f"copy-{index}"))
    first, other = statistics.median(ours), statistics.median(peer)
    what, beside = "Kubernetes: submit to first line", "kubectl apply, then logs -f"
    return Row(what, first, other, beside, "ms", "+ 300 ms", first <= other + 300)


async def _first_line(backend: KubernetesBackend, job: Job) -> float:
    start = time.perf_counter()
    await backend.submit(job, {})
    async with contextlib.aclosing(backend.logs(job, "worker", 0, 0, 0)) as pieces:  # type: ignore[type-var]
        async for _ in pieces:
            break
    return (time.perf_counter() - start) * 1e3


def _kubectl_first_line(cluster: Cluster, namespace: str, text: str, name: str) -> float:
    start = time.perf_counter()
    options = ("--server-side", "--force-conflicts", "-f", "-")
    cluster.kubectl("apply", "-n", namespace, *options, given=text)
    tool = str(program("kubernetes", "kubectl")) if cluster.lab else "kubectl"
    command = [tool, f"--kubeconfig={cluster.kubeconfig}", "logs", "-f", "-n", namespace]
    job = f"job/{name}-a0-worker"
    command += [job, "--pod-running-timeout=2m"]
    end = start + _PATIENCE
    while time.perf_counter() < end:  # it gives up on a container that is being made, so it is asked again
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
            assert reader.stdout
            found = reader.stdout.read(1)
            took = (time.perf_counter() - start) * 1e3
            reader.kill()
        if found:
            return took
    raise TimeoutError(f"{job} has said nothing")


def _copied(cluster: Cluster, namespace: str, job: Job) -> str:
    """Return the objects of a job that runs, as somebody would have written them."""
    selector = labels.of_job_id(job.id)
    found = cluster.get("configmaps,secrets,services,jobs", "-n", namespace, "-l", selector)["items"]
    for each in found:
        meta = each["metadata"]
        each["metadata"] = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
        each.pop("status", None)
        if each["kind"] == "Job":
            each["spec"].pop("selector")
            marks = each["spec"]["template"]["metadata"]["labels"]
            each["spec"]["template"]["metadata"]["labels"] = _own(marks)
            each["metadata"]["labels"] = _own(each["metadata"]["labels"])
    return "\n---\n".join(json.dumps(each) for each in found)


def _own(marks: dict[str, str]) -> dict[str, str]:
    return {
        key: value for key, value in marks.items() if "controller-uid" not in key and "job-name" not in key
    }


def _job(cluster: Cluster, place: Place, command: str, instances: int = 1) -> Job:
    source = document({"worker": role(command, instances=instances, resourcePerInstance=SMALL)})
    source["prerequisites"][0]["uri"] = cluster.images["python"]
    return make_job(place, source)


def _memory() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
