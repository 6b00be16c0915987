"""CPU, memory and GPU of the processes of a task (O30)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from paijupyter.backends.base import Backend, Measuring, Place, Profile
from paijupyter.backends.local import LocalBackend, host
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
