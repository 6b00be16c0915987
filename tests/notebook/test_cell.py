"""A Python cell becomes the entry file of a job (P12; jupyter.md 14.2)."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import UsageProblem
from paijupyter.notebook.cell import COMMAND, ENTRY, entry


def run(content: bytes, folder: Path, parameters: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    script, values = folder / "cell.py", folder / "parameters.json"
    script.write_bytes(content)
    values.write_text(json.dumps(parameters), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        env={**os.environ, "PAI_PARAMETERS_FILE": str(values)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_entry_point_is_a_command_that_starts_a_file_of_the_package() -> None:
    found = entry("print(1)\n")
    assert (found.path, found.command) == (ENTRY, f"python {ENTRY}")
    assert found.command == COMMAND


@pytest.mark.parametrize(
    "body",
    [
        "print('ö', 1)\n",
        "\n\n# comment\nx = '''\n%not magic\n'''\n",
        "def f():\n\treturn 1\r\nprint(f())",
        '"""Doc."""\nfrom __future__ import annotations\nprint(__doc__)\n',
    ],
)
def test_the_body_is_kept_byte_for_byte(body: str) -> None:
    assert entry(body).content.split(b"\n", 1)[1] == body.encode()


def test_parameters_are_typed_variables(tmp_path: Path) -> None:
    """O19: parameters are defined once; never spliced in as source."""
    values = {"lr": 0.1, "epochs": 20, "opt": "ad'am\"\\n", "flags": [True, None], "deep": {"a": 1}}
    body = "print(repr((lr, epochs, opt, flags, deep)))\n"
    done = run(entry(body, values).content, tmp_path, values)
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == (0.1, 20, "ad'am\"\\n", [True, None], {"a": 1})


@pytest.mark.parametrize(
    "head",
    [
        '"""Doc."""\n',
        '"""Doc."""; a = 1\n',
        '"""Two\nlines, ö."""  # comment\n',
        "from __future__ import annotations\n",
        '# note\n"""Doc."""\n\nfrom __future__ import (\n    annotations,\n    division,\n)\n',
        "'Doc' \\\n'more'\n",
        '"""Doc\x0cwith a form feed"""\n',
        "",
        "\n\n",
        "@property\ndef f(self):\n    pass\n",
        "for i in range(1):\n    pass\n",
    ],
)
def test_parameters_are_bound_where_python_allows_it_and_no_line_moves(head: str, tmp_path: Path) -> None:
    body = f"{head}print(lr)\nraise SystemError\n"
    found = entry(body, ["lr"])
    done = run(found.content, tmp_path, {"lr": 0.5})
    assert done.stdout == "0.5\n", done.stderr
    # The cell's first line is the magic's, so the body's line n is the notebook's line n + 1.
    raised = body.count("\n", 0, body.index("raise")) + 2
    assert f"line {raised}, in <module>" in done.stderr
    assert ast.get_docstring(ast.parse(found.content)) == ast.get_docstring(ast.parse(body))


def refused(body: str, number: int | None = None) -> tuple[UsageProblem, Any]:
    with pytest.raises(UsageProblem) as caught:
        entry(body, number=number)
    (problem,) = caught.value.problems
    assert "\n" not in str(caught.value)
    return caught.value, problem


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("!pip install x\n", 2),
        ("import os\nx = !ls\n", 3),
        ("a = 1\n\n%matplotlib inline\n", 4),
        ("%%time\nprint()\n", 2),
        ("x = %env HOME\n", 2),
        ("import os\nos?\n", 3),
    ],
)
def test_ipythons_own_syntax_is_refused_with_its_line_in_the_cell(body: str, line: int) -> None:
    error, problem = refused(body)
    assert (problem.code, problem.line) == ("ipython-syntax", line)
    assert "--sh" in error.hint


def test_a_syntax_error_is_one_sentence_with_the_line_of_the_cell() -> None:
    error, problem = refused("x = 1\ndef f(:\n    pass\n", number=4)
    assert (problem.code, problem.cell, problem.line) == ("not-python", 4, 3)
    assert error.message.startswith("Cell 4, line 3: Cell is not valid Python: ")


def test_await_outside_a_function_says_what_to_write_instead() -> None:
    error, problem = refused("import asyncio\nawait asyncio.sleep(0)\n")
    assert (problem.code, problem.line) == ("top-level-await", 3)
    assert "asyncio.run(main())" in error.hint


@pytest.mark.parametrize(
    "body", ["x = '\0'", "x = '\ud800'", "# coding: latin-1\nx = 1", "# coding: nonsense\n"]
)
def test_what_cannot_be_a_file_is_refused(body: str) -> None:
    refused(body)


def test_warnings_of_the_users_code_stay_out_of_the_kernel() -> None:
    entry("x = '\\d' is 1\n")  # Two SyntaxWarnings; a warning fails this test.


def test_a_parameter_that_the_cell_assigns_again_is_told() -> None:
    found = entry(
        "import os\nlr = 0.5\nfor epochs in []:\n    pass\nwarm: int = 1\n", ["lr", "epochs", "warm", "x"]
    )
    assert [(each.code, each.line) for each in found.problems] == [
        ("parameter-overwritten", 3),
        ("parameter-overwritten", 6),
    ]


@given(st.text(max_size=200), st.booleans())
def test_any_text_is_taken_or_refused_in_words(body: str, bind: bool) -> None:
    try:
        found = entry(body, ["lr"] if bind else [])
    except UsageProblem:
        return
    compile(found.content, "cell.py", "exec")
    assert len(found.content.decode().split("\n")) == len(body.split("\n")) + 1
