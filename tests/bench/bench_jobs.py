"""A thousand jobs of fifty clients at a time: all there, all ended, the list quick, then silence."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from paijupyter.client import JobsClient
from tests.bench.places import cpu_seconds, engine, home, peak_mb, request
from tests.bench.rows import Row

JOBS, AT_ONCE = 1000, 50
_REST_SECONDS = 20.0


def run() -> list[Row]:
    """Measure how many were lost or doubled, a page of the list (ms), CPU afterwards (%), memory (MB)."""
    with home() as folder, engine() as client:
        marks = folder / "marks"
        marks.touch()
        pid = client.version()["engine"]["pid"]
        start = time.perf_counter()
        submitted = _submit(client, f"echo $PAI_JOB_ID >> {marks}")
        took = time.perf_counter() - start
        busy = [_page(client) for _ in range(20)]
        views = _all_final(client)
        whole = time.perf_counter() - start
        ran = marks.read_text().split()
        expected = set(submitted)
        good = {view["id"] for view in views if view["state"] == "succeeded"}
        lost = JOBS - len(expected & good & set(ran)) + len(ran) - len(set(ran))
        page = [_page(client) for _ in range(50)]
        memory = peak_mb(pid)
        used = cpu_seconds(pid)
        time.sleep(_REST_SECONDS)
        idle = (cpu_seconds(pid) - used) / _REST_SECONDS * 100
    ms, busy_ms = statistics.median(page), statistics.median(busy)
    return [
        Row(f"{JOBS} jobs, {AT_ONCE} at a time: lost or run twice", lost, 0, "none", "jobs", "0", lost == 0),
        Row("submitted per second", JOBS / took, JOBS / whole, "ended per second", "jobs", "tell", True),
        Row("a page of 100 of them", ms, busy_ms, "while they run", "ms", "< 20 ms", ms < 20),
        Row("the engine's CPU afterwards", idle, 0, "none", "%", "< 1 %", idle < 1),
        Row("the engine's memory with them", memory, 0, "none", "MB", "tell", True),
    ]


def _submit(client: JobsClient, command: str) -> list[str]:
    def one(_: int) -> str:
        return str(client.submit(request(command, cpu=0))["id"])

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(one, range(JOBS)))


def _page(client: JobsClient) -> float:
    start = time.perf_counter()
    assert len(client.list(limit=100)["jobs"]) == 100
    return (time.perf_counter() - start) * 1e3


def _all_final(client: JobsClient) -> list[dict[str, object]]:
    while client.list(state="waiting,running", limit=1)["jobs"]:
        time.sleep(0.2)
    return list(client.list(limit=1000)["jobs"])
