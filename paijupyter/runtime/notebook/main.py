"""The command line: which notebook, up to which cell, and what to do where there is no Jupyter."""

import argparse
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

NEEDS = ("nbclient", "ipykernel")
USAGE = 2
_TAKES = "Give the job `install: if-missing`, or an image or interpreter that has them."


def main(argv: "List[str]") -> int:
    """Run the notebook that the words after ``argv[1]`` name; return the exit status."""
    options = _parser().parse_args(argv[2:])
    lacking = _lacking()
    if lacking:
        return _without_jupyter(options.script, lacking)
    from .run import run

    return run(options.notebook, options.until, options.timeout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="notebook", description="Run a notebook from top to bottom.")
    parser.add_argument("notebook")
    parser.add_argument("--until", metavar="CELL", help="last cell: its number, id or tag")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, help="longest time of one cell")
    parser.add_argument("--script", metavar="FILE", help="what to run where there is no Jupyter")
    return parser


def _lacking() -> "List[str]":
    from importlib.util import find_spec

    return [name for name in NEEDS if find_spec(name) is None]


def _without_jupyter(script: "Optional[str]", lacking: "List[str]") -> int:
    names = " and ".join(lacking)
    if script and os.path.isfile(script):
        say("This interpreter has no %s, so the exported script runs instead: %s" % (names, script))
        sys.stdout.flush()
        runner = os.path.join(os.path.dirname(script), "paicells.py")
        words = [runner, script] if os.path.isfile(runner) else [script]
        os.execv(sys.executable, [sys.executable, *words])
    say("Notebook cannot run: this interpreter has no %s, and nothing is installed. %s" % (names, _TAKES))
    return USAGE


def say(text: str) -> None:
    """Say something of ours in the task's log."""
    for line in text.splitlines():
        print("[paijupyter] " + line)
    sys.stdout.flush()
