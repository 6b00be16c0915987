"""Notebooks of every kind are read, or one sentence says with its cell why not (issue: bad input)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import UsageProblem
from paijupyter.notebook.reading import parse_notebook, read_notebook


def made(*cells: dict[str, Any], **more: Any) -> bytes:
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **more}
    ).encode()


def test_cells_have_number_id_tags_source_and_count() -> None:
    notebook = parse_notebook(
        made(
            {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Title\n", "text"]},
            {
                "cell_type": "code",
                "id": "b",
                "metadata": {"tags": ["pai:export", "mine"]},
                "source": "x = 1",
                "execution_count": 7,
            },
            {"cell_type": "code", "metadata": {}, "source": "#| pai export role=ps\ny = 2"},
            {"cell_type": "code", "metadata": {}, "source": " \n"},
            metadata={"kernelspec": {"name": "python3", "language": "python"}},
        )
    )
    first, second, third, empty = notebook.cells
    assert first.source == "# Title\ntext" and not first.is_code
    assert (second.number, second.id, second.executed) == (2, "b", 7)
    assert second.tags == ("pai:export", "mine")
    assert third.tags == ("pai:export", "pai:role=ps") and third.id is None
    assert not empty.is_code and [cell.number for cell in notebook.code] == [2, 3]
    assert notebook.language == "python" and notebook.kernel == "python3"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_old_formats_are_upgraded(version: int, tmp_path: Path) -> None:
    code = {"cell_type": "code", "code" if version == 1 else "input": "x = 1\n", "language": "python"}
    code.update({"outputs": [], "prompt_number": 2, "collapsed": False, "metadata": {}})
    data: dict[str, Any] = {"nbformat": version, "nbformat_minor": 0, "metadata": {"name": "old"}}
    data.update({"cells": [code]} if version == 1 else {"worksheets": [{"cells": [code], "metadata": {}}]})
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps(data))
    (cell,) = read_notebook(path).cells
    assert cell.source.strip() == "x = 1" and cell.number == 1


def test_what_nbformat_writes_is_read() -> None:
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("a = 1\nb = 2", execution_count=3)])
    (cell,) = parse_notebook(nbformat.writes(written).encode()).cells
    assert (cell.source, cell.executed) == ("a = 1\nb = 2", 3)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "Line 1: `a.ipynb` is not valid JSON"),
        (b'{"cells": [\n<<<<<<< HEAD\n', "merge conflict"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b"[1]", "without cells"),
        (b"{}", "without cells"),
        (b'{"nbformat": 9, "cells": []}', "format 9; this version reads formats up to 4"),
        (b'{"nbformat": "x", "cells": []}', "format `x`"),
        (made({"cell_type": "code", "source": ""}, {"source": 3}), "Cell 2 of `a.ipynb` is no cell"),
        (made({"cell_type": "code", "source": {"a": 1}}), "Cell 1 of `a.ipynb` has a source that is no text"),
        (b'{"nbformat": 3, "worksheets": 5}', "format 3 cannot be upgraded"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_notebook_is_one_sentence(content: bytes, said: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        parse_notebook(content, Path("a.ipynb"))
    assert said in str(caught.value) and len(caught.value.problems) == 1


def test_a_notebook_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="does not exist"):
        read_notebook(tmp_path / "no.ipynb")
    with pytest.raises(UsageProblem, match="cannot be read"):
        read_notebook(tmp_path)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
_KEYS = st.sampled_from(["cell_type", "source", "metadata", "id", "execution_count", "tags"])


@given(st.lists(st.dictionaries(_KEYS, _JSON, max_size=6) | _JSON, max_size=4), _JSON, _JSON)
def test_any_json_is_read_or_refused(cells: list[Any], metadata: Any, minor: Any) -> None:
    content = json.dumps(
        {"nbformat": 4, "nbformat_minor": minor, "metadata": metadata, "cells": cells}
    ).encode()
    try:
        notebook = parse_notebook(content)
    except UsageProblem:
        return
    assert [cell.number for cell in notebook.cells] == list(range(1, len(cells) + 1))
