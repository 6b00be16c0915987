"""What a job would cost and when it would start (O30): from the profile's price, and its last run."""

from __future__ import annotations

import json

import pytest

from paijupyter.backends.base import Profile
from paijupyter.client.card import plan_facts
from paijupyter.jobs.estimate import estimate
from paijupyter.jobs.profiles import user_file

PAID = Profile("p", "local", {"pricePerGpuHour": 3, "currency": "EUR", "startEstimate": "20m"})
FORMER = {
    "name": "mnist-aaaaaa",
    "startedAt": "2026-01-01T10:00:00.000Z",
    "endedAt": "2026-01-01T10:30:00.000Z",
}


def test_the_price_of_a_run_is_that_of_the_last_one():
    found = estimate(PAID, 4, 7200, "after 2 jobs", FORMER)
    assert found == {
        "gpu": 4, "gpuHours": 2.0, "like": "mnist-aaaaaa", "perHour": 12.0, "cost": 6.0, "atMost": 24.0,
        "currency": "EUR", "startsInSeconds": 1200.0,
    }  # fmt: skip
    rows = dict(plan_facts({"name": "mnist", "starts": "after 2 jobs", "estimate": found}).rows)
    assert rows["starts"] == "after 2 jobs · usually within 20 min"
    assert rows["cost"] == (
        "12.00 EUR an hour · about 6.00 EUR, 2 GPU-h as mnist-aaaaaa took"
        " · at most 24.00 EUR within its time limit"
    )


@pytest.mark.parametrize(
    ("profile", "gpus", "starts", "known"),
    [
        (Profile("p", "local"), 0, "now", None),
        (PAID, 0, "now", None),
        (PAID, 0, "when running jobs have ended", {"gpu": 0, "startsInSeconds": 1200.0, "currency": ""}),
        (PAID, 2, "now", {"gpu": 2, "perHour": 6.0, "currency": "EUR"}),
        (Profile("p", "local"), 2, "now", {"gpu": 2, "currency": ""}),
        (Profile("p", "local", {"pricePerGpuHour": "x"}), 2, "now", {"gpu": 2, "currency": ""}),
    ],
)
def test_what_is_not_known_is_not_said(profile, gpus, starts, known):
    found = estimate(profile, gpus, None, starts, None)
    assert (found and {name: value for name, value in found.items() if value is not None}) == known


@pytest.mark.asyncio
async def test_the_plan_has_it_and_warns_of_a_price_that_is_none(bench, kit):
    gpus = kit.document().replace("gpu: 0", "gpu: 1")
    path = user_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"profiles": {"local": {"pricePerGpuHour": 2.5, "currency": "EUR"}}}))
    view = await bench.submit(document=gpus)
    bench.backend.emit(view["id"], "running")
    await bench.finish(view["id"])
    plan = await bench.service.plan(bench.request(document=gpus))
    assert (plan["estimate"]["gpu"], plan["estimate"]["perHour"]) == (3, 7.5)
    assert plan["estimate"]["like"] == view["name"] and plan["ok"]
    path.write_text(json.dumps({"profiles": {"local": {"pricePerGpuHour": "much"}}}))
    plan = await bench.service.plan(bench.request(document=gpus))
    assert plan["ok"] and [each["code"] for each in plan["problems"]] == ["profile-setting"]
