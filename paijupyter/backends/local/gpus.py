"""The NVIDIA GPUs of this machine, by the names that CUDA knows, and the pretend ones of a profile."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paijupyter.backends.local import nvml

_DEV = Path("/dev")
_NODE = re.compile(r"nvidia\d+")
_WINDOWS = "dxg"  # WSL has one node for whatever GPU Windows has


@dataclass(frozen=True, slots=True)
class Gpus:
    """What there is.

    Attributes:
        names: by which tasks are given them.
        doubt: why their driver could not be asked, as the end of a sentence; "" if it was, or need not be.
    """

    names: tuple[str, ...] = ()
    doubt: str = ""


def known() -> Gpus | None:
    """Return the GPUs that this process may use; None while only the driver, which takes time, can tell."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return Gpus(tuple(name for name in given.replace(" ", "").split(",") if name not in ("", "-1")))
    return None if _nodes() or (_DEV / _WINDOWS).exists() else Gpus()


def ask() -> Gpus:
    """Ask the driver; where nobody can, count its nodes: CUDA counts from 0 whatever numbers they have.

    Blocking, for a second or more the first time.
    """
    try:
        return Gpus(nvml.devices())
    except nvml.Unasked as why:
        return Gpus(tuple(str(number) for number in range(_nodes())), str(why))
    except nvml.Refused as why:
        return Gpus((), str(why))


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
