"""At most so many calls in any minute, fewer while the server has few left."""

from __future__ import annotations

import asyncio

import pytest

from paijupyter.backends.base import Profile
from paijupyter.backends.openpai.access import client_of
from paijupyter.backends.openpai.budget import ENGINE, Budget, Turn


class Clock:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return clock


async def calls(budget: Budget, clock: Clock, count: int, turn: Turn = Turn.LIST) -> list[float]:
    found = []
    for _ in range(count):
        await budget.take(turn)
        found.append(clock.now)
    return found


def most_in_a_minute(times: list[float]) -> int:
    return max(sum(start <= each < start + 60 for each in times) for start in times)


@pytest.mark.asyncio
async def test_no_more_in_any_minute(clock: Clock) -> None:
    times = await calls(Budget(60, clock), clock, 200)
    assert most_in_a_minute(times) == 60


@pytest.mark.asyncio
async def test_half_of_it_while_the_server_has_little_left(clock: Clock) -> None:
    budget = Budget(60, clock)
    budget.learn(120, 59)
    assert most_in_a_minute(await calls(budget, clock, 100)) == 30
    budget.learn(120, 60)
    assert budget.limit == 60


@pytest.mark.asyncio
async def test_who_is_less_urgent_leaves_some_to_the_others(clock: Clock) -> None:
    budget = Budget(60, clock)
    budget.keep("a profile", 7)
    before = clock.now
    free = []
    for turn in reversed(Turn):
        await calls(budget, clock, budget.free(turn), turn)
        free.append([budget.free(each) for each in Turn])
    assert clock.now == before
    assert free == [
        [30, 23, 16, 7, 0],
        [23, 16, 9, 0, 0],
        [14, 7, 0, 0, 0],
        [7, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]


@pytest.mark.asyncio
async def test_lists_have_room_whatever_else_is_asked(clock: Clock) -> None:
    """O32: their period is kept, while people ask as much as they may."""
    budget = Budget(60, clock)
    budget.keep("a profile", 7)
    for _ in range(20):
        await calls(budget, clock, budget.free(Turn.PERSON), Turn.PERSON)
        before = clock.now
        await calls(budget, clock, 1, Turn.LIST)
        assert clock.now == before
        clock.now += 10
    budget.keep("a profile", 0)
    assert budget.free(Turn.LIST) == budget.free(Turn.PERSON)


@pytest.mark.asyncio
async def test_a_server_that_counts_too_many_is_left_alone(clock: Clock) -> None:
    budget = Budget(60, clock)
    budget.shut(60)
    assert budget.free(Turn.LIST) == 0
    assert (await calls(budget, clock, 1))[0] >= 1060


def test_all_profiles_of_an_engine_share_their_calls() -> None:
    """O32: at most 60 a minute together; a profile that names a number of its own has those for itself."""
    first, second = (client_of(Profile(name, "openpai", {"url": "http://pai"})) for name in ("a", "b"))
    own = client_of(Profile("c", "openpai", {"url": "http://pai", "callsPerMinute": 90}))
    assert first.budget is second.budget is ENGINE
    assert own.budget is not ENGINE
