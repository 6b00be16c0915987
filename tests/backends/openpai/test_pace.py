"""When a profile asks for its list: jitter, halving, and at most 60 calls in any minute (O32).

The loop is the real one, with the real budget; the clock is moved by what waits, and chance is seeded.
"""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from paijupyter.backends.base import Place, Profile
from paijupyter.backends.openpai import budget as budgets
from paijupyter.backends.openpai import hub as hubs
from paijupyter.backends.openpai.backend import OpenPaiBackend
from paijupyter.backends.openpai.budget import Budget, Turn


class Enough(BaseException):
    """Ends the loop; it is no error, which the loop would outlive."""


class Engine:
    """The loop of an engine of its own, on a clock of its own.

    Args:
        place: of the backend's data.
        poll: the profile's period.
        seed: of its chance.
        took: seconds that an answer takes.

    Attributes:
        asked: when each list was asked for.
        calls: when any call was made.
        busy: whether all others ask for as much as they may, too.
        hurried: whether somebody is always in a hurry.
    """

    def __init__(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, poll: float, seed: int = 1, took: float = 0.0
    ) -> None:
        self.now = 1000.0
        self.asked: list[float] = []
        self.calls: list[float] = []
        self.busy = self.hurried = False
        self._patch = monkeypatch
        self._seed, self._took = seed, took
        profile = Profile("pai", "openpai", {"url": "http://pai.invalid", "pollSeconds": poll})
        self.hub = OpenPaiBackend(profile, place)._hub
        self.budget = self.hub._server.client.budget = Budget(clock=lambda: self.now)

    async def lists(self, count: int) -> list[float]:
        """Let it ask for a number of lists; return the seconds between them."""

        async def pass_by(seconds: float) -> None:
            self.now += seconds

        async def happens(event: asyncio.Event, seconds: float) -> bool:
            if not self.hurried:
                self.now += seconds
            return self.hurried

        async def poll() -> None:
            for turn in list(Turn)[1:] if self.busy else ():
                for _ in range(self.budget.free(turn)):
                    await self._call(turn)
            await self._call(Turn.LIST)
            self.asked.append(self.now)
            self.now += self._took
            if len(self.asked) > count:
                raise Enough

        random.seed(self._seed)
        with self._patch.context() as patch:
            patch.setattr(hubs, "time", SimpleNamespace(monotonic=lambda: self.now))
            patch.setattr(hubs, "happens", happens)
            patch.setattr(asyncio, "sleep", pass_by)
            patch.setattr(self.hub, "_poll", poll)
            self.budget.keep(self.hub, 60 / (self.hub.period * 0.9) + 1)
            with pytest.raises(Enough):
                await self.hub._poll_on()
        return [after - before for before, after in zip(self.asked, self.asked[1:], strict=False)]

    async def _call(self, turn: Turn) -> None:
        await self.budget.take(turn)
        self.calls.append(self.now)


@pytest.fixture(autouse=True)
def _chance() -> Iterator[None]:
    """Leave chance as it was."""
    state = random.getstate()
    yield
    random.setstate(state)


def most_in_a_minute(times: list[float]) -> int:
    return max(sum(start <= each < start + 60 for each in times) for start in times)


def together(first: Engine, second: Engine) -> int:
    """Return how many lists were asked for within a tenth of a second of one of the other's."""
    return sum(any(abs(mine - theirs) < 0.1 for theirs in second.asked) for mine in first.asked)


@pytest.mark.asyncio
@pytest.mark.parametrize(("poll", "period"), [(30, 30), (10, 10), (4, 4), (1, 4)])
async def test_periods_are_spread_over_their_last_tenth(
    place: Place, monkeypatch: pytest.MonkeyPatch, poll: float, period: float
) -> None:
    """O32: also where the shortest period is taken, which the calls of a minute allow."""
    times = await Engine(place, monkeypatch, poll).lists(200)
    assert min(times) >= 0.9 * period - 1e-9
    assert max(times) <= period + 1e-9
    assert max(times) - min(times) > 0.09 * period
    assert statistics.mean(times) == pytest.approx(0.95 * period, abs=0.01 * period)


@pytest.mark.asyncio
@pytest.mark.parametrize("poll", [10, 1])
async def test_two_engines_do_not_ask_in_step(
    place: Place, monkeypatch: pytest.MonkeyPatch, poll: float
) -> None:
    """O32: they begin in the same moment; those of one seed stay together: it would be seen."""
    first, second, twin = (Engine(place, monkeypatch, poll, seed) for seed in (1, 2, 1))
    for engine in (first, second, twin):
        await engine.lists(200)
    assert together(first, twin) == 201
    assert together(first, second) < 30


@pytest.mark.asyncio
async def test_an_answer_that_takes_long_comes_within_the_period(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it took is left out of the pause, down to half a period."""
    times = await Engine(place, monkeypatch, 10, took=3).lists(100)
    assert 6 - 1e-9 <= min(times) < max(times) <= 7 + 1e-9
    assert max(times) - min(times) > 0.5


@pytest.mark.asyncio
@pytest.mark.parametrize(("poll", "full", "halved"), [(1, 4, 8), (10, 10, 10)])
async def test_half_the_calls_while_the_server_has_few_left(
    place: Place, monkeypatch: pytest.MonkeyPatch, poll: float, full: float, halved: float
) -> None:
    engine = Engine(place, monkeypatch, poll)
    engine.busy = True
    engine.budget.learn(120, 59)
    times = await engine.lists(60)
    assert 0.9 * halved - 1e-9 <= min(times) < max(times) <= halved + 1e-9
    assert 20 < most_in_a_minute(engine.calls) <= 30
    later = Engine(place, monkeypatch, poll)
    later.busy = True
    later.budget.learn(120, 59)
    later.budget.learn(120, 60)
    times = await later.lists(60)
    assert 0.9 * full - 1e-9 <= min(times) < max(times) <= full + 1e-9
    assert 50 < most_in_a_minute(later.calls) <= 60


@pytest.mark.asyncio
@pytest.mark.parametrize("chance", ["least", "most", "any"])
@pytest.mark.parametrize("hurried", [False, True])
@pytest.mark.parametrize("poll", [1, 10])
async def test_never_more_than_sixty_calls_in_any_minute(
    place: Place, monkeypatch: pytest.MonkeyPatch, poll: float, hurried: bool, chance: str
) -> None:
    """O32: with jitter at its worst, all others asking for all they may, and always in a hurry."""
    worst = {"least": lambda low, high: low, "most": lambda low, high: high}.get(chance)
    if worst is not None:
        for module in (hubs, budgets):
            monkeypatch.setattr(module, "random", SimpleNamespace(uniform=worst))
    engine = Engine(place, monkeypatch, poll)
    engine.busy, engine.hurried = True, hurried
    times = await engine.lists(120)
    assert most_in_a_minute(engine.calls) <= 60
    assert max(times) <= engine.hub.period + 1e-9  # and the list keeps its period
    if hurried:
        assert min(times) >= 0.9 * 4 - 1e-9
