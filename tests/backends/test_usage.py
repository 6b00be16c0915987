"""CPU, memory and GPU of the processes of a task (O30)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

import pytest

from paijupyter.backends.base import Backend, GpuUsage, Measuring, Place, Profile
from paijupyter.backends.local import LocalBackend, host, nvml
from paijupyter.backends.local.usage import Meter

needs_proc = pytest.mark.skipif(not host.has_proc(), reason="there is no /proc")
# A parent that holds 60 MiB and a child that burns one core, then says so.
PROGRAM = """
import os, sys, time
held = bytearray(os.urandom(1)) * (60 << 20)
if not os.fork():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    print("burnt", flush=True)
    time.sleep(600)
time.sleep(600)
"""


@pytest.fixture
def task():
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, start_new_session=True)
    yield child
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdout:
        child.stdout.close()


@needs_proc
def test_all_processes_of_a_task_are_measured(task):
    meter = Meter()
    assert task.stdout.readline() == b"burnt\n"
    boots = {
        "worker-0": (task.pid, host.start_time(task.pid)),
        "worker-1": (task.pid, "1"),
        "gone-0": (2**22 - 1, ""),
    }
    first = meter.measure(boots, {"worker-0": ["0"]})
    assert set(first) == {"worker-0"}  # another process that has got the number is not the task
    assert first["worker-0"].memory_mb >= 60
    assert first["worker-0"].cpu > 0
    # Both sleep by now: what was burnt before is not counted again.
    before = meter._before[task.pid][1]
    second = meter.measure(boots, {})
    assert before >= 0.25 and second["worker-0"].cpu <= first["worker-0"].cpu
    assert meter.measure({}, {}) == {} and not meter._before


def test_the_local_backend_measures():
    assert issubclass(LocalBackend, Measuring) and issubclass(LocalBackend, Backend)


@pytest.mark.asyncio
async def test_a_job_that_does_not_run_uses_nothing(tmp_path):
    from paijupyter.backends.base import Job

    backend = LocalBackend(Profile("local", "local"), Place(tmp_path, tmp_path))
    assert await backend.usage(Job("x", "x", "ann", tmp_path, {}, {})) == {}


class Library:
    """Answers as NVML does: GPU 0 says all, a MIG slice only its memory, others are not there."""

    def nvmlDeviceGetHandleByIndex_v2(self, index, device):
        device._obj.value = 16 + index.value
        return 0 if index.value == 0 else 2

    def nvmlDeviceGetHandleByUUID(self, name, device):
        device._obj.value = 99
        return 0 if name == b"MIG-1" else 2

    def nvmlDeviceGetUtilizationRates(self, device, rates):
        rates._obj.gpu = 35
        return 0 if device.value == 16 else 3

    def nvmlDeviceGetMemoryInfo(self, device, memory):
        memory._obj.used = 3 << 30
        return 0


def test_gpus_are_measured_by_nvml(monkeypatch):
    monkeypatch.setattr(nvml, "_library", Library)
    assert nvml.usage(["0", "1", "MIG-1", "GPU-x"]) == {
        "0": GpuUsage("0", 0.35, 3072.0),
        "MIG-1": GpuUsage("MIG-1", None, 3072.0),
    }


def test_a_machine_without_nvml_has_nothing_to_say(monkeypatch):
    nvml._library.cache_clear()
    monkeypatch.setattr(nvml, "_LIBRARY", "libthere-is-none.so.1")
    assert nvml.usage(["0"]) == {}
    nvml._library.cache_clear()
    assert ctypes.sizeof(nvml._Memory) == 24
