"""PaddleJob: its fields, their defaults, and the defects of the original that must not come back."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import InvalidDocument
from paijupyter.protocol import check, read, write
from paijupyter.protocol.paddle import PaddleJob

RUN = {"entry_point": "python train.py"}


def document(**fields: Any) -> dict[str, Any]:
    return PaddleJob(**{**RUN, **fields}).document()


def paths_of(error: InvalidDocument) -> set[str]:
    return {problem.path for problem in error.problems}


def test_every_default_is_stated() -> None:
    """P22, P33: the simplest job is one trainer on a CPU."""
    found = document()
    assert found["taskRoles"].keys() == {"trainer"}
    trainer = found["taskRoles"]["trainer"]
    assert trainer["instances"] == 1
    assert trainer["resourcePerInstance"] == {"cpu": 1, "memoryMB": 1024, "gpu": 0}
    assert trainer["commands"] == ["python train.py"]
    assert found["extras"]["paijupyter"]["roles"]["trainer"]["launcher"] == "paddle"
    assert not [each for each in check(read(write(found)), "openpai") if each.severity == "error"]


@pytest.mark.parametrize(
    ("fields", "servers"),
    [
        ({}, 0),
        ({"trainers": 4}, 4),
        ({"trainers": 4, "trainer_gpu": 1}, 0),
        ({"trainers": 4, "pservers": 0}, 0),
        ({"trainers": 1, "pservers": 2}, 2),
    ],
)
def test_parameter_servers_left_out_are_computed(fields: dict[str, Any], servers: int) -> None:
    """P25: left out it is computed and shown, 0 means none, the two counts are independent."""
    job = PaddleJob(**RUN, **fields)
    assert job.parameter_servers == servers
    assert ("computed" in job.size) == ("pservers" not in fields)
    roles = job.document()["taskRoles"]
    assert ("ps" in roles) == bool(servers)
    assert roles["trainer"]["instances"] == job.trainers


def test_parameter_servers_do_not_decide_success() -> None:
    """P36, D4: they are a role of their own, and the job ends when all trainers are done."""
    roles = document(trainers=3, pservers=2, pserver_mem="2G", pserver_cpu=3)["taskRoles"]
    assert roles["ps"]["instances"] == 2
    assert roles["ps"]["resourcePerInstance"] == {"cpu": 3, "memoryMB": 1908, "gpu": 0}
    assert roles["ps"]["completion"]["minSucceededInstances"] == -1
    assert roles["trainer"]["completion"]["minSucceededInstances"] == 3


OTHER = {
    "job_name": "other",
    "entry_point": "python other.py",
    "trainer_package": "0" * 64,
    "image": "paddle:3",
    "trainers": 3,
    "pservers": 5,
    "trainer_cpu": 2,
    "trainer_gpu": 1,
    "trainer_mem": "3Gi",
    "pserver_cpu": 7,
    "pserver_mem": "9Gi",
    "env": {"A": "b"},
}


@pytest.mark.parametrize("name", OTHER)
def test_no_field_is_read_and_forgotten(name: str) -> None:
    """D2: each field changes the document."""
    base = {**RUN, "pservers": 1}
    assert document(**base) != document(**{**base, name: OTHER[name]})


def test_the_list_of_fields_is_whole() -> None:
    """D2: a new field is tested above, or is the profile, which is no matter of the document."""
    assert {each.name for each in dataclasses.fields(PaddleJob)} == {*OTHER, "profile"}


def test_both_spellings_are_read() -> None:
    """D1: what one side of the original sent and the other did not read."""
    ours = PaddleJob("n", "python t.py", "0" * 64, "i", 2, 1, 3, 1, "2Gi", 4, "5Gi", {"A": "b"})
    theirs = {
        "name": "n", "entry": "python t.py", "jobPackage": "0" * 64, "image": "i", "parallelism": 2,
        "pservers": 1, "cpu": 3, "gpu": 1, "memory": "2Gi", "pscpu": 4, "psmemory": "5Gi", "envs": {"A": "b"},
    }  # fmt: skip
    assert PaddleJob.from_json(theirs) == ours
    assert PaddleJob.from_json(dataclasses.asdict(ours)) == ours


@pytest.mark.parametrize(
    "name", ["minInstance", "min_instance", "maxInstance", "topology", "pservser", "x" * 99]
)
def test_an_unknown_field_is_refused_by_name(name: str) -> None:
    """D1, D4: nothing is silently dropped."""
    with pytest.raises(InvalidDocument) as refused:
        PaddleJob.from_json({**RUN, name: 1})
    assert name[:60] in str(refused.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    """Every wrong field is named, known and unknown ones together."""
    wrong = {
        "trainers": 0,
        "pservers": "two",
        "trainer_gpu": True,
        "trainer_mem": "lots",
        "env": {"1A": "b"},
        "image": 3,
        "volumes": [],
        "name": "a",
        "job_name": "b",
    }
    with pytest.raises(InvalidDocument) as refused:
        PaddleJob.from_json(wrong)
    assert paths_of(refused.value) == {
        "/trainers", "/pservers", "/trainer_gpu", "/trainer_mem", "/env", "/image", "/volumes", "/job_name",
    }  # fmt: skip


def test_without_an_entry_point_there_is_nothing_to_run() -> None:
    with pytest.raises(InvalidDocument) as refused:
        PaddleJob().document()
    assert paths_of(refused.value) == {"/entry_point"}


@given(st.dictionaries(st.sampled_from([*OTHER, "name", "memory", "zzz"]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)))  # fmt: skip
def test_any_request_is_a_job_or_a_list_of_problems(data: dict[str, Any]) -> None:
    try:
        job = PaddleJob.from_json(data)
    except InvalidDocument as error:
        assert error.problems
        return
    if job.entry_point:
        read(write(job.document()))
