"""A whole notebook as the job (O1): its command, its last cell, everything that is against it."""

from __future__ import annotations

import shlex

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from paijupyter.errors import UsageProblem
from paijupyter.notebook import whole
from paijupyter.notebook.reading import Notebook, parse_notebook
from paijupyter.protocol import short_name


def notebook(*sources: str, tags: tuple[str, ...] = (), **metadata: object) -> Notebook:
    cells = [new_code_cell(source, metadata={"tags": list(tags)}) for source in sources]
    made = new_notebook(cells=[new_markdown_cell("# x"), *cells], metadata=metadata)
    return parse_notebook(nbformat.writes(made).encode())


@given(
    st.text(min_size=1).filter(lambda text: "\0" not in text),
    st.text(max_size=5).filter(lambda t: "\0" not in t),
)
def test_the_command_is_read_back_by_a_shell_word_for_word(path: str, until: str) -> None:
    words = shlex.split(whole.command(path, until or None, 2.5))
    assert words[:4] == ["python", "$PAI_BOOT", "notebook", path]
    assert words[4:] == (["--until", until] if until else []) + ["--timeout", "2.5"]


def test_until_is_a_number_an_id_or_a_tag() -> None:
    there = notebook("a = 1", "b = 2", tags=("last",))
    whole.check_until(there, "3")
    whole.check_until(there, str(there.cells[1].id))
    whole.check_until(there, "last")
    for wrong in ("0", "4", "nope"):
        with pytest.raises(UsageProblem, match=f"Cell `{wrong}` does not exist") as caught:
            whole.check_until(there, wrong)
        assert "from 1 to 3, an id, or a tag: `last`" in caught.value.hint
    assert [cell.number for cell in whole.cells_until(there, "2")] == [2]
    assert [cell.number for cell in whole.cells_until(there, None)] == [2, 3]


def test_what_is_against_a_notebook() -> None:
    assert [each.code for each in whole.problems(notebook(), {})] == ["no-code"]
    asking = whole.problems(
        notebook("x = 1\ny = input('?')", "import getpass; getpass.getpass()", "a.input()"), {}
    )
    assert [(each.code, each.severity, each.cell, each.line) for each in asking] == [
        ("asks-for-input", "warning", 2, 2),
        ("asks-for-input", "warning", 3, 1),
    ]
    other = notebook("x <- 1", kernelspec={"name": "ir", "language": "R", "display_name": "R"})
    assert [each.code for each in whole.problems(other, {"lr": 1})] == ["parameters-language", "other-kernel"]


def test_five_thousand_cells_are_looked_at_at_once() -> None:
    there = notebook(*(f"x{n} = input" for n in range(5000)))
    assert whole.problems(there, {}) == []


@pytest.mark.parametrize(
    ("source", "job", "name"),
    [
        ("train.ipynb", "train-k3f2qd", "train-k3f2qd.ipynb"),
        ("My Work.ipynb", short_name("My Work") + "-k3f2qd", "My Work-k3f2qd.ipynb"),
        ("train.ipynb", "lr-k3f2qd", "train-lr-k3f2qd.ipynb"),
        ("train.ipynb", "odd", "train-odd.ipynb"),
    ],
)
def test_an_executed_notebook_never_has_the_name_of_its_source(source: str, job: str, name: str) -> None:
    assert whole.executed_name(source, job) == name
