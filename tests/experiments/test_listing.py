"""Lists of experiments, spaces and selections (T3, T4, 2.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import InvalidDocument, UsageProblem
from paijupyter.experiments import read_listing, select, spans
from paijupyter.experiments.listing import read_table


def listing(**members: Any) -> Any:
    return read_listing(json.dumps(members))


def values(**members: Any) -> list[dict[str, Any]]:
    return [dict(each.values) for each in listing(**members).experiments]


@pytest.mark.parametrize(
    "text",
    [
        "experiments:\n  1: {lr: 0.1}\n  2: {lr: 0.2}\n",
        "1: {lr: 0.1}\n2: {lr: 0.2}\n",  # the mapping by itself, as in the article's script
        "{1: {'lr': 0.1}, 2: {'lr': 0.2}}",  # a Python dict is YAML too
        '{"experiments": [{"lr": 0.1}, {"lr": 0.2}]}',
        '[{"lr": 0.1}, {"lr": 0.2}]',
        "rows: |\n  lr\n  0.1\n  0.2\n",
        "grid: {lr: [0.1, 0.2]}\n",
        "zip: {lr: [0.1, 0.2]}\n",
    ],
)
def test_the_forms_of_a_list(text: str) -> None:
    """T3: numbers or names as keys; all of them by default."""
    found = read_listing(text)
    assert found.keys == ["1", "2"]
    assert [dict(each.values) for each in found.experiments] == [{"lr": 0.1}, {"lr": 0.2}]


def test_every_problem_has_its_line() -> None:
    text = (
        "experiments:\n  1: {a: 1}\n  2: [1]\nfields: [a, b]\nnmes: x\natOnce: none\noverrides: {9: {a: 1}}\n"
    )
    with pytest.raises(InvalidDocument) as caught:
        read_listing(text)
    assert [each.line for each in caught.value.problems] == [2, 3, 5, 6, 7]
    assert "Did you mean `names`?" in str(caught.value.problems[2])


@pytest.mark.parametrize(
    "text", ["", "just text", "- [", "experiments: 5", "experiments: {}", "grid: [1]", "random: {lr: [1]}"]
)
def test_what_is_no_list_is_said(text: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        read_listing(text)
    assert "Job document" not in str(caught.value)


def test_an_absurd_count_is_refused_before_it_is_made() -> None:
    """2.2: guarded by a limit that the user can raise."""
    space = {name: list(range(100)) for name in "abcdef"}
    with pytest.raises(InvalidDocument, match="1000000000000"):
        listing(grid=space)
    with pytest.raises(InvalidDocument, match="--limit 1001"):
        listing(grid={"a": list(range(1001))})
    assert len(read_listing(json.dumps({"grid": {"a": list(range(1001))}}), limit=1001).experiments) == 1001


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(), min_size=1, max_size=4), min_size=1))
def test_a_grid_has_every_combination_once_in_order(space: dict[str, list[int]]) -> None:
    found = values(grid=space)
    expected: list[dict[str, int]] = [{}]
    for name, each in space.items():
        expected = [{**before, name: value} for before in expected for value in each]
    assert found == expected


@given(st.integers(1, 30), st.integers())
def test_chance_is_the_same_for_the_same_seed_and_stays_within_its_bounds(count: int, seed: int) -> None:
    space = {
        "count": count,
        "seed": seed,
        "lr": {"log": [1e-4, 0.1]},
        "n": {"int": [2, 5]},
        "m": ["a", "b"],
        "d": {"uniform": [0, 0.5]},
    }
    found = values(random=space)
    assert found == values(random=space) and len(found) == count
    for each in found:
        assert (
            1e-4 <= each["lr"] <= 0.1
            and each["n"] in (2, 3, 4, 5)
            and each["m"] in "ab"
            and 0 <= each["d"] <= 0.5
        )


def test_zip_wants_lists_of_one_length() -> None:
    assert values(zip={"a": [1, 2], "b": ["x", "y"]}) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    with pytest.raises(InvalidDocument, match="same length"):
        listing(zip={"a": [1, 2], "b": [1]})


def test_a_table_is_typed_and_its_columns_have_an_order() -> None:
    """2.2: a CSV or a data frame of rows."""
    found = listing(rows="model,batch,note\nresnet18,32,\n'x',64,yes\n")
    assert [dict(each.values) for each in found.experiments] == [
        {"model": "resnet18", "batch": 32},
        {"model": "'x'", "batch": 64, "note": "yes"},
    ]
    assert listing(rows="model,batch\na,1\n").experiments[0].items == ("a", 1)
    with pytest.raises(UsageProblem, match="more cells"):
        read_table("a\n1,2\n")


def test_several_sources_are_numbered_on() -> None:
    found = listing(experiments={"7": {"a": 0}, "base": {"a": 1}}, grid={"a": [2, 3]}, rows=[{"a": 4}])
    assert found.keys == ["7", "base", "8", "9", "10"]


_KEYS = st.lists(st.integers(0, 30), unique=True, min_size=1).map(
    lambda found: [str(each) for each in sorted(found)]
)


@given(_KEYS, st.data())
def test_a_selection_is_what_it_names(keys: list[str], data: st.DataObject) -> None:
    """T4."""
    chosen = data.draw(st.lists(st.sampled_from(keys), min_size=1))
    assert select(keys, ",".join(chosen)) == [key for key in keys if key in chosen]
    low, high = sorted(data.draw(st.lists(st.sampled_from(keys), min_size=2, max_size=2)), key=int)
    between = [key for key in keys if int(low) <= int(key) <= int(high)]
    assert select(keys, f"{low}-{high}") == between
    assert select(keys, spans(chosen[:1])) == chosen[:1]


@given(_KEYS)
def test_what_spans_says_selects_the_same(keys: list[str]) -> None:
    assert select(keys, spans(keys, most=100)) == keys


@pytest.mark.parametrize("only", ["", "-1", " -1 "])
def test_nothing_chosen_is_all(only: str) -> None:
    """T4: -1 is what the article's own option means by all."""
    assert select(["1", "x"], only) == ["1", "x"]


@pytest.mark.parametrize("only", ["9", "1-9", "x", "2-1", "1,,y"])
def test_an_unknown_key_lists_those_there_are(only: str) -> None:
    """T4."""
    with pytest.raises(UsageProblem, match="There are: 1-3, name"):
        select(["1", "2", "3", "name"], only)


def test_names_may_have_a_minus() -> None:
    assert select(["a-b", "1-2", "1"], "1-2,a-b") == ["a-b", "1-2"]
