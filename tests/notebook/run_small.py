"""Runs small notebooks, each in a child of its own: all cells by IPython, or a script by its runner."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any


def made_shell() -> Any:
    """Make the shell once, before all children."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    return InteractiveShell.instance(config=config)


def by_ipython(shell: Any, folder: Path, cells: list[str]) -> None:
    sys.path.insert(0, "")  # as in a kernel
    for source in cells:
        shell.run_cell(source, store_history=True)
    (folder / "result").write_text(repr(shell.user_ns.get("result", "nothing")))


def by_script(folder: Path, script: str) -> None:
    sys.path.insert(0, str(Path(script).parent))
    import paicells

    if paicells.main(["paicells.py", script]) == 0:
        (folder / "result").write_text(repr(sys.modules["__main__"].__dict__.get("result", "nothing")))


def main(jobs: str) -> None:
    shell = made_shell()
    for library in ("numpy", "pandas"):  # Once, as several notebooks use them.
        importlib.import_module(library)
    for job in json.loads(Path(jobs).read_text()):
        child = os.fork()
        if not child:
            os.chdir(job["folder"])
            code = 1
            try:
                output = os.open("output", os.O_WRONLY | os.O_CREAT)
                os.dup2(output, 1)
                os.dup2(output, 2)
                folder = Path(job["folder"])
                by_ipython(shell, folder, job["cells"]) if "cells" in job else by_script(
                    folder, job["script"]
                )
                code = 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1])
