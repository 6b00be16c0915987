"""Parameters of a notebook by papermill's convention (O1, O19): types, values that fit, unknown names."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from papermill.parameterize import parameterize_notebook

from paijupyter.errors import UsageProblem
from paijupyter.notebook.declared import Declared, declared, fit, fitted, problems_of
from paijupyter.notebook.reading import Notebook, parse_notebook
from paijupyter.runtime.notebook.injecting import inject, literal

CELL = """\
# what can be set
lr: float = 0.1  # step size
epochs = 3
name: str = "adam"
flag = True
layers: list[int] = [1, 2]
options: dict = {"a": 1}
seed: int | None = None
late: Optional[float] = None
path = some(thing)
"""


def notebook(*cells: tuple[str, list[str]]) -> Notebook:
    made = [new_code_cell(source, metadata={"tags": tags}) for source, tags in cells]
    return parse_notebook(nbformat.writes(new_notebook(cells=[new_markdown_cell("# x"), *made])).encode())


def test_types_come_from_annotations_else_from_defaults() -> None:
    found = {each.name: each for each in declared(notebook((CELL, ["parameters"])))}
    types = {name: (each.type, each.optional) for name, each in found.items()}
    assert types == {
        "lr": ("float", False),
        "epochs": ("int", False),
        "name": ("str", False),
        "flag": ("bool", False),
        "layers": ("list", False),
        "options": ("dict", False),
        "seed": ("int", True),
        "late": ("float", True),
        "path": ("", True),
    }
    assert (found["lr"].help, found["lr"].default, found["lr"].cell, found["lr"].line) == (
        "step size",
        0.1,
        2,
        2,
    )
    assert found["path"].source == "some(thing)"
    assert json.dumps([each.to_json() for each in found.values()])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("float", "1", 1.0),
        ("float", 2, 2.0),
        ("int", "1e3", 1000),
        ("int", 5.0, 5),
        ("str", "007", "007"),
        ("str", "1e3", "1e3"),
        ("str", '"quoted"', "quoted"),
        ("str", 5, "5"),
        ("bool", "True", True),
        ("bool", "false", False),
        ("list", "[1, 2]", [1, 2]),
        ("dict", '{"a": null}', {"a": None}),
        ("", "text", "text"),
        ("", "3", 3),
    ],
)
def test_values_that_fit(kind: str, value: Any, expected: Any) -> None:
    found = fit(Declared("x", kind), value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("float", "fast"),
        ("float", True),
        ("int", "1.5"),
        ("int", float("inf")),
        ("bool", "yes"),
        ("bool", 1),
        ("list", "1,2"),
        ("dict", "[]"),
        ("int", None),
    ],
)
def test_a_value_that_does_not_fit_names_parameter_and_cell(kind: str, value: Any) -> None:
    with pytest.raises(UsageProblem, match="Parameter `x` of cell 4 is an? " + kind) as caught:
        fit(Declared("x", kind, cell=4, source="1"), value)
    (problem,) = caught.value.problems
    assert (problem.path, problem.cell, problem.hint) == ("/parameters/x", 4, "Its default is `1`.")


@given(st.sampled_from(["int", "float", "str", "bool", "list", "dict", ""]), st.text(max_size=20))
def test_what_fits_once_fits_again(kind: str, text: str) -> None:
    parameter = Declared("x", kind, optional=not kind)
    try:
        found = fit(parameter, text)
    except UsageProblem:
        return
    if not isinstance(found, str):
        assert fit(parameter, found) == found


def test_all_misfits_are_told_at_once() -> None:
    with pytest.raises(UsageProblem) as caught:
        fitted(notebook((CELL, ["parameters"])), {"lr": "x", "epochs": "y", "other": "z"})
    assert [each.path for each in caught.value.problems] == ["/parameters/lr", "/parameters/epochs"]


def test_names_that_are_not_declared_are_warnings_as_with_papermill() -> None:
    there = notebook((CELL, ["parameters"]))
    (problem,) = problems_of(there, {"epoch": 1})
    assert (problem.severity, problem.code, problem.cell) == ("warning", "unknown-parameter", 2)
    assert problem.hint == "`epochs` is near."
    assert [each.code for each in problems_of(there, {"a-b": 1})] == ["parameter-name"]
    assert [each.code for each in problems_of(notebook(("x = 1", [])), {"x": 1})] == ["no-parameters-cell"]
    assert problems_of(notebook(("x = 1", ["injected-parameters"])), {"x": 1}) == []


@pytest.mark.parametrize("source", ["x = = 1", "%matplotlib inline\nx = 1", "", "\0"])
def test_a_cell_that_is_no_python_declares_nothing(source: str) -> None:
    assert declared(notebook((source, ["parameters"]))) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_a_value_is_written_as_what_it_is_and_never_as_code(value: Any) -> None:
    assert eval(literal(value), {"float": float}) == value


@given(
    st.lists(st.sampled_from(["", "parameters", "injected-parameters", "other"]), max_size=6),
    st.dictionaries(st.sampled_from(["lr", "n", "s"]), st.integers() | st.text(max_size=5), min_size=1),
)
def test_the_cell_goes_where_papermill_puts_it(tags: list[str], values: dict[str, Any]) -> None:
    def made() -> Any:
        cells = [
            new_code_cell(f"# {n}", metadata={"tags": [tag] if tag else []}) for n, tag in enumerate(tags)
        ]
        kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "x"}}
        return new_notebook(cells=cells, metadata={**kernel, "papermill": {}})

    ours, theirs = made(), parameterize_notebook(made(), values)
    inject(ours.cells, values)
    assert [cell["metadata"]["tags"] for cell in ours.cells] == [
        cell.metadata["tags"] for cell in theirs.cells
    ]
