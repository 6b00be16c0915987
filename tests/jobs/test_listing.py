"""Lists by page, and the event stream that goes with them."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import PaiJupyterError, UsageProblem
from paijupyter.jobs.events import EventBus
from paijupyter.jobs.identity import is_id, new_id


@pytest.mark.asyncio
async def test_pages_hold_every_job_once_latest_first_though_jobs_are_added(bench):
    jobs = [await bench.submit(f"j{number}") for number in range(7)]
    seen, cursor = [], None
    while True:
        page = bench.service.list(limit=3, cursor=cursor)
        seen += [job["id"] for job in page["jobs"]]
        await bench.submit("meanwhile")
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [job["id"] for job in reversed(jobs)]


@pytest.mark.asyncio
async def test_filters(bench):
    one = await bench.submit("one", context={"user": "a", "folder": "/x"})
    two = await bench.submit("two")
    await bench.finish(two["id"])

    def ids(**filters):
        return [job["id"] for job in bench.service.list(**filters)["jobs"]]

    assert ids(state="succeeded") == [two["id"]]
    assert ids(state="waiting,running") == [one["id"]]
    assert ids(folder="/x") == [one["id"]]
    assert ids(profile="local") == [two["id"], one["id"]]
    assert ids(profile="other") == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "wrong", [{"state": "flying"}, {"limit": 0}, {"limit": 5000}, {"cursor": "?"}, {"cursor": "YQ=="}]
)
async def test_wrong_questions_are_usage_problems(bench, wrong):
    with pytest.raises(UsageProblem):
        bench.service.list(**wrong)


@pytest.mark.asyncio
async def test_thousands_of_finished_jobs_are_listed_without_opening_a_folder(bench, monkeypatch):
    view = await bench.submit()
    await bench.finish(view["id"])
    index = bench.service._catalog.index
    row = index.get(view["id"])
    from dataclasses import replace

    index.put(replace(row, id=new_id(), name=f"n{number}") for number in range(5000))
    bench.service._catalog._looked = time.monotonic() + 1000

    def no_reading(*_):
        raise AssertionError("a list opened a folder")

    monkeypatch.setattr("paijupyter.jobs.record.read", no_reading)
    total, cursor = 0, None
    while True:
        page = bench.service.list(limit=1000, cursor=cursor)
        total += len(page["jobs"])
        cursor = page["next"]
        if cursor is None:
            break
    assert total == 5001


@pytest.mark.asyncio
async def test_a_list_and_the_events_after_it_miss_nothing(bench):
    one = await bench.submit("one")
    page = bench.service.list()
    two = await bench.submit("two")
    await bench.finish(one["id"])
    known = {job["id"]: job for job in page["jobs"]}
    for event in bench.service.events.since(page["seq"]):
        known[event["job"]["id"]] = event["job"]
    assert known == {job["id"]: job for job in bench.service.list()["jobs"]}
    assert two["id"] in known


def test_numbers_begin_with_the_time_and_count_by_one():
    before = int(time.time() * 1000)
    bus = EventBus()
    assert before <= bus.seq <= int(time.time() * 1000)
    start = bus.seq
    assert [bus.publish({"type": "deleted", "id": str(n)}) for n in range(3)] == [
        start + 1,
        start + 2,
        start + 3,
    ]
    assert [event["id"] for event in bus.since(start + 1)] == ["1", "2"]
    assert bus.since(bus.seq) == []


@given(st.integers(1, 5), st.integers(0, 12), st.integers(-3, 15))
def test_since_gives_all_or_says_that_some_are_gone(kept, published, back):
    bus = EventBus(kept)
    start = bus.seq
    for number in range(published):
        bus.publish({"n": number})
    asked = start + back
    if asked > bus.seq or asked < max(start, bus.seq - kept):
        with pytest.raises(PaiJupyterError) as caught:
            bus.since(asked)
        assert (caught.value.code, caught.value.status) == ("events-gone", 410)
    else:
        assert [event["n"] for event in bus.since(asked)] == list(range(back, published))


@pytest.mark.asyncio
async def test_followers_get_everything_in_order_and_end_with_the_bus():
    bus = EventBus()
    start = bus.seq

    async def read():
        return [event["n"] async for event in bus.follow(start)]

    readers = [asyncio.create_task(read()) for _ in range(3)]
    for number in range(50):
        bus.publish({"n": number})
        if number % 7 == 0:
            await asyncio.sleep(0)
    bus.close()
    assert await asyncio.gather(*readers) == [list(range(50))] * 3
    assert bus.readers == 0


@pytest.mark.asyncio
async def test_a_reader_that_is_too_slow_is_told():
    bus = EventBus(kept=3)
    stream = bus.follow(bus.seq)
    bus.publish({"n": 0})
    assert (await anext(stream))["n"] == 0
    for number in range(10):
        bus.publish({"n": number})
    with pytest.raises(PaiJupyterError, match="no longer kept"):
        await anext(stream)


def test_ids_are_unique_sorted_by_time_and_safe_as_names(monkeypatch):
    ids = [new_id() for _ in range(5000)]
    assert ids == sorted(set(ids)) and all(is_id(each) for each in ids)
    monkeypatch.setattr("time.time", lambda: 0.0)  # the clock goes back
    assert new_id() > ids[-1]
    assert not is_id(".new-x") and not is_id("A" * 18) and not is_id("")
