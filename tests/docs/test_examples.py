"""Every example of the guide is executed: terminal lines by bash, cells in a kernel, files as captioned."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
_BLOCK = re.compile(r"^```(?P<kind>\S+)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def keyring(ring: Path) -> None:
    """Give the examples a keyring, as a desktop has one."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    # Examples run with this interpreter's paijob, in a folder that has nothing else in it.
    cells = []
    text = page.read_text()
    for block in _BLOCK.finditer(text):
        kind, body = block["kind"], block["body"]
        if kind == "{code-block}":
            _write_file(body, tmp_path)
        elif kind == "console":
            for command, expected in _commands(body):
                _check(command, expected, tmp_path)
        elif kind == "ipython":
            cells.append(body)
    if cells:
        _run_cells(cells, tmp_path)


def test_the_guide_has_examples() -> None:
    assert len(PAGES) >= 5
    assert all("```console" in page.read_text() for page in PAGES)


def _write_file(body: str, folder: Path) -> None:
    caption, _, content = body.partition("\n\n")
    name = caption.removeprefix(":caption: ").strip()
    (folder / name).write_text(content)


def _commands(body: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def _check(command: str, expected: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
    )
    if not expected:
        assert done.returncode == 0, done.stdout
        return
    printed = done.stdout if done.stdout.endswith("\n") else f"{done.stdout}\n"
    assert _pattern(expected).fullmatch(printed), f"{command}\n{done.stdout}\nis not\n{expected}"


def _pattern(expected: str) -> re.Pattern[str]:
    """``…`` stands for anything in a line; a line that is only ``…`` for any lines, or none."""
    lines = []
    for line in expected.splitlines():
        if line == "…":
            lines.append(r"(?:.*\n)*")
        else:
            lines.append(re.escape(line).replace("…", r"[^\n]*") + r"\n")
    return re.compile("".join(lines))


def _run_cells(cells: list[str], folder: Path) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source.rstrip()) for source in cells]
    )
    NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(folder)}}).execute()
