"""Every trainer finds its own part of the data by the environment (P10)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.tasks import rank_and_world, shard

NONE = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "PADDLE_TRAINER_ID", "JAX_PROCESS_ID", "TF_CONFIG")


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NONE, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"):
        monkeypatch.delenv(name, raising=False)


@given(st.lists(st.integers()), st.integers(1, 50))
def test_the_parts_are_a_partition_of_even_sizes_in_order(items, world):
    parts = [shard(items, rank, world) for rank in range(world)]
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    numbered = [shard(range(len(items)), rank, world) for rank in range(world)]
    assert sorted(index for part in numbered for index in part) == list(range(len(items)))
    for part, indices in zip(parts, numbered, strict=True):
        assert indices == sorted(indices)
        assert part == [items[index] for index in indices]


def test_any_iterable_will_do():
    assert shard(iter("abcde"), 1, 2) == ["b", "d"]
    assert shard({"a": 1, "b": 2, "c": 3}, 0, 2) == ["a", "c"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (({"b", "a"}, 0, 2), TypeError, "sorted"),
        (("train.txt", 0, 2), TypeError, "one string"),
        (([1], 2, 2), ValueError, "Rank 2"),
        (([1], -1, 2), ValueError, "Rank -1"),
        (([1], 1), ValueError, "both"),
    ],
)
def test_a_mistake_is_said(arguments, error, words):
    with pytest.raises(error, match=words):
        shard(*arguments)


TF = {"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}}
ROLE = {"PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1", "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "4"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, (0, 1)),
        (ROLE, (1, 4)),
        (ROLE | {"RANK": "5", "WORLD_SIZE": "8"}, (5, 8)),
        (ROLE | {"RANK": "5"}, (1, 4)),
        (
            ROLE | {"RANK": "0", "WORLD_SIZE": "1", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"},
            (2, 3),
        ),
        (ROLE | {"PADDLE_TRAINER_ID": "3", "PADDLE_TRAINERS_NUM": "6"}, (3, 6)),
        (ROLE | {"PADDLE_TRAINERS_NUM": "6"}, (1, 4)),
        (ROLE | {"JAX_PROCESS_ID": "7", "JAX_NUM_PROCESSES": "9"}, (7, 9)),
        (ROLE | {"TF_CONFIG": json.dumps(TF | {"task": {"type": "worker", "index": 1}})}, (2, 3)),
        (ROLE | {"TF_CONFIG": json.dumps(TF | {"task": {"type": "ps", "index": 0}})}, (1, 4)),
    ],
)
def test_rank_and_world_are_the_launchers_or_the_roles(monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert rank_and_world() == expected
    assert shard(range(100)) == list(range(expected[0], 100, expected[1]))


def test_a_variable_that_is_no_number_is_named(monkeypatch):
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="RANK and WORLD_SIZE"):
        shard([1])
