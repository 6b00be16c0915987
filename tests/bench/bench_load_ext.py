"""What ``%load_ext paijupyter`` adds to a running kernel, beside the import of another job library."""

from __future__ import annotations

import json
import statistics
from typing import Any

from jupyter_client.manager import start_new_kernel

from tests.bench.rows import Row

RUNS = 5
_MEASURE = """
import json as _json, time as _time
def _rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
_before, _start = _rss(), _time.perf_counter()
{statement}
print(_json.dumps([(_time.perf_counter() - _start) * 1e3, _rss() - _before]))
"""


def run() -> list[Row]:
    """Measure time (ms) and memory (MB) in fresh kernels, in turn."""
    ours, peer = [], []
    for _ in range(RUNS):
        ours.append(_added("%load_ext paijupyter"))
        peer.append(_added("import ipyparallel"))
    (ms, mb), (peer_ms, peer_mb) = _medians(ours), _medians(peer)
    return [
        Row("`%load_ext paijupyter`, time", ms, peer_ms, "import ipyparallel", "ms", "< 80 ms", ms < 80),
        Row("`%load_ext paijupyter`, memory", mb, peer_mb, "import ipyparallel", "MB", "< 12 MB", mb < 12),
    ]


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def _added(statement: str) -> tuple[float, float]:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        printed: list[str] = []

        def keep(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                printed.append(message["content"]["text"])
            if message["msg_type"] == "error":
                raise RuntimeError("\n".join(message["content"]["traceback"]))

        client.execute_interactive("1", timeout=60, output_hook=keep)
        client.execute_interactive(_MEASURE.format(statement=statement), timeout=60, output_hook=keep)
        ms, mb = json.loads("".join(printed).strip().splitlines()[-1])
        return ms, mb
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
