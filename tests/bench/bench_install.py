"""What the core install adds on top of JupyterLab, beside jupyter-scheduler."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.rows import Row

ROOT = Path(__file__).parents[2]


def run() -> list[Row]:
    """Install into fresh environments and count distributions and bytes (MB)."""
    with tempfile.TemporaryDirectory() as folder:
        ours_mb, ours_count = _added(Path(folder, "ours"), str(ROOT))
        peer_mb, peer_count = _added(Path(folder, "peer"), "jupyter-scheduler")
    return [
        Row(
            "core install on top of JupyterLab, size",
            ours_mb, peer_mb, "jupyter-scheduler", "MB", "< 15 MB", ours_mb < 15,
        ),
        Row(
            "core install on top of JupyterLab, distributions",
            ours_count, peer_count, "jupyter-scheduler", "", "at most 10", ours_count <= 10,
        ),
    ]  # fmt: skip


def _added(environment: Path, requirement: str) -> tuple[float, int]:
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    # Without byte code: pip compiles, other installers do not, and it says nothing about what was added.
    pip = [
        environment / "bin/python",
        "-m",
        "pip",
        "install",
        "-q",
        "--no-compile",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "jupyterlab"], check=True, capture_output=True)
    before = _size(environment)
    subprocess.run([*pip, requirement], check=True, capture_output=True)
    after = _size(environment)
    return after[0] - before[0], after[1] - before[1]


def _size(environment: Path) -> tuple[float, int]:
    files = [path for path in environment.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return sum(path.stat().st_size for path in files) / 1e6, len(list(environment.rglob("*.dist-info")))
