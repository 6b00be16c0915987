"""The client of the job server: what notebooks, the command line and scripts use.

``JobsClient.connect()`` finds the engine of this user and host, or starts it. Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient as JobsClient
    from paijupyter.client.group import Group as Group
    from paijupyter.client.job import Job as Job

__all__ = ["Group", "Job", "JobsClient"]

_HOMES = {
    "Group": "paijupyter.client.group",
    "Job": "paijupyter.client.job",
    "JobsClient": "paijupyter.client.client",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'paijupyter.client' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
