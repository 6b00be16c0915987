"""What a home of its own needs, for tests and for servers that several tests share."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path


def places(home: Path) -> dict[str, str]:
    """Return the variables that lead Jupyter and the product to a home; its path has to be short."""
    return {
        "HOME": str(home),
        "PAIJUPYTER_DATA_DIR": str(home / "data"),
        "PAIJUPYTER_RUNTIME_DIR": str(home / "run"),
        "JUPYTER_DATA_DIR": str(home / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_RUNTIME_DIR": str(home / "jrun"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }


def end_engines(home: Path) -> None:
    """End what engines run below a home, and wait until they have."""
    for facts in home.glob("run/*/engine.json"):
        _end(facts)


def _end(facts: Path) -> None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        pid = int(json.loads(facts.read_text())["pid"])
        if pid == os.getpid():
            return
        os.kill(pid, signal.SIGTERM)
        until(lambda: not _alive(pid), why="the engine to end")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # A zombie of ours has ended; only its parent has not looked yet.
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], object], seconds: float = 60, why: str = "the condition") -> object:
    """Return the first true value of a condition; fail with a reason once the time is up."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {why}")
        time.sleep(0.01)
