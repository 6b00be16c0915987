"""The command line ``paijob``: the only room that prints.

Exit codes: :data:`paijupyter.client.options.EXIT_CODES`.
"""

from __future__ import annotations

from paijupyter.cli.main import main

__all__ = ["main"]
