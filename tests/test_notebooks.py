"""The example notebooks do what they say: executed as `make quickstart` does, in a copy of their folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("results", "__pycache__", ".ipynb_checkpoints")
    return Path(shutil.copytree(NOTEBOOKS, tmp_path / "notebooks", ignore=ignore))


def run(folder: Path, name: str) -> str:
    command = [sys.executable, str(folder / "run.py"), str(folder / name)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout


def test_quickstart_trains_for_real_and_brings_the_model_back(folder: Path) -> None:
    """P6, P7, P11, P12, P25, P28, P36, O2, O10, O19, O20: roles, parameters, a secret, metrics, a model."""
    printed = run(folder, "quickstart.ipynb")
    assert re.search(r"succeeded  digits-\w{6}", printed)
    assert "epoch 15/15" in printed
    assert "worker-0/model.npz" in printed
    found = re.search(r"accuracy (0\.\d+) on 450 images", printed)
    assert found and float(found[1]) > 0.9
    assert (folder / "results" / "worker-0" / "model.npz").is_file()
    original = (NOTEBOOKS / "quickstart.ipynb").read_text()
    assert (folder / "quickstart.ipynb").read_text() == original


def test_hello_world_runs_its_shell_lines(folder: Path) -> None:
    """O5, O6, O19: comments, a continuation, a parameter in the command."""
    printed = run(folder, "hello-world.ipynb")
    assert "wrote points.txt" in printed
    assert "step 200/200" in printed
    assert re.search(r"succeeded  hello-\w{6}", printed)


def test_a_paddle_cell_submits_itself(folder: Path) -> None:
    """P12, P19, P20: dist_train in a cell, which is the entry point; the results come back."""
    printed = run(folder, "paddle.ipynb")
    assert "trainer-1  trainer 1 of 2: 500 points" in printed
    assert "2 trainers together: y = 3.0 x + 1.0" in printed


def test_one_notebook_with_two_learning_rates_side_by_side(folder: Path) -> None:
    """O1: a notebook as the job; its executed copies come back beside it, and a report shows them."""
    printed = run(folder, "side-by-side.ipynb")
    assert len(re.findall(r"succeeded  learning-rate-\w{6}", printed)) == 2
    assert "lr: 0.02 → 0.3" in printed and "made of the same" not in printed
    beside = sorted(folder.glob("learning-rate-??????.ipynb"))
    assert len(beside) == 2
    assert "injected-parameters" in beside[0].read_text()
    report = (folder / "results" / "learning-rates.ipynb").read_text()
    assert "attachment:1.svg" in report and "attachment:2.svg" in report
    original = (NOTEBOOKS / "learning-rate.ipynb").read_text()
    assert (folder / "learning-rate.ipynb").read_text() == original


def test_a_sweep_over_the_digits_training(folder: Path) -> None:
    """T3, 2.2: a grid of real trainings, at most two at once; the table, the best one, files of each."""
    printed = run(folder, "sweep.ipynb")
    assert "4 experiments" in printed and "4 succeeded" in printed
    found = re.search(r"best: experiment (\d), .*'hidden': 32.*, accuracy (0\.\d+)", printed)
    assert found and float(found[2]) > 0.85
    assert "<Plot accuracy by hidden>" in printed and "<Plot course of accuracy>" in printed
    home = folder / "results" / "digits"
    assert sorted(path.name for path in home.glob("*.log")) == ["1.log", "2.log", "3.log", "4.log"]
    assert "learning_rate: 0.5" in (home / f"{found[1]}.yaml").read_text()


def test_a_cell_takes_along_what_it_needs(folder: Path) -> None:
    """P12, P13, P20: one cell as the entry point, explained; an object of the kernel goes with it."""
    printed = run(folder, "cells.ipynb")
    assert re.search(r"\+ cell \d+ +binds `(?:sigmoid|accuracy)`", printed)
    assert re.search(r"- cell \d+ +binds and changes nothing that is used", printed)
    assert "step 30/30 accuracy=" in printed
    assert re.search(r"succeeded  cells-\w{6}", printed)
    assert "carried (200, 2) float64" in printed


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
