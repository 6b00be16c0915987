"""Names that Kubernetes takes, whatever people call their jobs and roles (P1, T9)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs import job_of, role

from paijupyter.backends.kubernetes import labels, names
from paijupyter.protocol import with_suffix

LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")  # RFC 1035, which Services want
VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
NAMES = st.text(min_size=1, max_size=120)
ROLES = st.text(min_size=1, max_size=90)


@given(NAMES)
def test_the_base_is_a_label_and_short(name: str) -> None:
    found = names.base(name)
    assert LABEL.fullmatch(found)
    assert len(found) <= 40


@given(st.from_regex(r"[A-Za-z0-9_-]{1,100}", fullmatch=True))
def test_the_suffix_that_makes_a_job_unique_survives(short: str) -> None:
    """P1."""
    full = with_suffix(short)
    assert names.base(full).endswith(full[-7:])


@given(NAMES, st.integers(0, 999), ROLES, st.integers(1, 100_000))
def test_the_last_pod_of_a_role_still_has_a_host_name(name: str, attempt: int, role: str, many: int) -> None:
    """A Job's name is the head of its pods' host names, and a label of theirs."""
    base = names.base(name)
    job = names.job_name(base, attempt, role, many)
    assert LABEL.fullmatch(job)
    assert len(f"{job}-{many - 1}") <= 63
    inside = f"{base}-a{attempt}-{names.jobset_role(base, attempt, role, many)}-0-{many - 1}-xxxxx"
    assert LABEL.fullmatch(inside)
    assert len(inside) <= 63


@given(st.lists(ROLES, min_size=2, max_size=6, unique=True))
def test_different_roles_have_different_jobs(roles: list[str]) -> None:
    found = [names.job_name("train-abc234", 0, each, 8) for each in roles]
    assert len(set(found)) == len(found)


@given(st.text(max_size=100))
def test_a_label_takes_any_text(text: str) -> None:
    found = names.label_value(text)
    assert VALUE.fullmatch(found)
    assert len(found) <= 63


def test_plain_names_stay_as_they_are() -> None:
    assert names.base("train-abc234") == "train-abc234"
    assert names.job_name("train-abc234", 0, "worker", 4) == "train-abc234-a0-worker"
    assert names.label_value("ada") == "ada"


@pytest.mark.parametrize("name", ["2nd-try-abc234", "Übung-abc234", "a_b-abc234", "___", "-"])
def test_other_names_become_valid(name: str) -> None:
    assert LABEL.fullmatch(names.base(name))


def test_every_task_has_a_host_of_its_own() -> None:
    """P27, O24: names, never addresses."""
    job = job_of({"ps": role(1), "worker": role(2)})
    assert names.hosts(job, 1) == {
        "ps-0": "train-abc234-a1-ps-0.train-abc234",
        "worker-0": "train-abc234-a1-worker-0.train-abc234",
        "worker-1": "train-abc234-a1-worker-1.train-abc234",
    }
    assert names.hosts(job, 0, jobset=True)["worker-1"] == "train-abc234-a0-worker-0-1.train-abc234"


def test_labels_select_a_job() -> None:
    job = job_of({"worker": role()})
    assert labels.of_job(job)[labels.USER] == names.label_value("ada@example")
    assert labels.GROUP not in labels.of_job(job)
    of_group = labels.of_job(replace(job, group="g1", experiment="a b"))
    # T5, T9: an experiment is known by its group and its key, also to who selects by label.
    assert of_group[labels.GROUP] == "g1" and of_group[labels.EXPERIMENT] == names.label_value("a b")
    assert labels.of_job_id(job.id) == f"{labels.MANAGED_BY}=paijupyter,{labels.JOB}=2233445566aabbccdd"


def test_a_task_alone_knows_itself_by_its_pod() -> None:
    """D5: it has no Service, so no other name of it is known anywhere."""
    assert names.hosts(job_of({"worker": role()}), 0) == {"worker-0": "train-abc234-a0-worker-0"}
    assert names.hosts(job_of({"worker": role(2)}), 1)["worker-1"] == "train-abc234-a1-worker-1.train-abc234"
