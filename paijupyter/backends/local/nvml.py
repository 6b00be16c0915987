"""How busy NVIDIA GPUs are, from their management library (NVML), where the driver has brought it along."""

from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Iterable
from typing import Any

from paijupyter.backends.base import GpuUsage

_log = logging.getLogger(__name__)
_LIBRARY = "libnvidia-ml.so.1"


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


@functools.cache
def _library() -> Any:
    """Return NVML, ready, or None on a machine without it; looked for once."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        status = library.nvmlInit_v2()
    except (OSError, AttributeError):
        return None
    if status:
        _log.info("NVML cannot be used: status %d", status)
        return None
    return library


def usage(names: Iterable[str]) -> dict[str, GpuUsage]:
    """Return what is used of GPUs, by the names that CUDA knows (``0``, ``GPU-…``, ``MIG-…``). Blocking."""
    library = _library()
    if library is None:
        return {}
    found = {}
    for name in names:
        device = ctypes.c_void_p()
        if name.isdigit():
            status = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(name)), ctypes.byref(device))
        else:
            status = library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(device))
        if not status:
            found[name] = GpuUsage(name, _busy(library, device), _memory_mb(library, device))
    return found


def _busy(library: Any, device: ctypes.c_void_p) -> float | None:
    rates = _Utilization()
    # A part of a GPU (MIG) does not say.
    return None if library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(rates)) else rates.gpu / 100


def _memory_mb(library: Any, device: ctypes.c_void_p) -> float | None:
    memory = _Memory()
    return None if library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) else memory.used / 2**20
