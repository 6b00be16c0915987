"""Exporting a notebook of 500 cells, beside nbconvert's script of the same notebook."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import nbformat

from paijupyter.notebook.exporting import Wanted, export
from paijupyter.notebook.reading import read_notebook
from paijupyter.notebook.syntax import plain
from tests.bench.rows import Row, interleaved

CELLS = 500


def run(repeats: int = 5) -> list[Row]:
    """Measure (ms) from the file to the script, with nothing kept of the time before."""
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "large.ipynb"
        _make(path)

        def ours() -> float:
            plain.cache_clear()
            start = time.perf_counter()
            export(read_notebook(path), Wanted([str(CELLS)], folder=path.parent))
            return (time.perf_counter() - start) * 1000

        def peer() -> float:
            from nbconvert.exporters import PythonExporter

            start = time.perf_counter()
            PythonExporter().from_filename(str(path))
            return (time.perf_counter() - start) * 1000

        mine, theirs = interleaved(ours, peer, repeats)
    what = f"export of a notebook of {CELLS} cells"
    return [Row(what, mine, theirs, "nbconvert --to script", "ms", "< 300 ms", mine < 300)]


def _make(path: Path) -> None:
    """Write a notebook as people have them: imports, functions, tables that change, looks at them, magics."""
    kinds = [
        "import math\nimport json as j{n}\n%matplotlib inline",
        "def f{n}(x, k=2):\n    total = 0\n    for i in range(k):\n        total += math.sqrt(x + i)\n"
        "    return total",
        "rows{n} = [f{m}(i) for i in range(10)]\nrows{n}.append({n})",
        "print(len(rows{p}), max(rows{p}))\nrows{p}[:3]",
        "!echo {{rows{q}[0]}} > out{n}.txt\nsummary = {{'n': {n}, 'sum': sum(rows{q})}}",
    ]
    cells = []
    for n in range(CELLS):
        base = n - n % 5
        cells.append(kinds[n % 5].format(n=n, m=base + 1, p=base + 2, q=base + 2))
    made = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=made), path)
