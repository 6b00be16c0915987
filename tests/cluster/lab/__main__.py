"""What ``make cluster``, ``make cluster-stop`` and ``make test-cluster`` call."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict

from tests.cluster.lab import lifecycle, needs
from tests.cluster.lab.images import IMAGES
from tests.cluster.lab.places import PROGRAMS, LabError


def main() -> int:
    """Run one verb; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.lab", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("up", help="start, print the export line, run until Ctrl-C, stop")
    verbs.add_parser("start", help="start and return")
    verbs.add_parser("stop", help="stop, and leave nothing behind but the cache")
    verbs.add_parser("facts", help="print what a lab that runs has, as JSON")
    verbs.add_parser("image", help="make one more image").add_argument("name", choices=list(IMAGES))
    verbs.add_parser("with", help="run a command while a lab runs").add_argument("command", nargs="+")
    asked = parser.parse_args()
    os.environ["PATH"] = PROGRAMS
    try:
        return _VERBS[asked.verb](asked)
    except LabError as problem:
        print(problem, file=sys.stderr)
        return 1


def _up(_: argparse.Namespace) -> int:
    _start(_)
    print("Ctrl-C stops it.", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print("\nstopping …", file=sys.stderr, flush=True)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return _stop(_)


def _start(_: argparse.Namespace) -> int:
    print(f"export KUBECONFIG={lifecycle.start().kubeconfig}", flush=True)
    return 0


def _stop(_: argparse.Namespace) -> int:
    lifecycle.stop_all()
    return 0


def _facts(_: argparse.Namespace) -> int:
    found = lifecycle.facts()
    if not found:
        print("No lab runs here: make cluster", file=sys.stderr)
        return 1
    print(json.dumps(asdict(found), indent=1))
    return 0


def _image(asked: argparse.Namespace) -> int:
    print(lifecycle.add_image(asked.name))
    return 0


def _with(asked: argparse.Namespace) -> int:
    """Run a command; a lab that was not there before is stopped after it."""
    foreign = os.environ.get("PAIJUPYTER_TEST_KUBECONFIG")
    lacking = "" if foreign else needs.lacks()
    if lacking:
        print(f"no lab: {lacking}", file=sys.stderr)
    ours = not foreign and not lacking and not lifecycle.facts()
    try:
        if not foreign and not lacking:
            try:
                lifecycle.start()
            except LabError as problem:  # the tests are skipped, and say that there is no cluster
                print(f"no lab: {problem}", file=sys.stderr)
        return subprocess.run(asked.command).returncode
    finally:
        if ours:
            lifecycle.stop_all()


_VERBS = {"up": _up, "start": _start, "stop": _stop, "facts": _facts, "image": _image, "with": _with}

if __name__ == "__main__":
    sys.exit(main())
