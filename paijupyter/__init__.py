"""Train for real from a notebook: package its folder, submit a distributed job, watch it, get results back.

Public names load lazily: ``%load_ext paijupyter`` and the start of a Jupyter server stay cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paijupyter._version import __version__

if TYPE_CHECKING:
    from paijupyter.client import Group as Group
    from paijupyter.client import Job as Job
    from paijupyter.client import JobsClient as JobsClient
    from paijupyter.errors import PaiJupyterError as PaiJupyterError

__all__ = ["Group", "Job", "JobsClient", "PaiJupyterError", "__version__", "load_ipython_extension"]

_HOMES = {
    "Group": "paijupyter.client",
    "Job": "paijupyter.client",
    "JobsClient": "paijupyter.client",
    "PaiJupyterError": "paijupyter.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'paijupyter' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%paijob`` and ``%%paijob`` (called by ``%load_ext paijupyter``)."""
    from paijupyter.magics import register

    register(ipython)


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Name the server extension (called by jupyter-server)."""
    from paijupyter.server import PaiJupyterExtension

    return [{"module": "paijupyter.server", "app": PaiJupyterExtension}]
