"""A job of 800 tasks on a cluster's nodes of KWOK: what following it to its end costs the engine."""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import yaml

from paijupyter.client import JobsClient
from tests.bench.places import cpu_seconds, document, engine, home, peak_mb, reset_peak
from tests.bench.rows import Row, sized
from tests.cluster.lab import addons
from tests.cluster.reach import Cluster, reached

TASKS, NODES, PATIENCE = sized(800, 20), sized(100, 4), 600.0
FINAL = ("succeeded", "failed", "stopped")
KWOK = {
    "nodeSelector": {"type": "kwok"},
    "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}],
}


def run() -> list[Row]:
    """Measure, where a cluster has such nodes."""
    cluster = reached()
    if isinstance(cluster, str):
        print(f"  no figures of Kubernetes: {cluster}", file=sys.stderr)
        return []
    if cluster.lab:
        addons.add_fake_nodes(NODES)
    elif not cluster.get("nodes", "-l", "type=kwok")["items"]:
        print(f"  no figures of {TASKS} tasks: the cluster has no nodes of KWOK", file=sys.stderr)
        return []
    namespace = f"pj-bench-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", namespace)
    try:
        with home():
            _profile(cluster, namespace)
            with engine() as client:
                return _rows(cluster, client)
    finally:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false", seconds=300)
        if cluster.lab:
            addons.remove_fake_nodes()


def _rows(cluster: Cluster, client: JobsClient) -> list[Row]:
    pid, before = client.version()["engine"]["pid"], _watches(cluster)
    _to_the_end(client, 1, lambda job: None)  # what is loaded once is no growth
    memory, cpu, start = reset_peak(pid), cpu_seconds(pid), time.perf_counter()
    lists: list[float] = []
    jobs: list[float] = []
    empty: list[float] = []
    watches: list[int] = []

    def look(job: str) -> None:
        # Each alone: what waits for the processor, which the cluster has too, is in all three.
        empty.append(_timed(client.version))
        lists.append(_timed(lambda: client.list(limit=100)))
        jobs.append(_timed(lambda: client.get(job)))
        watches.append(_watches(cluster) - before)

    _to_the_end(client, TASKS, look)
    took = time.perf_counter() - start
    grown, busy = peak_mb(pid) - memory, 100 * (cpu_seconds(pid) - cpu) / took
    page, open_watches = max(map(statistics.median, (lists, jobs))), statistics.median(watches)
    nothing = statistics.median(empty)
    what, nan = f"Kubernetes: {TASKS} tasks followed for {took:.0f} s", float("nan")
    return [
        Row(f"{what}: watches of pods", open_watches, nan, "nothing", "watch", "1", open_watches == 1),
        Row(f"{what}: memory", grown, nan, "nothing", "MB", "60 MB", grown < 60),
        Row(f"{what}: of one core", busy, nan, "nothing", "%", "15 %", busy < 15),
        Row(
            f"{what}: list or job page, the slower",
            page,
            nothing,
            "an answer without content",
            "ms",
            "30 ms",
            page < 30,
        ),
    ]


def _to_the_end(client: JobsClient, tasks: int, look: Callable[[str], None]) -> None:
    """Run a job to its end; look at it every second."""
    found = client.submit({"document": document("true", instances=tasks, cpu=0), "profile": "kwok"})
    job, end = str(found["id"]), time.monotonic() + PATIENCE
    while (state := client.get(job)["state"]) not in FINAL:
        assert time.monotonic() < end, state
        look(job)
        time.sleep(1)
    assert state == "succeeded", client.get(job)


def _profile(cluster: Cluster, namespace: str) -> None:
    settings = {"kind": "kubernetes", "kubeconfig": str(cluster.kubeconfig), "namespace": namespace, **KWOK}
    file = Path(os.environ["JUPYTER_CONFIG_DIR"]) / "paijupyter" / "profiles.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(yaml.safe_dump({"profiles": {"kwok": settings}}))


def _watches(cluster: Cluster) -> int:
    """Return how many watch the pods of a namespace now."""
    metrics = cluster.kubectl("get", "--raw", "/metrics")
    wanted = r'^apiserver_longrunning_requests\{.*resource="pods",scope="namespace",.*verb="WATCH".*\} (\d+)'
    return sum(int(count) for count in re.findall(wanted, metrics, re.MULTILINE))


def _timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e3
