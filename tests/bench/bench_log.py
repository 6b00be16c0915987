"""A log of a million lines from a running task to a client through the Jupyter server.

Beside it: the same bytes as an output file of a job, which the same handler of the Jupyter server passes on
from the same engine, with nothing in the way (`files/…`): what `cat` through that handler would give.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from paijupyter import paths
from paijupyter.client import JobsClient
from tests.bench.places import TOKEN, engine, home, jupyter_server, peak_mb, request, reset_peak
from tests.bench.rows import Row

LINES = 1_000_000
RUNS = 3
_PIECE = 256 * 1024
_HERE = Path(__file__).parent


def run() -> list[Row]:
    """Measure MB/s at the client (medians, in turn), memory (MB) and the longest wait of both loops (ms)."""
    with home() as folder, engine() as client, jupyter_server(folder) as (url, server):
        text = folder / "lines"
        line = "step {:7d} loss 0.123456789 accuracy 0.987654321\n"
        text.write_text("".join(line.format(number) for number in range(LINES)))
        return _measure(client, url, server, text)


def _measure(client: JobsClient, url: str, server: int, text: Path) -> list[Row]:
    size = text.stat().st_size
    stored = client.submit(request(f"cp {text} $PAI_OUTPUT_DIR/lines"))["id"]
    client.wait(stored)
    pids = [client.version()["engine"]["pid"], server]
    raw, merged, cat = [], [], []
    _follow(client, url, text, merged=False)  # the first one warms up
    with _stalls(url) as idle:
        time.sleep(2)
    before = [reset_peak(pid) for pid in pids]
    with _stalls(url) as stalls:
        for _ in range(RUNS):
            cat.append(size / _fetch(f"{url}/paijupyter/v1/jobs/{stored}/files/worker-0/lines", size) / 1e6)
            raw.append(size / _follow(client, url, text, merged=False) / 1e6)
            merged.append(size / _follow(client, url, text, merged=True) / 1e6)
    more = [peak_mb(pid) - start for pid, start in zip(pids, before, strict=True)]
    beside = statistics.median(cat)
    return [
        _speed("a running task's log of 1,000,000 lines, followed through the server", raw, beside, 0.5),
        _speed("the same as frames of the merged log (JSON)", merged, beside, 0.25),
        *(
            Row(f"memory of the {who} meanwhile", mb, 0, "before", "MB more", "< 30 MB", mb < 30)
            for who, mb in zip(("engine", "server"), more, strict=True)
        ),
        *(
            Row(f"longest wait for the {who} meanwhile", ms, idle[who], "at rest", "ms", "< 50 ms", ms < 50)
            for who, ms in stalls.items()
        ),
    ]


def _speed(what: str, ours: list[float], beside: float, least: float) -> Row:
    speed = statistics.median(ours)
    reached = speed >= beside * least
    return Row(what, speed, beside, "a file, same handler", "MB/s", f"≥ {least:g} ×", reached)


def _follow(client: JobsClient, url: str, text: Path, *, merged: bool) -> float:
    """Return the seconds from the task's first byte to the last one here."""
    go = text.with_name(f"go-{time.monotonic_ns()}")
    job = client.submit(request(f"until [ -e {go} ]; do sleep 0.02; done; exec cat {text}"))["id"]
    while client.get(job)["state"] == "waiting":
        time.sleep(0.02)
    query = "follow=1" if merged else "task=worker-0&follow=1"
    took = _fetch(f"{url}/paijupyter/v1/jobs/{job}/logs?{query}", text.stat().st_size, go, merged=merged)
    client.wait(job)
    return took


def _fetch(url: str, size: int, go: Path | None = None, *, merged: bool = False) -> float:
    asked = urllib.request.Request(url, headers={"Authorization": f"token {TOKEN}"})
    start = time.perf_counter()
    if go:
        go.touch()
        start = time.perf_counter()
    rest, got = b"", 0
    with urllib.request.urlopen(asked) as answer:
        while piece := answer.read1(_PIECE):
            if not merged:
                got += len(piece)
                last = time.perf_counter()
                continue
            *lines, rest = (rest + piece).split(b"\n")
            got += sum(len(json.loads(line)["text"]) for line in lines if line)
            last = time.perf_counter()
    assert got == size, (got, size)
    return last - start


@contextlib.contextmanager
def _stalls(url: str) -> Iterator[dict[str, float]]:
    found: dict[str, float] = {}
    asked = {
        "engine": (str(paths.engine_socket()), "/v1/version"),
        "Jupyter server": (url.removeprefix("http://"), "/api"),
    }
    pollers = {
        who: subprocess.Popen(
            [sys.executable, str(_HERE / "stall.py"), *where],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for who, where in asked.items()
    }  # fmt: skip
    yield found
    for who, poller in pollers.items():
        found[who] = float(poller.communicate()[0])
