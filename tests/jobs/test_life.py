"""States fold from events alone, and a final one is never left (O32)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.backends.base import FINAL, Change, Exit, TaskStatus
from paijupyter.jobs.life import Life, event_of, fold

STATES = ("waiting", "running", "succeeded", "failed", "stopped")
ROLES = {"worker": 3, "ps-x": 1}

tasks = st.builds(
    TaskStatus,
    role=st.sampled_from(["worker", "ps-x", "other"]),
    index=st.integers(0, 4),
    attempt=st.integers(0, 2),
    state=st.sampled_from(STATES),
    reason=st.sampled_from(["", "user"]),
    exit=st.none() | st.builds(Exit, code=st.none() | st.integers(0, 255), last_lines=st.just(("x",))),
    started_at=st.none() | st.floats(0, 2e9),
)
changes = st.builds(
    Change,
    job=st.just("j"),
    attempt=st.integers(0, 2),
    state=st.sampled_from(STATES),
    at=st.floats(0, 2e9),
    reason=st.sampled_from(["", "queued", "user"]),
    tasks=st.lists(tasks, max_size=4).map(tuple),
    failed_task=st.none() | st.just("worker-1"),
)
own = st.sampled_from(
    [
        {"type": "created", "at": "2026-01-01T00:00:00.000Z"},
        {"type": "submitted", "at": "2026-01-01T00:00:01.000Z"},
        {"type": "stop-requested", "at": "2026-01-01T00:00:02.000Z", "by": "user"},
        {"type": "of a later version"},
        {"type": "change", "state": "flying"},
        {"type": "change", "state": "running", "attempt": "x", "tasks": 3},
        {},
    ]
)
events = st.lists(own | changes.map(event_of), max_size=25)


@given(events)
def test_the_same_events_from_memory_and_from_disk_give_the_same_life(found):
    assert fold(json.loads(json.dumps(event)) for event in found) == fold(found)


@given(events)
def test_a_final_state_is_never_left(found):
    life, final = Life(), None
    for event in found:
        life = life.after(event)
        if final is not None:
            assert (life.state, life.reason, life.message, life.ended_at, life.attempt) == final
        elif life.final:
            final = (life.state, life.reason, life.message, life.ended_at, life.attempt)
            assert life.ended_at is not None


@given(events)
def test_every_event_told_twice_changes_nothing_more(found):
    """Adoption sends the present state again."""
    life = Life()
    for event in found:
        once = life.after(event)
        assert once.after(event) == once
        life = once


@given(events)
def test_counts_are_of_all_tasks_and_a_final_job_has_none_that_runs(found):
    life = fold(found)
    counts = life.counts(ROLES)
    assert {role: sum(states.values()) for role, states in counts.items()} == ROLES
    if life.final:
        assert not {"waiting", "running"} & {state for states in counts.values() for state in states}
    for role, instances in ROLES.items():
        one_by_one = [life.task(f"{role}-{index}")["state"] for index in range(instances)]
        assert counts[role] == {state: one_by_one.count(state) for state in set(one_by_one)}


@given(events)
def test_a_life_only_ever_gets_later_attempts(found):
    life = Life()
    for event in found:
        after = life.after(event)
        assert after.attempt >= life.attempt
        life = after


def change(state, **more):
    return event_of(Change("j", more.pop("attempt", 0), state, more.pop("at", 1.0), **more))


def test_a_wish_to_stop_shows_until_the_end():
    asked = {"type": "stop-requested", "at": "t", "by": "user"}
    life = fold([change("running"), asked])
    assert (life.state, life.reason) == ("running", "stopping")
    life = life.after(change("running", at=2.0))
    assert life.reason == "stopping"
    life = life.after(change("stopped", at=3.0))
    assert (life.state, life.reason, life.stopped_by) == ("stopped", "user", "user")


def test_a_job_that_never_ran_has_no_start():
    assert fold([change("waiting", reason="queued"), change("stopped")]).started_at is None
    assert fold([change("running"), change("failed")]).started_at == "1970-01-01T00:00:01.000Z"


@pytest.mark.parametrize("state", sorted(FINAL))
def test_since_is_the_time_of_the_last_change_of_state_or_reason(state):
    life = fold([change("running", at=1), change("running", at=2, message="more")])
    assert life.since == "1970-01-01T00:00:01.000Z"
    assert life.after(change(state, at=3)).since == "1970-01-01T00:00:03.000Z"


def test_a_job_that_was_lost_in_a_later_attempt_has_failed():
    life = fold([change("running", attempt=2), change("running", attempt=1), change("failed", reason="lost")])
    assert (life.state, life.reason, life.attempt) == ("failed", "lost", 2)


def test_the_next_attempt_begins_with_all_tasks_waiting():
    ended = (TaskStatus("worker", 0, 0, "failed"),)
    life = fold([change("running", tasks=ended), change("waiting", attempt=1, reason="retry-delay")])
    assert life.counts({"worker": 2}) == {"worker": {"waiting": 2}}
    assert life.task("worker-0", 0)["state"] == "failed"
    assert life.task("worker-1", 0)["state"] == "stopped"
