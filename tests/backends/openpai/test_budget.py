"""At most so many calls in any minute, fewer while the server has few left."""

from __future__ import annotations

import asyncio

import pytest

from paijupyter.backends.openpai.budget import Budget


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


async def calls(budget: Budget, clock: Clock, count: int, *, background: bool = False) -> list[float]:
    found = []
    for _ in range(count):
        await budget.take(background=background)
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
async def test_what_nobody_waits_for_leaves_some_to_others(clock: Clock) -> None:
    budget = Budget(60, clock)
    assert budget.free() == 45
    await calls(budget, clock, 45, background=True)
    before = clock.now
    await calls(budget, clock, 15)
    assert clock.now == before
    assert budget.free() == 0


@pytest.mark.asyncio
async def test_a_server_that_counts_too_many_is_left_alone(clock: Clock) -> None:
    budget = Budget(60, clock)
    budget.shut(60)
    assert budget.free() == 0
    assert (await calls(budget, clock, 1))[0] >= 1060
