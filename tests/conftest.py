"""Every test has its own home: no test sees the user's jobs, and no engine outlives its test."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_RINGS = Path(__file__).parent / "rings"

pytest_plugins = ["pytest_jupyter.jupyter_server"]


@pytest.fixture(autouse=True)
def isolated_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test a home of its own below a short path (a socket's path may have 107 bytes)."""
    home = Path(tempfile.mkdtemp(prefix="pj"))
    places = {
        "HOME": home,
        "PAIJUPYTER_DATA_DIR": home / "data",
        "PAIJUPYTER_RUNTIME_DIR": home / "run",
        "JUPYTER_DATA_DIR": home / "jupyter",
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_RUNTIME_DIR": home / "jrun",
        "IPYTHONDIR": home / "ipython",
    }
    for name, value in places.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    yield home
    for facts in home.glob("run/*/engine.json"):
        _end(facts)
    shutil.rmtree(home, ignore_errors=True)


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


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., object]:
    """Hand :func:`until` to tests."""
    return until


@pytest.fixture
def ring(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this process and those that it starts a real keyring; return the file of its entries."""
    file = tmp_path_factory.mktemp("ring") / "ring.json"
    path = [str(_RINGS), os.environ.get("PYTHONPATH")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_ring.Ring")
    monkeypatch.setenv("TEST_RING", str(file))
    return file
