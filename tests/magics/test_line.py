"""The line of the magic as words (architecture, "Running a %%paijob cell")."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import UsageProblem
from paijupyter.magics.line import words_of
from paijupyter.protocol.parameters import parse_parameter


class Scalar:
    """Like a scalar of NumPy."""

    size = 1

    def item(self) -> float:
        return 0.25


NAMES: dict[str, Any] = {
    "lr": 0.1,
    "name": "my name",
    "layers": [1, 2],
    "conf": {"a": {"b": 1}},
    "text": "0.5",
    "flag": True,
    "nothing": None,
    "scalar": Scalar(),
    "path": Path("/tmp/x"),
    "model": object(),
}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("  submit   train.py ", ["submit", "train.py"]),
        ("--name 'a b' --x=\"c $d\"", ["--name", "a b", "--x=c $d"]),
        ("a\\ b \"q\\\"q\" 'it''s'", ["a b", 'q"q', "its"]),
        ("--output checkpoints/{a,b}/* $HOME {a,b}.txt", None),
        ("--env X=$HOME", ["--env", "X=$HOME"]),
        ("''", [""]),
    ],
)
def test_words_are_those_of_a_posix_shell_without_expansion(line: str, words: list[str] | None) -> None:
    assert words_of(line, NAMES) == (shlex.split(line) if words is None else words)


@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("--name {name}", "my name"),
        ("--param lr={lr}", "lr=0.1"),
        ("--param lr={lr * 10}", "lr=1.0"),
        ("-p layers={ [n + 1 for n in layers] }", "layers=[2, 3]"),
        ("-p b={conf['a']['b']}", "b=1"),
        ('-p x={name + "}"}', 'x="my name}"'),
        ("-p text={text}", 'text="0.5"'),
        ("-p on={flag}", "on=true"),
        ("-p none={nothing}", "none=null"),
        ("-p s={scalar}", "s=0.25"),
        ("--package {path}", "/tmp/x"),
        ("--env A={lr}", "A=0.1"),
        ('--param opts={"a": 1, "b": [2]}', 'opts={"a": 1, "b": [2]}'),
        ("--param n={{'a': lr}}", 'n={"a": 0.1}'),
    ],
)
def test_a_value_that_is_wholly_an_expression_is_evaluated_typed(line: str, last: str) -> None:
    assert words_of(line, NAMES)[-1] == last


@pytest.mark.parametrize("word", ["x{lr}", "{lr}x", "a={lr}b", "'{lr}'", "{a,b}/*"])
def test_a_brace_inside_a_word_stays_what_it_is(word: str) -> None:
    assert words_of(word, NAMES) == shlex.split(word)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("'open", "Quote ' is not closed."),
        ("{lr", "Brace in `{lr` is not closed."),
        ("--param a={missing}", "Expression `{missing}` failed: NameError"),
        ("--param a={lr +}", "Value `{lr +}` is neither an expression nor JSON."),
        ("--param a={model}", "Expression `{model}` is a object"),
        ("--param a={[model]}", "Expression `{[model]}` is a list"),
    ],
)
def test_a_mistake_is_one_sentence(line: str, message: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        words_of(line, NAMES)
    assert str(caught.value).startswith(message)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(JSON)
def test_every_typed_value_reaches_the_document_as_it_is(value: Any) -> None:
    """O19: parameters keep their type from the notebook to the job."""
    _, word = words_of("--param x={value}", {"value": value})
    name, parsed = parse_parameter(word)
    assert name == "x"
    assert json.dumps(parsed) == json.dumps(value)


@given(st.lists(st.text(st.characters(blacklist_characters="{}", blacklist_categories=("Cs",)))))
def test_quoting_reaches_every_text(texts: list[str]) -> None:
    assert words_of(shlex.join(texts), {}) == texts


@given(st.text())
def test_any_line_is_split_or_refused_in_words(line: str) -> None:
    try:
        words_of(line, {})
    except UsageProblem:
        return


def test_a_data_frame_is_its_rows() -> None:
    """2.2: `--rows {frame}`; what is missing is left out, numbers of NumPy are Python's own."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"lr": [0.1, None], "n": [1, 2], "m": ["a", None]})
    words = words_of("--rows {frame}", {"frame": frame})
    assert json.loads(words[1]) == [{"lr": 0.1, "n": 1, "m": "a"}, {"n": 2}]
