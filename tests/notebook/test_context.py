"""Which notebook and which cell a submission comes from (jupyter.md 9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paijupyter.notebook.context import Cell, cell_of, notebook_path, source_hash


@pytest.mark.parametrize(
    ("environ", "names", "path"),
    [
        ({"JPY_SESSION_NAME": "/home/ann/a.ipynb"}, {}, "/home/ann/a.ipynb"),
        ({}, {"__vsc_ipynb_file__": "/home/ann/b.ipynb"}, "/home/ann/b.ipynb"),
        ({"JPY_SESSION_NAME": "RTC:lab/c.ipynb"}, {}, "lab/c.ipynb"),
        ({"PAIJUPYTER_NOTEBOOK": "/x.ipynb", "JPY_SESSION_NAME": "/y.ipynb"}, {}, "/x.ipynb"),
        ({"JPY_SESSION_NAME": "console-1"}, {}, None),
        ({}, {"__vsc_ipynb_file__": 3}, None),
        ({}, {}, None),
    ],
)
def test_the_path_of_the_notebook(
    environ: dict[str, str], names: dict[str, object], path: str | None
) -> None:
    assert notebook_path(names, environ) == (Path(path) if path else None)


def test_the_cell_and_its_place_in_the_saved_notebook(tmp_path: Path) -> None:
    notebook = tmp_path / "n.ipynb"
    notebook.write_text(json.dumps({"cells": [{"id": "a"}, {}, {"id": "b"}]}))
    request = {"metadata": {"cellId": "b"}}
    assert cell_of(request, notebook) == Cell("b", 3)
    assert cell_of(request, None) == Cell("b", None)
    assert cell_of({"metadata": {"cellId": "new"}}, notebook) == Cell("new", None)
    assert cell_of({}, notebook) == Cell()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"cells": null}', '{"cells": [3]}'])
def test_a_file_that_is_no_notebook_gives_no_number(content: str, tmp_path: Path) -> None:
    notebook = tmp_path / "n.ipynb"
    notebook.write_text(content)
    assert cell_of({"metadata": {"cellId": "b"}}, notebook) == Cell("b", None)


def test_the_hash_tells_apart_what_would_be_submitted() -> None:
    assert source_hash("a", "bc") == source_hash("a", "bc")
    assert source_hash("a", "bc") != source_hash("ab", "c")
