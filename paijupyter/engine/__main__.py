"""Start the engine: ``python -m paijupyter.engine [--detach]``.

With ``--detach`` the process leaves its parent at once, before anything heavy is loaded, so that no kernel
keeps a zombie of it. What became of the start is told in one line on stdout (see ``announce`` in process.py).
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the engine until it is idle, told to end, or handed over; return the exit status."""
    if "--detach" in sys.argv[1:] and os.fork() > 0:
        os._exit(0)
    from paijupyter.engine.process import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
