"""Facts of this host: its boot id, its capacity, and whether a process is still the one we started."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
from pathlib import Path

_PROC = Path("/proc")
_CPU_QUOTAS = (Path("/sys/fs/cgroup/cpu.max"),)
_MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@functools.cache
def boot_id() -> str:
    """Return what changes with every start of the machine, or "" where nothing tells it."""
    with contextlib.suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        # macOS: the second of the boot is as good an identity.
        found = subprocess.run(
            ["sysctl", "-n", "kern.boottime"], capture_output=True, text=True, timeout=5, check=True
        )
        return found.stdout.strip()
    return ""


def has_proc() -> bool:
    """Say whether this system has a Linux ``/proc``."""
    return (_PROC / "self/stat").exists()


def stat_fields(pid: int) -> list[str] | None:
    """Return ``/proc/<pid>/stat`` from field 3 (the state) on, or None if there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name in parentheses may itself hold blanks and parentheses.
    return text.rpartition(")")[2].split()


def start_time(pid: int) -> str:
    """Return field 22 of ``/proc/<pid>/stat``, or "" where it cannot be known."""
    fields = stat_fields(pid)
    return fields[19] if fields else ""


def is_alive(pid: int, started: str) -> bool:
    """Say whether a process runs and is the one that started then. A zombie has ended."""
    if has_proc():
        fields = stat_fields(pid)
        return bool(fields and fields[0] not in "ZX" and started in ("", fields[19]))
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def cores() -> float:
    """Return the CPUs that this process may use, container limits included."""
    count = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    for path in _CPU_QUOTAS:
        with contextlib.suppress(OSError, ValueError):
            quota, period = path.read_text().split()
            count = min(count, float(quota) / float(period))
    return max(count, 1.0)


def memory_mb() -> float:
    """Return the physical memory in MiB, or the container's limit where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _MEMORY_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            total = min(total, int(path.read_text()))
    return float(total // 2**20)
