"""From submit to the first log line and to the final state, beside subprocess with the same script."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from paijupyter.client import JobsClient
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.client.submission import prepare, submit
from tests.bench.rows import Row

RUNS = 9
SCRIPT = "print('first', flush=True)\n"


def run() -> list[Row]:
    """Measure (ms) at the client with the engine running: packaging, plan, submission, boot, log, end."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["PAIJUPYTER_DATA_DIR"] = f"{home}/data"
        os.environ["PAIJUPYTER_RUNTIME_DIR"] = f"{home}/run"
        folder = Path(home, "work")
        folder.mkdir()
        script = folder / "train.py"
        script.write_text(SCRIPT)
        client = JobsClient.connect()
        try:
            _job(client, script)  # the first one warms up the engine
            pairs = [(_job(client, script), _subprocess(script)) for _ in range(RUNS)]
        finally:
            os.kill(client.version()["engine"]["pid"], signal.SIGTERM)
    first, final = (statistics.median(ours[i] for ours, _ in pairs) for i in (0, 1))
    bare_first, bare_final = (statistics.median(bare[i] for _, bare in pairs) for i in (0, 1))
    return [
        Row(
            "submit to first log line",
            first,
            bare_first,
            "subprocess",
            "ms",
            "+250 ms",
            first - bare_first <= 250,
        ),
        Row(
            "submit to final state",
            final,
            bare_final,
            "subprocess",
            "ms",
            "+400 ms",
            final - bare_final <= 400,
        ),
    ]


def _job(client: JobsClient, script: Path) -> tuple[float, float]:
    start = time.perf_counter()
    options = parse_verb("submit", [script.name], "cli")
    prepared = prepare(options, Origin("cli", script.parent, sys.executable))
    job = submit(client, prepared).view["id"]
    log = client.logs(job, follow=True)
    while "first" not in next(log).text:
        pass
    first = time.perf_counter()
    final = client.wait(job)
    ended = time.perf_counter()
    assert final["state"] == "succeeded", final
    return (first - start) * 1e3, (ended - start) * 1e3


def _subprocess(script: Path) -> tuple[float, float]:
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        first = time.perf_counter()
        process.wait()
    return (first - start) * 1e3, (time.perf_counter() - start) * 1e3
