"""Placeholders and what values become in them (T1, T2, T9, T12)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import InvalidDocument
from paijupyter.experiments import Sweep, fill, read_listing
from paijupyter.experiments.placeholders import filled, placeholders
from paijupyter.experiments.sweep import masked
from paijupyter.protocol import read

DOCUMENT = """\
# kept: {{this}} and ${HOME}
protocolVersion: 2
name: mnist
type: job
prerequisites: [{protocolVersion: 2, name: image, type: dockerimage, uri: python}]
parameters: {epochs: 3}
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
      - run WORD # a comment
"""


def sweep(text: str, experiments: Any, **more: Any) -> Sweep:
    return fill(text, read_listing(json.dumps({"experiments": experiments, **more})))


def command(made: Sweep, place: int = 0) -> str:
    role: str = made.filled[place].data["taskRoles"]["main"]["commands"][0]
    return role


def errors(made: Sweep) -> list[str]:
    return [str(each) for each in made.problems if each.severity == "error"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{0}-{1} {1}", ["0", "1", "1"]),
        ("{model} {batch_size}", ["model", "batch_size"]),
        ("${HOME} {} { a } {a: 1} {1, 2} {{x}} {01}", []),
        ('{"lr": {lr}} {{lr}: 1}', ["lr", "lr"]),
        ("[0-9]{3} a{b}c", ["3", "b"]),
    ],
)
def test_what_is_a_placeholder_and_what_is_left_alone(text: str, found: list[str]) -> None:
    """T1: own substitution that touches only names and leaves the rest."""
    assert [each.name for each in placeholders(text)] == found


@given(st.text(alphabet="{}$ab01 \n:", max_size=40))
def test_text_around_known_placeholders_never_changes(text: str) -> None:
    """T1: filling in a placeholder by itself gives the text back, whatever braces are around."""
    known = {each.name: "{" + each.name + "}" for each in placeholders(text)}
    assert filled(text, known) == text
    assert filled(text, {}) == text


@given(st.lists(st.sampled_from(["{0}", "{1}", "{name}", "${X}", "{}", " ", "x", "\n"]), max_size=20))
def test_the_line_of_a_placeholder_is_the_line_it_stands_in(pieces: list[str]) -> None:
    text = "".join(pieces)
    for each in placeholders(text):
        assert text.split("\n")[each.line - 1].count("{" + each.name + "}")


def test_numbers_are_the_key_then_items_then_constants() -> None:
    """T1: {0} the key, {1}.. the list's items, then those of `common`."""
    text = DOCUMENT.replace("WORD", "{0} {1} {2} {3} {1}")
    made = sweep(text, {"one": ["a", 32], "two": ["b", 64]}, common=["/data"])
    assert [command(made, each) for each in (0, 1)] == ["run one a 32 /data a", "run two b 64 /data b"]


def test_a_mapping_counts_in_the_order_of_fields_and_has_names_too() -> None:
    """T1: the order is that of `fields:`, not of the mapping."""
    text = DOCUMENT.replace("WORD", "{1} {2} {model}")
    made = sweep(text, {"1": {"batch": 32, "model": "resnet"}}, fields=["model", "batch"])
    assert command(made) == "run resnet 32 resnet"


def test_numbers_without_a_stated_order_are_an_error() -> None:
    """T1."""
    with pytest.raises(InvalidDocument, match="fields"):
        sweep(DOCUMENT.replace("WORD", "{1}"), {"1": {"model": "resnet"}})


def test_an_unknown_placeholder_is_an_error_with_its_line() -> None:
    """T1."""
    with pytest.raises(InvalidDocument) as caught:
        sweep(DOCUMENT.replace("WORD", "{modle} {model} {9}"), {"1": {"model": "resnet"}})
    assert [(each.line, each.code) for each in caught.value.problems] == [
        (13, "unknown-placeholder"),
        (13, "unknown-placeholder"),
    ]
    assert "Did you mean `model`?" in str(caught.value.problems)


def test_a_word_in_braces_may_be_called_literal() -> None:
    text = DOCUMENT.replace("run WORD", "awk '{print}' {x}")
    made = sweep(text, {"1": {"x": 1}}, literal=["print"])
    assert command(made) == "awk '{print}' 1" and not errors(made)


def test_constants_by_name_go_where_no_value_does() -> None:
    """T1: constants by `common:` or --set."""
    listing = read_listing(json.dumps({"experiments": {"1": {"x": 1}}, "common": {"d": "/a"}}), {"d": "/b"})
    made = fill(DOCUMENT.replace("WORD", "{x} {d}"), listing)
    assert command(made) == "run 1 /b"


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("cpu: 1", 4, 4),  # the field wants a number
        ("uri: python", "1.20", "1.20"),  # a text that looks like a number
        ("uri: python", 3, "3"),  # a number where a text is wanted
        ("uri: python", "a: b", "a: b"),
        ("uri: python", "yes", "yes"),
        ("epochs: 3", 0.5, 0.5),
        ("epochs: 3", "3", "3"),
        ("epochs: 3", True, True),
        ("epochs: 3", None, None),
        ("epochs: 3", ["a", 1], ["a", 1]),
    ],
)
def test_a_whole_scalar_keeps_its_type_only_where_the_field_wants_it(
    place: str, value: Any, expected: Any
) -> None:
    """T2: substitute as text, else quote; validated after parsing."""
    name = place.partition(":")[0]
    made = sweep(DOCUMENT.replace(place, f"{name}: {{v}}"), {"1": {"v": value}, "2": {"v": value}})
    data = made.filled[0].data
    found = {
        "cpu": data["taskRoles"]["main"]["resourcePerInstance"]["cpu"],
        "uri": data["prerequisites"][0]["uri"],
        "epochs": data["parameters"]["epochs"],
    }[name]
    assert found == expected and type(found) is type(expected)


