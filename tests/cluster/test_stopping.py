"""The parts of a lab's stop: what is ended is the lab's, and what is left is seen."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.lab import network, processes
from tests.cluster.lab.leftovers import leftovers, mounts

STUBBORN = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "open(sys.argv[1], 'w').close(); time.sleep(600)"
)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a state folder of the test's own."""
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setattr(processes, "STATE", folder)
    monkeypatch.setattr(processes, "_PIDS", folder / "pids")
    monkeypatch.setattr(processes, "_LOGS", folder / "logs")
    return folder


def test_a_process_that_does_not_listen_is_ended(state: Path) -> None:
    ready = state / "ready"
    processes.start("stubborn", [sys.executable, "-c", STUBBORN, ready], ready.exists)
    pid = processes.running("stubborn")
    assert any(each.startswith(f"process {pid}:") for each in leftovers(state))
    processes.stop("stubborn", seconds=0.2)
    assert not processes.running("stubborn")
    assert not any(each.startswith("process") for each in leftovers(state))
    processes.stop("stubborn")  # one that does not run is no error


def test_a_process_of_somebody_else_is_left_alone(state: Path) -> None:
    """The pid that was written down may be another process's by now."""
    other = subprocess.Popen(["sleep", "600"])
    try:
        (state / "pids").mkdir()
        (state / "pids" / "etcd").write_text(f"{other.pid} 1")
        processes.stop("etcd")
        assert other.poll() is None
        assert not (state / "pids" / "etcd").exists()
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()


def test_a_machine_without_a_packet_filter_has_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop, and a look at what is left, come before the lab has installed anything."""
    monkeypatch.setattr(network, "PROGRAMS", "/nowhere")
    assert not any("rule" in line for line in network.left())


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="mounts need root")
def test_what_is_mounted_is_seen_the_deepest_first(state: Path) -> None:
    outer = state / "a folder"
    outer.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "none", outer], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this machine mounts nothing: {done.stderr.strip()}")
    try:
        inner = outer / "inner"
        inner.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "none", inner], check=True)
        try:
            assert mounts(state) == [str(inner), str(outer)]
            assert f"mount {inner}" in leftovers(state)
        finally:
            subprocess.run(["umount", inner], check=True)
    finally:
        subprocess.run(["umount", outer], check=True)
    assert mounts(state) == []
