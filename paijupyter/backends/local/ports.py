"""Free TCP ports for the tasks of a job.

A port is known to be free by binding it; all sockets are held until every port of the job is known, so no
two labels get the same one. They lie below the range that the kernel takes ports for outgoing connections
from, so that nobody gets one by chance between this moment and the task's own ``bind``.
"""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Container, Mapping
from itertools import chain
from pathlib import Path

from paijupyter.errors import PaiJupyterError

Ports = dict[str, dict[str, list[int]]]

_FIRST = 15000
_LAST = 32767
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def allocate(wanted: Mapping[str, Mapping[str, int]], taken: Container[int]) -> Ports:
    """Choose free ports.

    Args:
        wanted: how many ports each label of each task needs, ``{"worker-0": {"tb": 1}}``.
        taken: ports that other jobs of ours hold, though perhaps not yet bound.

    Raises:
        PaiJupyterError: ``no-free-port`` if the range is used up.
    """
    with contextlib.ExitStack() as held:
        return {
            task: {label: [_bind(held, taken) for _ in range(count)] for label, count in labels.items()}
            for task, labels in wanted.items()
        }


def _bind(held: contextlib.ExitStack, taken: Container[int]) -> int:
    last = max(min(_LAST, _ephemeral_start() - 1), _FIRST + 1000)
    start = random.randint(_FIRST, last)  # noqa: S311 - spreading, not hiding
    for port in chain(range(start, last + 1), range(_FIRST, start)):
        if port in taken:
            continue
        probe = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            probe.bind(("", port))
        except OSError:
            probe.close()
            continue
        held.enter_context(probe)
        return port
    raise PaiJupyterError(
        "no-free-port",
        f"Ports {_FIRST} to {last} of this machine are all in use.",
        "Stop a job, or ask for fewer ports.",
        409,
    )


def _ephemeral_start() -> int:
    try:
        return int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _LAST + 1
