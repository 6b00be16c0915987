"""Notebooks travel normalised: running a cell changes no hash."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.package.notebooks import normalise


def notebook(**cell: Any) -> dict[str, Any]:
    code = {
        "cell_type": "code",
        "id": "c1",
        "metadata": {"tags": ["parameters"]},
        "source": ["x = 1"],
        "outputs": [],
        "execution_count": None,
    }
    return {
        "cells": [
            code | cell,
            {"cell_type": "markdown", "metadata": {}, "source": "# é", "attachments": {"a": {}}},
        ],
        "metadata": {
            "kernelspec": {"name": "python3"},
            "language_info": {"name": "python", "version": "3.11.7"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def bytes_of(data: object, **options: Any) -> bytes:
    return json.dumps(data, **options).encode()


def test_running_a_cell_changes_nothing() -> None:
    before = normalise(bytes_of(notebook()))
    ran = notebook(
        outputs=[{"output_type": "stream", "name": "stdout", "text": "secret"}],
        execution_count=7,
        metadata={
            "tags": ["parameters"],
            "execution": {"iopub.status.busy": "2026-11-29T19:41:31Z"},
            "ExecuteTime": {"start_time": "x"},
            "collapsed": True,
            "scrolled": False,
            "trusted": True,
            "jupyter": {"outputs_hidden": True},
            "papermill": {"duration": 1},
        },
    )
    ran["metadata"] |= {"widgets": {"state": {"value": "secret"}}, "papermill": {}, "signature": "x"}
    ran["metadata"]["language_info"]["version"] = "3.12.1"
    after = normalise(bytes_of(ran, indent=4))
    assert after == before
    assert b"secret" not in after


def test_what_a_person_wrote_stays() -> None:
    found = json.loads(
        normalise(bytes_of(notebook(metadata={"jupyter": {"source_hidden": True}, "mine": 1}))) or b""
    )
    assert found["cells"][0]["source"] == ["x = 1"]
    assert found["cells"][0]["metadata"] == {"jupyter": {"source_hidden": True}, "mine": 1}
    assert found["cells"][1] == {
        "cell_type": "markdown",
        "metadata": {},
        "source": "# é",
        "attachments": {"a": {}},
    }
    assert found["metadata"]["kernelspec"] == {"name": "python3"}


def test_an_edit_changes_the_bytes() -> None:
    assert normalise(bytes_of(notebook())) != normalise(bytes_of(notebook(source=["x = 2"])))


def test_format_3() -> None:
    cell = {
        "cell_type": "code",
        "input": "1",
        "outputs": [{"text": "secret"}],
        "prompt_number": 3,
        "metadata": {},
    }
    old = {"worksheets": [{"cells": [cell]}], "metadata": {}, "nbformat": 3}
    found = json.loads(normalise(bytes_of(old)) or b"")
    assert found["worksheets"][0]["cells"][0] == {
        "cell_type": "code",
        "input": "1",
        "outputs": [],
        "metadata": {},
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"cells": 1}',
        b'{"cells": [1]}',
        b'{"worksheets": [1]}',
        b'{"nbformat": 4}',
        b"\xff\xfe",
        b"<<<<<<< HEAD",
        b'{"cells": [], "x": ' + b"[" * 100_000,
        b'{"cells": [], "x": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_notebook(data: bytes) -> None:
    assert normalise(data) is None


def test_byte_order_mark_and_lone_surrogate() -> None:
    data = b"\xef\xbb\xbf" + bytes_of(notebook(source=["\ud800"]))
    normal = normalise(data)
    assert normal is not None
    assert json.loads(normal)["cells"][0]["source"] == ["\ud800"]


json_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=8,
)


@given(
    metadata=json_value,
    cells=st.lists(
        st.fixed_dictionaries(
            {
                "cell_type": st.sampled_from(["code", "markdown", "raw"]),
                "metadata": json_value,
                "source": json_value,
            },
            optional={"outputs": json_value, "execution_count": json_value},
        ),
        max_size=3,
    ),
)
def test_is_deterministic_and_idempotent(metadata: Any, cells: list[Any]) -> None:
    data = {"cells": cells, "metadata": metadata, "nbformat": 4}
    normal = normalise(bytes_of(data))
    assert normal is not None
    assert normalise(normal) == normal
    turned = {"nbformat": 4, "metadata": metadata, "cells": [dict(reversed(cell.items())) for cell in cells]}
    assert normalise(bytes_of(turned, indent=2)) == normal
