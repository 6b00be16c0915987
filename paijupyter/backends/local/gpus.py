"""The NVIDIA GPUs of this machine, by the names that CUDA knows, and the pretend ones of a profile."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

_DEV = Path("/dev")
_NODE = re.compile(r"nvidia\d+")
_WINDOWS = "dxg"  # WSL has one node for whatever GPU Windows has
_GPU = re.compile(r"GPU (\d+): ")
_SLICE = re.compile(r"\s+MIG .*\(UUID: (MIG-[^)]+)\)")
_PATIENCE = 20.0  # seconds; a driver that sleeps takes some to wake


def known() -> tuple[str, ...] | None:
    """Return the GPUs that this process may use; None while only the driver, which takes time, can tell."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return tuple(name for name in given.replace(" ", "").split(",") if name not in ("", "-1"))
    return None if _nodes() or (_DEV / _WINDOWS).exists() else ()


@functools.cache
def ask() -> tuple[str, ...]:
    """Ask the driver, by NVML's own tool: numbers of GPUs in the order of their bus, UUIDs of MIG slices.

    Blocking, for a second or more the first time.
    """
    try:
        answer = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        # Not installed, as in some containers. CUDA counts from 0 whatever numbers the nodes have.
        return tuple(str(number) for number in range(_nodes()))
    return parsed(answer.stdout)


def parsed(text: str) -> tuple[str, ...]:
    """Read the answer of ``nvidia-smi -L``; a GPU that is cut into slices is its slices."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        whole, part = _GPU.match(line), _SLICE.match(line)
        if whole:
            found[whole[1]] = []
        elif part and found:
            found[list(found)[-1]].append(part[1])
    return tuple(name for number, slices in found.items() for name in slices or [number])


def handed_out(count: int, real: Sequence[str]) -> tuple[str, ...]:
    """Return the names of so many GPUs: real ones, or, where there are too few, numbers that pretend."""
    return tuple(real[:count]) if count <= len(real) else tuple(str(number) for number in range(count))


def variables(names: Sequence[str]) -> dict[str, str]:
    """Return what makes a task see these GPUs and no other."""
    found = {"CUDA_VISIBLE_DEVICES": ",".join(names)}
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the driver's order; CUDA's own is by speed
    return found


def _nodes() -> int:
    try:
        return sum(bool(_NODE.fullmatch(name)) for name in os.listdir(_DEV))
    except OSError:
        return 0
