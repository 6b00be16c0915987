"""What benches of the running product share: their own home, an engine, a server, its memory."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paijupyter.client import JobsClient
from tests import documents

TOKEN = "bench"
_PLACES = ("PAIJUPYTER_DATA_DIR", "PAIJUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")


@contextlib.contextmanager
def home() -> Iterator[Path]:
    """Give a folder, and the product no other places than in it."""
    with tempfile.TemporaryDirectory(prefix="pj") as folder:
        before = {name: os.environ.get(name) for name in _PLACES}
        os.environ.update({name: f"{folder}/{name[-12:-4].lower()}" for name in _PLACES})
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


@contextlib.contextmanager
def engine() -> Iterator[JobsClient]:
    """Start an engine, and end it afterwards."""
    client = JobsClient.connect()
    try:
        yield client
    finally:
        os.kill(client.version()["engine"]["pid"], signal.SIGTERM)


@contextlib.contextmanager
def jupyter_server(root: Path) -> Iterator[tuple[str, int]]:
    """Start a Jupyter server with our extension; give its URL and pid."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}",
        "--ServerApp.jpserver_extensions={'paijupyter': True}",
    ]  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _until_answered(f"{url}/api/status?token={TOKEN}", server)
            yield url, server.pid
        finally:
            server.kill()


def document(command: str, instances: int = 1, cpu: int = 1) -> str:
    """Return a job document of one role."""
    return documents.document(command, name="bench", instances=instances, cpu=cpu, memory=50)


def request(command: str, **more: Any) -> dict[str, Any]:
    """Return a submission of a command."""
    return {"document": document(command, **more), "context": {"python": sys.executable}}


def peak_mb(pid: int) -> float:
    """Return the most memory that a process has had since :func:`reset_peak`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024 / 1e6


def reset_peak(pid: int) -> float:
    """Begin to measure a process's peak anew; return its memory now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_mb(pid)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _until_answered(url: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.02)
    raise RuntimeError("the server ended before it answered")
