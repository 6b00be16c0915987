"""What our server extension adds to the start of a Jupyter server, beside jupyter-scheduler.

Processor time, not wall time: a server's start takes seconds and what we look for is a few milliseconds.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from tests.bench.rows import Row

RUNS = 7
OURS, PEER = "paijupyter", "jupyter_scheduler"


def run() -> list[Row]:
    """Measure processor time to the first answer (ms) and memory then (MB), with and without, in turn."""
    figures: dict[str, list[tuple[float, float]]] = {"": [], OURS: [], PEER: []}
    for _ in range(RUNS):
        for extension, measured in figures.items():
            measured.append(_start(extension))
    bare_ms, bare_mb = _medians(figures[""])
    ours_ms, ours_mb = _medians(figures[OURS])
    peer_ms, peer_mb = _medians(figures[PEER])
    ms, mb = max(0.0, ours_ms - bare_ms), max(0.0, ours_mb - bare_mb)
    return [
        Row("server extension, start", ms, peer_ms - bare_ms, "jupyter-scheduler", "ms", "< 60 ms", ms < 60),
        Row("server extension, memory", mb, peer_mb - bare_mb, "jupyter-scheduler", "MB", "< 15 MB", mb < 15),
    ]


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def _start(extension: str) -> tuple[float, float]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    extensions = {OURS: False, PEER: False, extension: True}
    extensions.pop("", None)
    with tempfile.TemporaryDirectory() as home:
        command = [
            sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}",
            "--ServerApp.port_retries=0", "--IdentityProvider.token=t",
            f"--ServerApp.root_dir={home}", f"--ServerApp.jpserver_extensions={extensions!r}",
        ]  # fmt: skip
        env = os.environ | {"HOME": home, "JUPYTER_CONFIG_DIR": home, "JUPYTER_DATA_DIR": home}
        with subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            try:
                _until_answered(f"http://127.0.0.1:{port}/api/status?token=t", server)
                took = _processor_ms(server.pid)
                with open(f"/proc/{server.pid}/statm") as statm:
                    memory = int(statm.read().split()[1]) * 4096 / 1e6
            finally:
                server.kill()
    return took, memory


def _processor_ms(pid: int) -> float:
    """Return how long the threads of a process have run on a processor."""
    return (
        sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6
    )


def _until_answered(url: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.005)
    raise RuntimeError("the server ended before it answered")
