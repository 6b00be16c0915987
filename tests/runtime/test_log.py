"""The log is one append-only file whose offsets are always true (O30; architecture, "A log")."""

from __future__ import annotations

import os
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.runtime import room
from paijupyter.runtime.logfile import Log


def lines_of(path) -> list[list[int]]:
    return [[int(number) for number in line.split()] for line in path.read_text().splitlines()]


def test_output_is_there_while_the_task_runs(task, until):
    """O30: near real time, also without a newline at the end."""
    task.spec["command"] = f"mkfifo {task.home}/go; printf 'epoch 1'; read x < {task.home}/go; echo ' done'"
    task.start()
    until(lambda: task.log == "epoch 1")
    with open(task.home / "go", "w") as go:
        go.write("\n")
    assert task.end()["code"] == 0
    assert task.log == "epoch 1 done\n"


def test_the_index_points_into_the_log(task):
    record = task.run("for i in 1 2 3 4 5 6; do echo line $i; sleep 0.15; done")
    index = lines_of(task.folder / "log.index")
    size = (task.folder / "log").stat().st_size
    assert len(index) >= 2
    assert index == sorted(index)
    times = [milliseconds for _, milliseconds in index]
    assert all(later - earlier >= 249 for earlier, later in pairwise(times)), "at most one per 250 ms"
    for offset, milliseconds in index:
        assert 0 <= offset < size
        assert (task.folder / "log").read_bytes()[offset:].startswith(b"line ")
        assert record["startedAt"] * 1000 - 1 <= milliseconds <= record["endedAt"] * 1000


def test_the_log_is_capped_with_a_marker(task):
    task.spec["logLimitBytes"] = 1000
    record = task.run("for i in $(seq 1000); do echo line $i; done; exit 3")
    marker = "[paijupyter] The log reached its limit of 1000 bytes; the rest is left out.\n"
    assert task.log.endswith("\n" + marker)
    kept = task.log[: -len(marker)]
    assert 1000 <= len(kept) <= 1001
    assert record["lastLines"] == [f"line {i}" for i in range(981, 1001)], "the end is known all the same"


def test_much_output_arrives_whole(task):
    assert task.run("seq 400000")["code"] == 0
    assert (task.folder / "log").read_bytes() == "".join(f"{i}\n" for i in range(1, 400001)).encode()


def test_bytes_that_are_no_text_are_kept(task):
    record = task.run(r"printf '\xff\x00\x80 end\n'")
    assert (task.folder / "log").read_bytes() == b"\xff\x00\x80 end\n"
    assert record["lastLines"] == ["\ufffd\0\ufffd end"]


def test_last_lines_read_like_a_terminal(task):
    record = task.run(r"printf '10%%\r50%%\r100%%\nred\r\nno newline'; exit 1")
    assert record["lastLines"] == ["100%", "red", "no newline"]


def test_our_own_lines_stand_alone(task):
    task.spec["timeLimit"] = 2
    task.run("printf half; sleep 60")
    assert task.log.splitlines()[:2] == ["half", "[paijupyter] The task reached its time limit of 2 s."]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(0, 300))
def test_size_is_the_files_size_and_the_begin_is_the_output(tmp_path_factory, chunks, limit):
    folder = tmp_path_factory.mktemp("log")
    log = Log(str(folder), limit)
    for chunk in chunks:
        log.append(chunk)
        assert log.size == (folder / "log").stat().st_size
    log.close()
    data = b"".join(chunks)
    written = (folder / "log").read_bytes()
    if not limit or len(data) <= limit:
        assert written == data
    else:
        assert written.startswith(data[:limit])


def test_a_full_disk_does_not_end_the_task(tmp_path, monkeypatch):
    log = Log(str(tmp_path))
    log.append(b"before\n")
    real = os.write

    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    log.append(b"lost\n")
    monkeypatch.setattr(os, "write", real)
    log.append(b"after\n")
    log.close()
    assert log.problem == "No space left on device"
    marker = b"[paijupyter] The log goes on; 5 bytes are left out here.\n"
    assert (tmp_path / "log").read_bytes() == b"before\n" + marker + b"after\n"
    assert log.last_lines() == ["before", "lost", "after"]


def test_a_log_pauses_below_the_floor_and_goes_on_above_it(tmp_path, monkeypatch):
    """The last of the disk is the task's: a marker line where it stops, and one where it goes on."""
    free = [2**20]
    monkeypatch.setattr(room.Room, "_free", lambda self: free[0])
    monkeypatch.setattr(room, "LOOK_PERIOD", 0)
    log = Log(str(tmp_path), floor=2**20)
    log.append(b"one")
    free[0] -= 1
    log.append(b"two\n")
    log.append(b"three\n")
    assert log.last_lines() == ["onetwo", "three"]
    free[0] += 1
    log.append(b"four\n")
    log.close()
    assert (tmp_path / "log").read_text().splitlines() == [
        "one",
        "[paijupyter] The log pauses: less than 1 MiB of the disk are free.",
        "[paijupyter] The log goes on; 10 bytes are left out here.",
        "four",
    ]
    assert log.size == (tmp_path / "log").stat().st_size


def test_a_task_on_a_full_disk_succeeds_without_its_log(task):
    """A floor that no disk has: the log pauses, the command does not notice."""
    task.spec["logFloorBytes"] = 2**60
    record = task.run("for i in $(seq 1000); do echo line $i; done; touch $PAI_OUTPUT_DIR/done")
    assert (record["reason"], record["code"]) == ("", 0)
    assert (task.output / "done").exists()
    assert task.log.startswith("[paijupyter] The log pauses: less than 1099511627776 MiB")
    assert "line" not in task.log
    assert record["lastLines"][-1] == "line 1000"
    assert "The log is not complete: less than" in record["message"]


def test_the_room_is_looked_at_now_and_then_only(tmp_path):
    place = room.Room(str(tmp_path), 1)
    assert place.is_due(1)
    assert not any(place.is_due(room.LOOK_AFTER // 10) for _ in range(9))
    assert place.is_due(room.LOOK_AFTER)
    assert not place.has_come_short()
