"""The Jupyter extension in front of the engine: it authenticates, authorises and passes on, nothing else."""

from __future__ import annotations

from paijupyter.server.extension import PaiJupyterExtension

__all__ = ["PaiJupyterExtension"]
