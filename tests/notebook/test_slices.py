"""A script of cells gives what running all cells gives (P12, P13, P20), for notebooks of every construct."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from paijupyter.notebook.exporting import Wanted, export
from paijupyter.notebook.reading import Notebook, NotebookCell

HERE = Path(__file__).parent


def small_notebooks() -> list[tuple[str, list[str], list[int]]]:
    """Read name, cells and the numbers of those that are needed."""
    found = []
    for block in (HERE / "small_notebooks.txt").read_text("utf-8").split("\n=== ")[1:]:
        head, _, body = block.partition("\n")
        name, _, needed = head.rpartition(": ")
        found.append((name, body.rstrip("\n").split("\n---\n"), [int(word) for word in needed.split()]))
    return found


SMALL = small_notebooks()


def notebook(*cells: str) -> Notebook:
    made = (NotebookCell(number, "code", source) for number, source in enumerate(cells, 1))
    return Notebook(Path("small.ipynb"), tuple(made))


def beside(folder: Path) -> Path:
    """Make the folder of a notebook, with the files that some of them use."""
    (folder / "lib").mkdir(parents=True)
    trains = "def train(m):\n    m['n'] = m.get('n', 0) + 1\n    return m['n']\n"
    (folder / "helper.py").write_text(f"def helped(x):\n    return x + 10\n\n_hidden = 1\n{trains}")
    (folder / "lib" / "inlib.py").write_text("W = 'in lib'\n")
    (folder / "ran.py").write_text("from_ran = [3]\n")
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Run all of them, by IPython and by script, in one process that forks."""
    root, jobs = tmp_path_factory.mktemp("small"), []
    for place, (_, cells, _) in enumerate(SMALL):
        whole, part = beside(root / f"{place}-all"), beside(root / f"{place}-script")
        made = export(notebook(*cells), Wanted([str(len(cells))], folder=part))
        for name, content in {**made.files, **made.script_files("small")}.items():
            (part / name).parent.mkdir(parents=True, exist_ok=True)
            (part / name).write_bytes(content)
        jobs.append({"folder": str(whole), "cells": cells})
        jobs.append({"folder": str(part), "script": str(part / "small.py")})
    (root / "jobs.json").write_text(json.dumps(jobs))
    command = [sys.executable, str(HERE / "run_small.py"), str(root / "jobs.json")]
    subprocess.run(command, check=True, timeout=600)
    found: dict[str, dict[str, str]] = {}
    for place, (name, _, _) in enumerate(SMALL):
        found[name] = {}
        for how in ("all", "script"):
            folder = root / f"{place}-{how}"
            result = folder / "result"
            found[name][how] = result.read_text() if result.exists() else (folder / "output").read_text()
    return found


def test_there_are_enough_and_their_names_differ() -> None:
    assert len(SMALL) >= 60
    assert len({name for name, _, _ in SMALL}) == len(SMALL)


@pytest.mark.parametrize(("name", "cells", "needed"), SMALL, ids=[name for name, _, _ in SMALL])
def test_a_script_gives_what_the_notebook_gives(
    name: str, cells: list[str], needed: list[int], results: dict[str, dict[str, str]]
) -> None:
    ran = results[name]
    assert ran["script"] == ran["all"] != repr("nothing")


@pytest.mark.parametrize(("name", "cells", "needed"), SMALL, ids=[name for name, _, _ in SMALL])
def test_a_script_has_the_cells_that_are_needed_and_says_why(
    name: str, cells: list[str], needed: list[int], tmp_path: Path
) -> None:
    made = export(notebook(*cells), Wanted([str(len(cells))], folder=beside(tmp_path / "n")))
    assert [str(problem) for problem in made.problems if problem.severity == "error"] == []
    assert list(made.scripts[""].cells) == needed
    assert [each.number for each in made.told] == list(range(1, len(cells) + 1))
    assert all(each.why for each in made.told)
