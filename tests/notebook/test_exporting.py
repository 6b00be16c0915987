"""Choice of cells, rules for magics, the report, and every kind of bad input: each gets one clear message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.errors import UsageProblem
from paijupyter.notebook.commands import expanded, installs
from paijupyter.notebook.exporting import Export, Wanted, export, told_lines
from paijupyter.notebook.reading import Notebook, NotebookCell
from paijupyter.notebook.session import Run, Session, cells_of
from paijupyter.notebook.translating import translate


def made(*cells: str | tuple[str, str], counts: list[int | None] | None = None) -> Notebook:
    """Make a notebook; a cell may come with tags, separated by spaces."""
    found = []
    for number, each in enumerate(cells, 1):
        source, tags = each if isinstance(each, tuple) else (each, "")
        count = counts[number - 1] if counts else None
        found.append(NotebookCell(number, "code", source, f"id{number}", tuple(tags.split()), count))
    return Notebook(Path("n.ipynb"), tuple(found))


def exported(notebook: Notebook, *cells: str, **more: object) -> Export:
    return export(notebook, Wanted(cells or [str(len(notebook.cells))], **more))  # type: ignore[arg-type]


def errors(found: Export) -> list[str]:
    return [str(problem) for problem in found.problems if problem.severity == "error"]


def in_it(found: Export, role: str = "") -> list[int]:
    return list(found.scripts[role].cells)


# Choice


def test_cells_are_chosen_by_tag_number_range_id_and_all() -> None:
    notebook = made(
        "a = 1", ("b = 2", "pai:export"), "c = 3", ("d = 4", "pai:skip"), "%%paijob\nx", "%paijob list"
    )
    assert in_it(exported(notebook, "pai:export")) == [2]
    assert in_it(exported(notebook, "1,3")) == [1, 3]
    assert in_it(exported(notebook, "1-3")) == [1, 2, 3]
    assert in_it(exported(notebook, "id3")) == [3]
    assert in_it(exported(notebook, "all")) == [1, 2, 3]


@pytest.mark.parametrize("word", ["pai:exprt", "9", "0", "7-9"])
def test_what_names_no_cell_is_said_with_what_there_is(word: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        exported(made("a = 1", ("b = 2", "pai:export")), word)
    assert caught.value.hint


def test_roles_have_their_own_scripts() -> None:
    """P25, P28: parameter server and workers from one notebook."""
    notebook = made(
        "import os\nshared = 1",
        ("serve = shared", "pai:role=ps"),
        ("train = shared", "pai:role=worker"),
        ("end = 1", "pai:export"),
    )
    found = exported(notebook, "pai:export", roles=("ps", "worker"))
    assert in_it(found, "ps") == [1, 2, 4] and in_it(found, "worker") == [1, 3, 4]
    assert found.command("ps", ".paijob/", "n") == "python .paijob/paicells.py .paijob/n-ps.py"
    assert set(found.script_files("n")) == {"n-ps.py", "n-worker.py", "paicells.py"}
    assert "unknown-role" in {each.code for each in exported(notebook, "all", roles=("worker",)).problems}


def test_a_skipped_cell_is_left_out_and_its_names_are_asked_for() -> None:
    found = exported(made(("x = 1", "pai:skip"), "print(x)"))
    assert errors(found) == [
        "cell 2, line 1: Name `x` is used here, and cell 1, which binds it, is tagged `pai:skip`. "
        "Remove the tag, or bring the kernel's object along: --carry x"
    ]


def test_each_cell_is_explained() -> None:
    found = exported(made("a = []", "b = 1", "a.append(2)", "%timeit 1", "print(a)", "after = 1"), "5")
    assert told_lines(found.told) == [
        "+ cell 1: binds `a`, which cell 5 uses (and 1 more)",
        "- cell 2: nothing uses `b` from it",
        "+ cell 3: calls `a.append` (line 1), and so may change `a` of cell 5",
        "- cell 4: `%timeit` is left out: it only measures",
        "+ cell 5: chosen",
        "- cell 6: comes after the chosen cells",
    ]


# Parameters and carried objects


def test_parameters_are_bound_before_the_cells_and_again_after_the_one_that_has_defaults() -> None:
    notebook = made(("lr = 0.1\nn = 2", "parameters"), "steps = n * 2", "print(lr, steps)")
    text = exported(notebook, "3", parameters=("lr", "other")).scripts[""].text
    assert text.index("paicells.parameters()\n") < text.index("[cell 1]")
    assert "# %% paijob\npaicells.parameters('lr')\n# %% n.ipynb[cell 2]" in text


def test_a_chosen_cell_that_overwrites_a_parameter_is_warned_of() -> None:
    found = exported(made("lr = 1\nprint(lr)"), parameters=("lr",))
    assert [each.code for each in found.problems] == ["parameter-overwritten"]


def test_a_carried_object_needs_no_cell_that_makes_it() -> None:
    found = exported(made("big = sorted(range(9))", "print(big)"), carried=("big",))
    assert in_it(found) == [2] and "paicells.carried()" in found.scripts[""].text


# Magics


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("!ls $HOME {d}", "paicells.shell('ls $HOME ', d)\n"),
        ("x = !ls", "x = paicells.lines('ls')\n"),
        ("%cd {d}/sub", "paicells.cd(d, '/sub')\n"),
        ("%env A=b c", "paicells.env('A', 'b c')\n"),
        ("%pwd", "paicells.pwd()\n"),
        ("%cd -", "paicells.cd('-')\n"),
        ("%cd -q {d}", "paicells.cd(d)\n"),
        ("%pushd {d}", "paicells.pushd(d)\n"),
        ("%popd", "paicells.popd()\n"),
        ("cd {d}", "paicells.cd(d)\n"),
        ("d = 1", "d = 1"),
        ("%run other.py 1", "paicells.run_file('other.py', '1')\n"),
        ("%time y = f(1)", "y = f(1)\n"),
        ("%%time\ny = 1", "\ny = 1\n"),
        ("%matplotlib inline\ny = 1", "None\ny = 1\n"),
        ("%timeit -n 2 \\\n  f(1)\ny = 2", "None\n\ny = 2\n"),
        ("get_ipython().system(\n  'ls'\n)", "(paicells.shell('ls')\n\n)"),
        ("%%bash\nls", "paicells.program('bash', 'ls\\n', True)\n\n"),
        ("%%writefile -a log.txt\nx", "paicells.write('x\\n', True, 'log.txt')\n\n"),
        ("%%html\n<b>", "pass\n\n"),
        ("%%script false\nnever", "pass\n\n"),
    ],
)
def test_magics_become_python_line_for_line(source: str, text: str) -> None:
    found = translate(NotebookCell(1, "code", source), {"d", "f"})
    assert found.text == text and not found.problems


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("%nope", 1),
        ("a = 1\n%sql select 1", 2),
        ("%%R\nx <- 1", 1),
        ("x = %who_ls", 1),
        ("%run a.ipynb", 1),
        ("%pylab", 1),
    ],
)
def test_what_has_no_rule_is_refused_with_cell_and_line_where_it_is_needed(source: str, line: int) -> None:
    (said,) = errors(exported(made(source)))
    assert said.startswith(f"cell 1, line {line}: ") and "cannot be part of a script" in said
    assert errors(exported(made(source, "b = 1"))) == []


def test_installations_become_requirements_wherever_they_stand() -> None:
    """P13: what cells install is not known by names, so all of it is taken."""
    found = exported(
        made("%pip install -q numpy==1.26 'pandas>2'", "!pip install -r more.txt > /dev/null", "x = 1")
    )
    assert found.requirements == ["numpy==1.26", "pandas>2", "-r more.txt"]
    assert in_it(found) == [3]
    (said,) = errors(exported(made("%pip install {name}", "x = 1")))
    assert said.startswith("cell 1, line 1: ") and "requirements.txt" in said


@given(st.text(max_size=40))
def test_any_command_is_an_expression_or_is_left_alone(text: str) -> None:
    arguments = expanded(text, {"a", "b"})
    compile(f"f({arguments})", "x", "eval")
    installs(text)


# Bad input


def test_no_code_and_another_language() -> None:
    with pytest.raises(UsageProblem, match="has no code"):
        export(Notebook(Path("e.ipynb"), (NotebookCell(1, "markdown", "# T"),)), Wanted(["all"]))
    with pytest.raises(UsageProblem, match="in julia"):
        export(Notebook(Path("j.ipynb"), (NotebookCell(1, "code", "1"),), "julia"), Wanted(["all"]))


def test_a_syntax_error_matters_only_where_its_cell_is_needed() -> None:
    notebook = made("a = 1", "def broken(:", "print(a)", "b = (")
    assert errors(exported(notebook, "3")) == []
    (said,) = errors(exported(notebook, "4"))
    assert said == "cell 4, line 1: Cell is not valid Python: '(' was never closed."


def test_input_is_refused_where_it_is_needed() -> None:
    notebook = made(
        "name = input('who? ')",
        "def ask():\n    import getpass\n    return getpass.getpass()",
        "a = 1",
        "print(name, ask())",
    )
    assert errors(exported(notebook, "3")) == []
    said = errors(exported(notebook, "4"))
    assert [each.partition(":")[0] for each in said] == ["cell 1, line 1", "cell 2, line 3"]
    assert all("--param" in each for each in said)


def test_two_cells_that_bind_the_same_name_are_taken_by_their_place() -> None:
    notebook = made("x = 1", "print(x)", "x = 2", "print(x)")
    assert in_it(exported(notebook, "2")) == [1, 2] and in_it(exported(notebook, "4")) == [3, 4]


def test_an_order_other_than_that_of_the_page_is_asked_about_where_it_matters() -> None:
    notebook = made("x = 1", "print(x)", "x = 2", counts=[1, 4, 2])
    (said,) = errors(exported(notebook, "2"))
    assert "cell 3 as [2], cell 2 as [4]" in said and "--order page or --order run" in said
    assert in_it(exported(notebook, "2", order="page")) == [1, 2]
    assert in_it(exported(notebook, "2", order="run")) == [3, 2]
    assert errors(exported(made("x = 1", "y = 2", "print(x)", counts=[2, 1, 3]))) == []


def test_a_name_that_only_a_later_cell_binds_is_said() -> None:
    (said,) = errors(exported(made("print(late)", "late = 1"), "1"))
    assert "only cell 2 binds it, which runs later" in said


def test_a_name_of_the_kernel_alone_and_the_history_are_asked_about() -> None:
    found = exported(made("print(ghost)\nprint(_, Out[3])"))
    assert [said.partition(" is used")[0] for said in errors(found)] == [
        "cell 1, line 1: Name `ghost`",
        "cell 1, line 2: Name `Out`",
        "cell 1, line 2: Name `_`",
    ] or len(errors(found)) == 3
    assert "--carry ghost" in errors(found)[0]


def test_a_deleted_name_is_said() -> None:
    (said,) = errors(exported(made("x = 1", "del x", "print(x)")))
    assert "cell 2 deletes it" in said


def test_names_by_their_text_are_asked_about_and_the_tag_answers() -> None:
    cells = ["a = 1", "code = 'b = a'", "exec(code)"]
    (said,) = errors(exported(made(*cells)))
    assert said.startswith("cell 3, line 1: `exec(…)` may use any name") and "pai:needs-all" in said
    found = exported(made(*cells[:2], (cells[2], "pai:needs-all")))
    assert errors(found) == [] and in_it(found) == [1, 2, 3]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("[n for n in dir() if n.startswith('test_')]", "`dir(…)`"),
        ("import sys\nvars(sys.modules[__name__])", "`sys.modules[__name__]`"),
        ("import unittest\nunittest.main(argv=['x'], exit=False)", "`unittest.main(…)`"),
        ("import doctest\ndoctest.testmod()", "`doctest.testmod(…)`"),
        ("object.__subclasses__()", "`object.__subclasses__(…)`"),
    ],
)
def test_what_looks_at_all_names_is_asked_about_unless_all_cells_are_in(source: str, said: str) -> None:
    cells = ["def test_one():\n    pass", source]
    (asked,) = errors(exported(made(*cells)))
    assert f"{said} may use any name" in asked and "pai:needs-all" in asked
    assert errors(exported(made(*cells), "all")) == []
    assert in_it(exported(made(*cells, "x = 1"))) == [3]


@pytest.mark.parametrize("line", ["%run other.ipynb", "%pylab", "%store -r x"])
def test_a_magic_that_may_bind_any_name_is_not_left_out_silently(line: str) -> None:
    (asked,) = errors(exported(made("x = 1", line, "print(x)")))
    assert asked.startswith("cell 2, line 1: ") and "cannot be part of a script" in asked


def test_a_name_of_the_notebook_is_no_magic() -> None:
    found = exported(made("env = [1]", "env"))
    assert in_it(found) == [1, 2] and "paicells.env" not in found.scripts[""].text
    assert exported(made("pip install -q einops", "x = 1")).requirements == ["einops"]


def test_a_magic_without_a_rule_that_is_left_out_is_warned_of() -> None:
    found = exported(made("%dotenv", ("%other", "pai:skip"), "x = 1", "print(x)"))
    (problem,) = found.problems
    assert str(problem).startswith(
        "cell 1, line 1: `%dotenv` cannot be part of a script, so it is left out, "
    )
    assert problem.severity == "warning" and in_it(found) == [3, 4]
    assert told_lines(found.told)[0].startswith("- cell 1: has a magic that cannot be part of a script")


def test_random_numbers_that_a_library_draws_from_another_count() -> None:
    seeded = "import numpy as np\nnp.random.seed(0)\nX = np.arange(20)"
    split = "from sklearn.model_selection import train_test_split"
    forest = "from sklearn.ensemble import RandomForestClassifier\nclf = RandomForestClassifier()"
    drawn = "print(np.random.rand())"
    assert in_it(exported(made(seeded, split, "a, b = train_test_split(X)", drawn))) == [1, 2, 3, 4]
    assert in_it(exported(made(seeded, split, "a, b = train_test_split(X, random_state=1)", drawn))) == [1, 4]
    assert in_it(exported(made(seeded, forest, "clf.fit(X.reshape(-1, 2), X[:10])", drawn))) == [1, 2, 3, 4]


def test_what_a_function_does_is_said_with_who_calls_it() -> None:
    cells = ["xs = []", "def add(x):\n    xs.append(x)", "add(1)", "print(xs)"]
    assert told_lines(exported(made(*cells)).told)[2] == (
        "+ cell 3: uses `add`, by which it calls `xs.append` (line 1), and so may change `xs` of cell 4"
    )


def test_what_python_itself_has_is_not_changed_by_what_it_made() -> None:
    assert in_it(exported(made("ys = [2]", "xs = sorted(ys)", "xs.append(1)", "print(sorted([2]))"))) == [4]


def test_a_file_is_said_as_a_file() -> None:
    cells = [
        "import pandas as pd\ntag = 'v1'",
        "pd.DataFrame().to_csv(f'{tag}.csv')",
        "pd.read_csv(f'{tag}.csv')",
    ]
    assert told_lines(exported(made(*cells)).told)[1] == (
        "+ cell 2: writes a file, as it calls `to_csv` (line 1) with `tag`, and cell 3 uses `tag`"
    )


def test_shell_lines_are_needed_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    cells = ["!unzip data.zip", "!ls", "open('train.csv')"]
    assert in_it(exported(made(*cells), folder=tmp_path)) == [1, 3]
    (tmp_path / "train.csv").write_text("1")
    assert in_it(exported(made(*cells), folder=tmp_path)) == [3]


def test_an_import_that_changes_another_module_is_needed_where_nothing_names_it() -> None:
    cells = [
        "from sklearn.experimental import enable_iterative_imputer",
        "import json",
        "from sklearn.impute import IterativeImputer",
        "IterativeImputer()",
    ]
    assert in_it(exported(made(*cells))) == [1, 3, 4]


def test_an_unknown_star_import_is_taken_along() -> None:
    found = exported(made("x = 1", "from some_library import *", "y = 2", "print(x)"))
    assert in_it(found) == [1, 2, 4] and errors(found) == []


def test_a_notebook_that_writes_its_own_file_is_warned_of() -> None:
    found = exported(made("import nbformat\nnbformat.write(nbformat.v4.new_notebook(), 'n.ipynb')"))
    (problem,) = found.problems
    assert problem.code == "edits-itself" and problem.cell == 1 and problem.line == 2


def test_a_line_that_would_begin_a_cell_is_refused() -> None:
    with pytest.raises(UsageProblem, match="Cell 1 has a line that begins a cell"):
        exported(made("x = '''\n# %% n.ipynb[cell 2]\n'''"))
    assert errors(exported(made("# %% my own marker\nx = 1"))) == []


@pytest.mark.slow
def test_thousands_of_cells() -> None:
    cells = ["import math"]
    cells += [
        f"def f{i}(x):\n    return x + {i} + v{max(i - 1, 0)}\nv{i} = f{i}(v{i - 1}) if {i} else 0"
        for i in range(5000)
    ]
    cells[1] = "v0 = 0"
    found = exported(made(*cells), "11")
    assert in_it(found) == list(range(2, 12)) and len(found.told) == 5001


_LINES = st.sampled_from(
    [
        "a = 1",
        "b = a",
        "a += 1",
        "del a",
        "def f():\n    return a",
        "f()",
        "!ls {a}",
        "%time a = 2",
        "x = [a for a in b]",
        "for i in a:\n    b = i",
        "if a:\n    %env A=1",
        "from math import *",
        "import os as b",
        "class C:\n    a = b",
        "%nope",
        "global a",
        "await b",
        "exec(a)",
        "(",
        "a.append(b)",
        "with a as b: pass",
        "try:\n    a\nexcept: b",
        "lambda: a",
        "?",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(_LINES, max_size=3).map("\n".join), min_size=1, max_size=7))
def test_any_cells_give_a_script_or_problems_with_their_cells(cells: list[str]) -> None:
    if not any(cell.strip() for cell in cells):
        return
    last = max(number for number, cell in enumerate(cells, 1) if cell.strip())
    found = exported(made(*cells), str(last))
    assert last in in_it(found)
    assert all(problem.cell and problem.message.endswith(".") for problem in found.problems)
    for number, source in enumerate(cells, 1):
        text = translate(NotebookCell(number, "code", source), {"a"}).text
        assert not text or text.rstrip().count("\n") <= source.count("\n")


# The cells of a running notebook


def saved(folder: Path, *cells: tuple[str, str, int | None]) -> Path:
    path = folder / "n.ipynb"
    data = [
        {"cell_type": "code", "id": id_, "metadata": {}, "source": source, "execution_count": count}
        for id_, source, count in cells
    ]
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": data}))
    return path


def test_a_cell_counts_as_it_ran_where_the_file_is_older(tmp_path: Path) -> None:
    path = saved(tmp_path, ("a", "x = 1", 1), ("b", "y = 1", 9), ("m", "%%paijob --with-cells\nold", None))
    runs = [Run(1, "x = 1", "a"), Run(2, "x = 5", "a"), Run(3, "%%paijob\nprint(x)", "m")]
    found = cells_of(Session(runs), path, "m", "print(x)\n")
    first, second, current = found.notebook.cells
    assert (first.source, first.executed) == ("x = 5", 2)
    assert second.executed is None  # That count is of another kernel.
    assert current.source == "%%paijob\nprint(x)\n" and found.current == 3 and not found.history


def test_without_a_file_the_runs_are_the_cells(tmp_path: Path) -> None:
    runs = [
        Run(1, "x = 1"),
        Run(2, "1/0", failed=True),
        Run(3, "y = 2"),
        Run(4, "x = 1"),
        Run(5, "%%paijob\nz"),
    ]
    found = cells_of(Session(runs), None, None, "print(x, y)")
    assert [cell.number for cell in found.notebook.cells] == [3, 4, 5]
    assert found.current == 5 and found.history
    unsaved = cells_of(Session(runs), saved(tmp_path, ("a", "x = 1", 1)), "new", "print(x)")
    assert unsaved.history and [each.code for each in unsaved.problems] == ["notebook-not-saved"]
    with pytest.raises(UsageProblem, match="not known here"):
        cells_of(None, None, None, None)
