"""Run the benches and write the table into docs/benchmarks.md. Usage: python -m tests.bench [NAME …]."""

from __future__ import annotations

import platform
import sys
from importlib import import_module
from pathlib import Path

from tests.bench.rows import Row, table

BENCHES = (
    "load_ext",
    "server",
    "submit",
    "package",
    "install",
    "log",
    "logview",
    "jobs",
    "sweep",
    "notebook",
    "cells",
    "fuzz",
    "kubernetes",
    "following",
    "tasks",
    "openpai",
    "front",
)
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
START, END = "<!-- table -->", "<!-- end of table -->"


def main(names: list[str]) -> None:
    """Run the named benches, or all; only a full run rewrites the page."""
    rows: list[Row] = []
    for name in names or BENCHES:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        rows += import_module(f"tests.bench.bench_{name}").run()
    text = table(rows)
    print(text)
    if not names:
        head, rest = PAGE.read_text().split(START)
        tail = rest.split(END)[1]
        machine = f"Python {platform.python_version()}, {platform.system()}, medians of one run."
        PAGE.write_text(f"{head}{START}\n{machine}\n\n{text}\n{END}{tail}")


if __name__ == "__main__":
    main(sys.argv[1:])