_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20)


@given(_TEXTS)
def test_no_value_changes_what_is_around_it(value: str) -> None:
    """T2: inside of quotes what would end them is escaped; a value is never YAML of its own."""
    text = DOCUMENT.replace(
        "- run WORD # a comment", "- \"run '{v}'\"\n      - 'x {v}'\n      - |\n        y {v}"
    )
    made = sweep(text, {"1": {"v": value}})
    data = made.filled[0].data
    if not data:  # the only way out is an error that names the line
        assert errors(made)
        return
    commands = data["taskRoles"]["main"]["commands"]
    assert commands[:2] == [f"run '{value}'", f"x {value}"]
    assert commands[2].rstrip("\n") == f"y {value}".rstrip("\n") or value != value.strip()
    assert data["name"] == "mnist-1" and len(commands) == 3


@given(
    st.one_of(
        st.integers(-(10**12), 10**12),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        _TEXTS,
    )
)
def test_parameters_are_read_back_as_they_were_given(value: Any) -> None:
    """O19, 2.2: values that no placeholder takes are parameters; one document is read, others follow."""
    listing = read_listing(json.dumps({"rows": [{"lr": 0.5}, {"lr": value}, {"lr": value}]}))
    made = fill(DOCUMENT.replace("WORD", "x"), listing)
    last = made.filled[2]
    assert last.data == read(last.document).data
    assert last.data["parameters"]["epochs"] == 3


def test_a_value_in_a_part_of_an_unquoted_text_may_not_break_it() -> None:
    made = sweep(DOCUMENT.replace("WORD", "{v}"), {"1": {"v": "a: b"}, "2": {"v": "fine"}})
    assert len(errors(made)) == 1
    assert errors(made)[0].startswith("line 13: Experiment 1: Value of `{v}` has signs of YAML in it")
    assert command(made, 1) == "run fine"


def test_an_experiment_without_a_value_that_others_have_is_an_error_of_its_own() -> None:
    made = sweep(DOCUMENT.replace("WORD", "{a} {b}"), {"1": {"a": 1, "b": 2}, "2": {"a": 1}})
    assert len(errors(made)) == 1 and "Experiment 2" in errors(made)[0] and "{b}" in errors(made)[0]


def test_names_are_those_of_the_pattern_made_safe_and_different() -> None:
    """T9 and 2.2: naming from parameters."""
    experiments = {"1": {"m": "res net/18"}, "2": {"m": "vgg"}, "3": {"m": "vgg"}}
    made = sweep(DOCUMENT.replace("WORD", "{m}"), experiments, names="{m}")
    assert [each.data["name"] for each in made.filled] == ["res-net-18", "vgg-2", "vgg-3"]
    plain = sweep(DOCUMENT.replace("WORD", "{m}"), experiments)
    assert [each.data["name"] for each in plain.filled] == ["mnist-1", "mnist-2", "mnist-3"]
    own = sweep(DOCUMENT.replace("WORD", "{m}").replace("name: mnist", "name: x-{0}"), experiments)
    assert [each.data["name"] for each in own.filled] == ["x-1", "x-2", "x-3"] and own.name == "x"


def test_all_other_bytes_stay() -> None:
    """T1: comments, order and quotes of the template are those of each document."""
    made = sweep(DOCUMENT.replace("WORD", "{m}").replace("mnist", "mnist-{0}"), {"7": {"m": "vgg"}})
    expected = DOCUMENT.replace("WORD", "vgg").replace("mnist", "mnist-7")
    assert made.filled[0].text == expected == made.filled[0].document


def test_single_nodes_are_overridden_by_pointer() -> None:
    """2.2: per-experiment overrides."""
    more = {"2": {"/taskRoles/main/resourcePerInstance/memoryMB": 256, "x": 9}}
    made = sweep(DOCUMENT.replace("WORD", "{x}"), {"1": {"x": 1}, "2": {"x": 2}}, overrides=more)
    memory = [each.data["taskRoles"]["main"]["resourcePerInstance"]["memoryMB"] for each in made.filled]
    assert memory == [64, 256] and command(made, 1) == "run 9"


def test_equal_experiments_are_hinted_at() -> None:
    made = sweep(DOCUMENT.replace("WORD", "{x}"), {"1": {"x": 1}, "2": {"x": 2}, "3": {"x": 1}})
    assert [each.message for each in made.problems] == ["Experiment 3: It is equal to experiment `1`."]


def test_a_document_that_was_written_for_the_sweep_keeps_its_braces() -> None:
    listing = read_listing('{"experiments": {"1": {"x": 1}}}')
    made = fill(DOCUMENT.replace("run WORD", "awk '{print}' {x}"), listing, has_placeholders=False)
    assert command(made) == "awk '{print}' {x}" and made.filled[0].data["parameters"]["x"] == 1


def test_secrets_are_masked_for_people() -> None:
    """T8."""
    text = "secrets:\n  A: plain\n  B: 'two words'\n  C: \"\"\nname: x\n"
    assert masked(text) == 'secrets:\n  A: "******"\n  B: "******"\n  C: ""\nname: x\n'
