"""Logs: any split of reads gives the same frames, and following loses nothing (O30)."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.errors import NotFound, UsageProblem
from paijupyter.jobs import merged, merging
from paijupyter.jobs.life import Life
from paijupyter.jobs.live import LiveJob
from paijupyter.jobs.merging import Cursor, LineBuffer
from paijupyter.jobs.record import Record

ROLES = [{"name": "a", "instances": 2}, {"name": "b-x", "instances": 1}]
TASKS = ("a-0", "a-1", "b-x-0")

lines = st.lists(
    st.sampled_from(
        [b"x\n", b"longer line\n", b"\xc3\xa4\xe2\x82\xac\n", b"50%\r", b"\xff\n", b"\n", b"no end"]
    ),
    max_size=12,
)
pieces = st.lists(st.tuples(st.integers(0, 9), lines.map(b"".join)), max_size=6)
logs = st.fixed_dictionaries({task: pieces for task in TASKS})


def write_logs(folder, found, attempt=0):
    """Write logs, each a list of (time after the one before, bytes)."""
    for task, parts in found.items():
        place = folder / "tasks" / task / str(attempt)
        place.mkdir(parents=True, exist_ok=True)
        content, index, time = b"", "", 1000
        for later, part in parts:
            time += later
            if part:
                index += f"{len(content)} {time}\n"
                content += part
        (place / "log").write_bytes(content)
        (place / "log.index").write_text(index)


def a_job(folder, life=None) -> LiveJob:
    facts = {
        "id": "j",
        "name": "j-1",
        "shortName": "j",
        "profile": "local",
        "submittedAt": "t",
        "roles": ROLES,
    }
    return LiveJob(Record(folder, facts), life or Life(state="succeeded"))


def read(job, **how):
    async def collect():
        return [frame async for frame in merged.merged_log(job, None, **how)]

    return asyncio.run(collect())


def texts(frames):
    found = dict.fromkeys(TASKS, "")
    for frame in frames:
        found[frame["task"]] += frame["text"]
    return found


@settings(max_examples=60, deadline=None)
@given(logs, st.integers(4, 40), st.data())
def test_any_split_of_reads_gives_the_same_frames(tmp_path_factory, found, size, data):
    folder = tmp_path_factory.mktemp("log")
    write_logs(folder, found)
    before = merging.FRAME, merging._LINE
    merging.FRAME, merging._LINE = size, 3
    try:
        whole = read(a_job(folder))
        split = data.draw(st.integers(0, len(whole)))
        first = whole[:split]
        rest = read(a_job(folder), cursor=first[-1]["cursor"] if first else None)
    finally:
        merging.FRAME, merging._LINE = before
    assert first + rest == whole
    for task, parts in found.items():
        content = b"".join(part for _, part in parts)
        offset = 0
        for frame in whole:
            if frame["task"] == task:
                assert frame["offset"] == offset
                offset = Cursor.of(frame["cursor"]).offsets[task]
        assert offset == len(content)


@settings(max_examples=60, deadline=None)
@given(logs)
def test_frames_hold_whole_lines_in_the_order_of_their_time(tmp_path_factory, found):
    folder = tmp_path_factory.mktemp("log")
    write_logs(folder, found)
    frames = read(a_job(folder))
    for number, frame in enumerate(frames):
        is_last = frame["task"] not in {later["task"] for later in frames[number + 1 :]}
        assert frame["text"].endswith("\n") or is_last
    assert texts(frames) == {
        task: b"".join(part for _, part in parts).decode("utf-8", "replace") for task, parts in found.items()
    }


@settings(max_examples=80, deadline=None)
@given(logs, st.integers(0, 12))
def test_a_tail_is_the_end_of_the_whole(tmp_path_factory, found, count):
    folder = tmp_path_factory.mktemp("log")
    write_logs(folder, found)
    whole, tail = texts(read(a_job(folder))), texts(read(a_job(folder), tail=count))

    def number(text):
        return text.count("\n") + (not text.endswith("\n") and bool(text))

    total = sum(number(text) for text in whole.values())
    assert all(whole[task].endswith(tail[task]) for task in TASKS)
    assert sum(number(text) for text in tail.values()) == min(count, total)


def test_lines_of_tasks_are_merged_by_time(tmp_path):
    write_logs(tmp_path, {"a-0": [(0, b"1\n"), (10, b"4\n")], "a-1": [(5, b"2\n"), (1, b"3\n")], "b-x-0": []})
    frames = read(a_job(tmp_path))
    assert [(frame["task"], frame["text"]) for frame in frames] == [
        ("a-0", "1\n"),
        ("a-1", "2\n3\n"),
        ("a-0", "4\n"),
    ]
    assert [(f["task"], f["text"]) for f in read(a_job(tmp_path), tail=2)] == [("a-1", "3\n"), ("a-0", "4\n")]


def test_a_piece_that_ends_within_a_line_goes_on_to_its_end(tmp_path):
    write_logs(tmp_path, {"a-0": [(0, b"one "), (1, b"line\n")], "a-1": [(0, b"x\n")], "b-x-0": []})
    assert [frame["text"] for frame in read(a_job(tmp_path))] == ["one line\n", "x\n"]


def test_attempts_come_one_after_the_other(tmp_path):
    write_logs(tmp_path, {"a-0": [(0, b"first\n")]}, 0)
    write_logs(tmp_path, {"a-0": [(0, b"second\n")]}, 1)
    job = a_job(tmp_path, Life(state="failed", attempt=1))
    frames = read(job)
    assert [(frame["attempt"], frame["text"]) for frame in frames] == [(0, "first\n"), (1, "second\n")]
    assert read(job, cursor=frames[0]["cursor"]) == frames[1:]
    assert read(job, cursor=frames[1]["cursor"]) == []
    assert [frame["text"] for frame in read(job, tail=5)] == ["second\n"]


def test_a_log_without_a_time_index_is_read_all_the_same(tmp_path):
    write_logs(tmp_path, {"a-0": [(0, b"x\n")]})
    (tmp_path / "tasks" / "a-0" / "0" / "log.index").unlink()
    assert [frame["text"] for frame in read(a_job(tmp_path))] == ["x\n"]
    (tmp_path / "tasks" / "a-0" / "0" / "log.index").write_bytes(b"x y\n5\n0 1000\n0 7\n99")
    assert [frame["text"] for frame in read(a_job(tmp_path))] == ["x\n"]


@pytest.mark.parametrize("cursor", ["?", "abc", "eJyLVorVUYqOBQAHNAHz", "W10="])
def test_a_foreign_cursor_is_a_usage_problem(tmp_path, cursor):
    with pytest.raises(UsageProblem):
        read(a_job(tmp_path), cursor=cursor)


@given(st.integers(0, 9), st.dictionaries(st.text(), st.integers(0, 2**50)))
def test_cursors_survive_their_text(attempt, offsets):
    assert Cursor.of(str(Cursor(attempt, offsets))) == Cursor(attempt, offsets)


@given(st.lists(st.binary(max_size=12) | st.sampled_from(["ä€😀\n".encode(), b"a\rb"]), max_size=12))
def test_a_line_buffer_gives_every_byte_once(chunks):
    buffer, frames = LineBuffer(5), []
    for number, chunk in enumerate(chunks):
        frames += buffer.add(chunk)
        if number % 3 == 2:
            frames += buffer.flush()
    frames += buffer.end()
    content = b"".join(chunks)
    assert b"".join(part for _, part in frames) == content
    offset = 5
    for start, part in frames:
        assert start == offset and part
        offset += len(part)
    assert not buffer.pending


def test_a_flushed_line_keeps_characters_whole():
    buffer = LineBuffer(0)
    assert buffer.add("ab€".encode()[:-1]) == []
    assert buffer.flush() == [(0, b"ab")]
    assert buffer.add(b"\xac\n") == [(2, "€\n".encode())]


@pytest.mark.parametrize("size", [1, 7, 1 << 16, (1 << 16) + 1, 300_000])
def test_lines_longer_than_a_frame_are_cut_between_characters(tmp_path, size):
    content = "€" * size
    write_logs(tmp_path, {"a-0": [(0, content.encode())]})
    frames = read(a_job(tmp_path))
    assert "".join(frame["text"] for frame in frames) == content


# -- through the service ------------------------------------------------------------------------------


async def all_of(stream):
    return b"".join([chunk async for chunk in stream])


@pytest.mark.asyncio
async def test_one_log_is_read_from_an_offset(bench):
    view = await bench.submit()
    bench.write(view, "tasks/worker-0/0/log", b"0123456789")
    assert await all_of(bench.service.logs("mnist", "worker-0")) == b"0123456789"
    assert await all_of(bench.service.logs("mnist", "worker-0", offset=7)) == b"789"
    assert await all_of(bench.service.logs("mnist", "worker-0", offset=70)) == b""
    assert await all_of(bench.service.logs("mnist", "worker-1")) == b""
    assert bench.service.log_size("mnist", "worker-0") == 10
    assert bench.service.tasks("mnist")["tasks"][0]["logSize"] == 10


@pytest.mark.asyncio
@pytest.mark.parametrize("task", ["worker-2", "nobody-0", "worker", "worker--1", "../../job.json", ""])
async def test_only_tasks_of_the_job_have_logs(bench, task):
    await bench.submit()
    with pytest.raises(NotFound):
        bench.service.log_size("mnist", task)
    with pytest.raises(NotFound):
        await all_of(bench.service.logs("mnist", task))


@pytest.mark.asyncio
async def test_following_one_log_goes_on_to_its_end(bench, kit):
    view = await bench.submit()
    stream = bench.service.logs("mnist", "worker-0", follow=True)
    reading = asyncio.create_task(all_of(stream))
    path = bench.write(view, "tasks/worker-0/0/log", b"")
    for number in range(5):
        with path.open("ab") as file:
            file.write(b"line %d\n" % number)
        await asyncio.sleep(0)
    bench.backend.log_end.set()
    assert await reading == b"".join(b"line %d\n" % number for number in range(5))


@pytest.mark.asyncio
async def test_a_backend_that_never_ends_a_log_does_not_hold_its_readers(bench, monkeypatch):
    monkeypatch.setattr("paijupyter.jobs.logs._LAST_WORDS", 0.01)
    view = await bench.submit()

    async def logs(*_):
        await asyncio.Event().wait()
        yield b""

    bench.backend.logs = logs
    reading = asyncio.create_task(all_of(bench.service.logs("mnist", "worker-0", follow=True)))
    bench.write(view, "tasks/worker-0/0/log", b"all of it\n")
    await bench.finish("mnist")
    assert await reading == b"all of it\n"


@pytest.mark.asyncio
async def test_following_all_logs_through_two_attempts(bench, kit):
    view = await bench.submit()
    bench.write(view, "tasks/worker-0/0/log", b"before\n")
    frames = []

    async def follow():
        async for frame in bench.service.merged_log("mnist", follow=True):
            frames.append(frame)

    following = asyncio.create_task(follow())
    await kit.eventually(lambda: frames)
    bench.write(view, "tasks/worker-1/0/log", b"beside\nbar 50%\rbar")
    await kit.eventually(lambda: "".join(f["text"] for f in frames).endswith("bar"))
    bench.backend.log_end.set()
    bench.backend.emit(view["id"], "waiting", "retry-delay", attempt=1)
    await kit.eventually(lambda: bench.service.get("mnist")["attempt"] == 1)
    bench.write(view, "tasks/ps-0/1/log", b"after\n")
    bench.write(view, "tasks/ps-0/1/log.index", "0 1000\n")
    await kit.eventually(lambda: frames[-1]["attempt"] == 1)
    await bench.finish("mnist", attempt=1)
    await following
    whole = {(f["attempt"], f["task"]): "" for f in frames}
    for frame in frames:
        whole[frame["attempt"], frame["task"]] += frame["text"]
    assert whole == {
        (0, "worker-0"): "before\n",
        (0, "worker-1"): "beside\nbar 50%\rbar",
        (1, "ps-0"): "after\n",
    }
    rest = [frame async for frame in bench.service.merged_log("mnist", cursor=frames[0]["cursor"])]
    assert "".join(frame["text"] for frame in rest) == "".join(frame["text"] for frame in frames[1:])


@pytest.mark.asyncio
async def test_following_a_final_job_reads_it_and_ends(bench):
    view = await bench.submit()
    bench.write(view, "tasks/ps-0/0/log", b"x\n")
    await bench.finish("mnist")
    frames = [frame async for frame in bench.service.merged_log("mnist", follow=True)]
    assert [frame["text"] for frame in frames] == ["x\n"]


@pytest.mark.asyncio
async def test_a_follower_that_goes_away_leaves_nothing_running(bench, kit):
    view = await bench.submit()
    bench.write(view, "tasks/worker-0/0/log", b"x\n")
    before = asyncio.all_tasks()
    stream = bench.service.merged_log("mnist", follow=True)
    assert (await anext(stream))["text"] == "x\n"
    await stream.aclose()
    await kit.eventually(lambda: asyncio.all_tasks() <= before)


@pytest.mark.asyncio
async def test_a_log_that_breaks_off_is_taken_up_again(bench, monkeypatch):
    monkeypatch.setattr(merged, "_PAUSE", 0.01)
    await bench.submit()
    tries = []

    async def logs(job, role, index, attempt, offset):
        tries.append((role, offset))
        if len(tries) < 7:
            raise ConnectionError("gone")
        if (role, index) == ("worker", 1):
            yield b"at last\n"[offset:]

    bench.backend.logs = logs
    stream = bench.service.merged_log("mnist", follow=True)
    assert (await anext(stream))["text"] == "at last\n"
    await stream.aclose()


counted = st.fixed_dictionaries(
    {task: st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=6) for task in TASKS}
)


@settings(max_examples=60, deadline=None)
@given(counted, st.integers(0, 9), st.sampled_from(TASKS), st.data())
def test_from_a_line_on_lines_come_as_from_the_start(tmp_path_factory, found, before, task, data):
    """O31: a link to a line, or a hit of a search, leads into the middle of the merged log."""
    folder = tmp_path_factory.mktemp("log")
    number = itertools.count()
    write_logs(
        folder,
        {
            key: [(later, b"".join(b"%d\n" % next(number) for _ in range(many))) for later, many in parts]
            for key, parts in found.items()
        },
    )
    content = (folder / "tasks" / task / "0" / "log").read_bytes()
    line = data.draw(st.sampled_from([0, *(at + 1 for at, byte in enumerate(content) if byte == 10)]))
    known = merging.BEFORE
    merging.BEFORE = before
    try:
        part = "".join(frame["text"] for frame in read(a_job(folder), line=(0, task, line)))
    finally:
        merging.BEFORE = known
    whole = "".join(frame["text"] for frame in read(a_job(folder))).splitlines()
    places = [whole.index(each) for each in part.splitlines()]
    assert places == sorted(places)
    if line < len(content):
        wanted = whole.index(content[line:].split(b"\n")[0].decode())
        assert part.splitlines()[-len(whole) + wanted :] == whole[wanted:]


@pytest.mark.asyncio
async def test_times_come_from_the_index(bench):
    """O31: times of lines, with what is known of them and no more."""
    job = await bench.submit("when")
    bench.write(job, "tasks/worker-0/0/log", "one\ntwo\nthree\nfour\n")
    bench.write(job, "tasks/worker-0/0/log.index", "0 1000\n4 1500\n8 9000\n")
    whole = bench.service.whole_logs
    found = await whole.times(job["id"], [("worker-0", 5)])
    assert found == {
        "attempt": 0,
        "tasks": [{"task": "worker-0", "offsets": [4, 8], "times": [1500, 9000], "until": 19}],
    }
    found = await whole.times(job["id"], [("worker-0", 0)], 0, most=2)
    assert found["tasks"][0]["offsets"] == [0, 4] and found["tasks"][0]["until"] == 8
    found = await whole.times(job["id"], [("worker-1", 0)])
    assert found["tasks"] == [{"task": "worker-1", "offsets": [], "times": [], "until": 0}]
    with pytest.raises(NotFound):
        await whole.times(job["id"], [("other-0", 0)])
    with pytest.raises(NotFound):
        await whole.times(job["id"], [("worker-0", 0)], 3)
    with pytest.raises(NotFound):
        [frame async for frame in bench.service.merged_log(job["id"], line=(0, "other-0", 0))]
