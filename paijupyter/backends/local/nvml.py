"""NVIDIA GPUs as their driver tells of them, by its management library NVML (the extra ``gpu``)."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from paijupyter.backends.base import GpuUsage


class Unasked(Exception):
    """Nobody can be asked: there is no driver's library, or nothing that speaks with it."""


class Refused(Exception):
    """The driver is there and answers with an error, so no program can use its GPUs."""


def devices() -> tuple[str, ...]:
    """Return the GPUs that a task can be given, by the names that CUDA knows. Blocking, a second at first.

    That is the number in the order of the bus; a GPU that is cut into MIG slices is their UUIDs. Where some
    are not for us, as in a container, CUDA and the driver count differently: then all go by their UUIDs.

    Raises:
        Unasked: why, as the end of a sentence.
        Refused: likewise.
    """
    nvml = _ready()
    try:
        handles = [_handle(nvml, str(index)) for index in range(nvml.nvmlDeviceGetCount())]
        found: list[str] = []
        for index, device in enumerate(handles):
            if device is None:
                continue
            if _is_cut(nvml, device):
                found += _slices(nvml, device)
            else:
                found.append(nvml.nvmlDeviceGetUUID(device) if None in handles else str(index))
    except nvml.NVMLError as error:
        raise Refused(f"the driver answers `{error}`") from error
    return tuple(found)


def usage(names: Iterable[str]) -> dict[str, GpuUsage]:
    """Return what is used of GPUs, by their names (``0``, ``GPU-…``, ``MIG-…``), where known. Blocking."""
    try:
        nvml = _ready()
    except (Unasked, Refused):
        return {}
    found = {}
    for name in names:
        device = _handle(nvml, name)
        if device is not None:
            found[name] = GpuUsage(name, _busy(nvml, device), _memory_mb(nvml, device))
    return found


@functools.cache
def _ready() -> Any:
    """Return the module that speaks with the driver; what goes wrong is tried again the next time."""
    try:
        import pynvml
    except ImportError as error:
        raise Unasked("the package nvidia-ml-py is not installed (pip install 'paijupyter[gpu]')") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound as error:
        raise Unasked("the driver's library libnvidia-ml.so.1 is not there") from error
    except pynvml.NVMLError as error:
        raise Refused(f"the driver answers `{error}`") from error
    return pynvml


def _handle(nvml: Any, name: str) -> Any:
    """Return what NVML knows a GPU by, or None if it is not for us, lost or no GPU at all."""
    try:
        if name.isdigit():
            return nvml.nvmlDeviceGetHandleByIndex(int(name))
        return nvml.nvmlDeviceGetHandleByUUID(name)
    except nvml.NVMLError:
        return None


def _is_cut(nvml: Any, device: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(device)[0])
    except nvml.NVMLError:
        return False  # most GPUs, and older drivers, know no slices


def _slices(nvml: Any, device: Any) -> Iterator[str]:
    for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, number)
        except nvml.NVMLError:
            continue  # numbers may have gaps
        yield nvml.nvmlDeviceGetUUID(part)


def _busy(nvml: Any, device: Any) -> float | None:
    try:
        return float(nvml.nvmlDeviceGetUtilizationRates(device).gpu) / 100
    except nvml.NVMLError:
        return None  # a slice does not say


def _memory_mb(nvml: Any, device: Any) -> float | None:
    try:
        return float(nvml.nvmlDeviceGetMemoryInfo(device).used) / 2**20
    except nvml.NVMLError:
        return None
