"""The command line ``paijob``: the only room that prints.

Exit codes: 0 success; 1 the job failed; 2 usage (an option, a name, a document); 3 the job was stopped;
4 the engine or job server has a problem; 130 interrupted (a job goes on); 141 the reader of the output left.
"""

from __future__ import annotations

from paijupyter.cli.main import main

__all__ = ["main"]
