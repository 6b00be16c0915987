"""What the processes of a task use, from ``/proc``.

CPU time is that of all living processes and of the children that they have waited for, so a process that ends
between two measurements is not lost: its time has gone to its parent.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from paijupyter.backends.base import GpuUsage, Usage
from paijupyter.backends.local import host

Boots = Mapping[str, tuple[int, str]]  # task key → pid and start time of its boot process
_PROC = Path("/proc")
_TICKS = float(os.sysconf("SC_CLK_TCK"))
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


class Meter:
    """Measures the tasks of one attempt, again and again. Blocking."""

    def __init__(self) -> None:
        self._before: dict[int, tuple[float, float]] = {}

    def measure(self, boots: Boots, devices: Mapping[str, Sequence[str]]) -> dict[str, Usage]:
        """Return what each task uses now; on a system without ``/proc`` nothing is known.

        Args:
            boots: the boot process of each task.
            devices: the GPUs of each task.
        """
        if not host.has_proc():
            return {}
        children = _children()
        gpus = _gpus({name for names in devices.values() for name in names})
        found = {}
        for key, (pid, started) in boots.items():
            if host.is_alive(pid, started):
                cpu, memory = self._processes(pid, _tree(pid, children))
                shown = tuple(gpus[name] for name in devices.get(key, ()) if name in gpus)
                found[key] = Usage(cpu, memory, shown)
        there = {pid for pid, _ in boots.values()}
        self._before = {pid: before for pid, before in self._before.items() if pid in there}
        return found

    def _processes(self, boot: int, pids: list[int]) -> tuple[float, float]:
        """Return cores and MiB."""
        ticks, pages, began = 0, 0, None
        for pid in pids:
            fields = host.stat_fields(pid)
            if fields is None:
                continue
            ticks += sum(int(each) for each in fields[11:15])
            pages += int(fields[21])
            if pid == boot:
                began = int(fields[19]) / _TICKS
        now, seconds = time.monotonic(), ticks / _TICKS
        since, before = self._before.get(boot, (None, 0.0))
        self._before[boot] = (now, seconds)
        passed = now - since if since is not None else max(_uptime() - (began or 0.0), 0.0)
        # Less than before: a process has ended whose parent did not wait for it.
        return (max(seconds - before, 0.0) / passed if passed > 0 else 0.0), pages * _PAGE_MB


def _children() -> dict[int, list[int]]:
    """Return the children of every process. One pass over the table serves all tasks."""
    found: dict[int, list[int]] = {}
    for name in os.listdir(_PROC):
        fields = host.stat_fields(int(name)) if name.isdigit() else None
        if fields and fields[0] not in "ZX":
            found.setdefault(int(fields[1]), []).append(int(name))
    return found


def _tree(root: int, children: Mapping[int, list[int]]) -> list[int]:
    """Return a process and all below it; the boot process adopts what its own leave behind."""
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def _uptime() -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return float((_PROC / "uptime").read_text().split()[0])
    return 0.0


def _gpus(names: set[str]) -> dict[str, GpuUsage]:
    if not names:
        return {}
    from paijupyter.backends.local import nvml

    return nvml.usage(names)
