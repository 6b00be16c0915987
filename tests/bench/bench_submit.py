"""From submit to the first log line and to the final state, beside subprocess with the same script."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.rows import Row

RUNS = 9
SCRIPT = "print('first', flush=True)\n"


def run() -> list[Row]:
    """Measure at the client with the engine running; ours minus the script's own start is what counts."""
    from paijupyter.client import JobsClient
    from paijupyter.client.submission import prepare_script

    with tempfile.TemporaryDirectory() as home:
        os.environ["PAIJUPYTER_DATA_DIR"] = f"{home}/data"
        os.environ["PAIJUPYTER_RUNTIME_DIR"] = f"{home}/run"
        folder = Path(home, "work")
        folder.mkdir()
        script = folder / "train.py"
        script.write_text(SCRIPT)
        client = JobsClient.connect()
        ours, bare = [], []
        for number in range(RUNS + 1):
            first_final = _job(client, prepare_script, script)
            plain = _subprocess(script)
            if number:  # the first run warms up the engine and the page cache
                ours.append(first_final)
                bare.append(plain)
    first, final = (statistics.median(pair[i] for pair in ours) for i in (0, 1))
    bare_first, bare_final = (statistics.median(pair[i] for pair in bare) for i in (0, 1))
    return [
        Row("submit to first log line", first, bare_first, "subprocess", "ms", "+250 ms", first - bare_first <= 250),
        Row("submit to final state", final, bare_final, "subprocess", "ms", "+400 ms", final - bare_final <= 400),
    ]


def _subprocess(script: Path) -> tuple[float, float]:
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        first = time.perf_counter()
        process.wait()
    return (first - start) * 1e3, (time.perf_counter() - start) * 1e3
