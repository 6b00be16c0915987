"""Metrics and progress from the log and the metrics file (O30): what a line says, which source wins, ETA."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.jobs.metrics import BACKLOG, NAMES, POINTS, STEP, Metrics
from paijupyter.jobs.progress import Progress
from paijupyter.jobs.readings import LONGEST, Count, read_line, read_object
from paijupyter.jobs.tail import Tail


def values(line):
    return read_line(line.encode()).values


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "loss: 0.1433 - accuracy: 0.91 - val_loss: 2e-3",
            {"loss": 0.1433, "accuracy": 0.91, "val_loss": 2e-3},
        ),
        ("epoch done loss=0.5, acc=97.5%", {"loss": 0.5, "acc": 97.5}),
        ("Epoch 7: 412/1875 loss 0.1433", {"loss": 0.1433}),
        ("{'loss': 0.5, 'learning_rate': 5e-05}", {"loss": 0.5, "learning_rate": 5e-05}),
        ('{"loss": 1, "note": "x", "ok": true}', {"loss": 1, "note": "x", "ok": True}),
        ("\x1b[32mloss\x1b[0m: \x1b[1m0.25\x1b[0m", {"loss": 0.25}),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.300039", {"Epoch": 1, "Loss": 2.300039}),
        ("reward=-1.5.", {"reward": -1.5}),
        # Not everything with a number is a metric.
        ("2026-01-02 12:30:11 INFO at http://localhost:8080, pid=12 port: 6006", {}),
        ("version=3 seed: 7 v_num=0", {}),
        ("loss of 3 parcels", {}),
        ("loss=0x1f mode=1d", {}),
        ("[paijupyter] loss=3", {}),
        ("x" * LONGEST + " loss=1", {}),
        ("no number", {}),
    ],
)
def test_numbers_of_a_line(line, expected):
    assert values(line) == expected


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("Epoch 3/20", [("epoch", 3, 20)]),
        ("epoch [3 of 20]", [("epoch", 3, 20)]),
        ("step 10/100", [("step", 10, 100)]),
        ("Iter 12/100: f=3", [("iteration", 12, 100)]),
        ("Epoch [3/20], Step [100/600], Loss: 0.2", [("epoch", 3, 20), ("step", 100, 600)]),
        ("412/1875 ━━━━━━━━━━━━━━━━━━━━ 2s 5ms/step - loss: 0.3", [("step", 412, 1875)]),
        (" 412/1875 [=====>......] - ETA: 3s - loss: 0.1433", [("step", 412, 1875, 3.0)]),
        (" 45%|████▌     | 45/100 [00:03<01:04, 12.3it/s, loss=0.1]", [("iteration", 45, 100, 64.0)]),
        ("  5%|▌         | 5/100 [00:10<03:00,  1.9s/it]", [("iteration", 5, 100, 180.0)]),
        (
            "Epoch 3/20:  45%|###5 | 45/100 [00:03<00:04, 9it/s]",
            [("epoch", 3, 20), ("iteration", 45, 100, 4.0)],
        ),
        ("data: 50%|█████     | 1.2k/2.4k [00:03<00:03, 300B/s]", [("B", 1200, 2400, 3.0)]),
        ("Epoch 7: 412/1875 loss 0.1", [("step", 412, 1875)]),
        ('{"epoch": 2, "epochs": 5, "step": 1, "max_steps": 10}', [("epoch", 2, 5), ("step", 1, 10)]),
        ("see /a/step 1/2/3", []),
        ("files 3/4", []),
        ("epoch 9/3", []),
    ],
)
def test_how_far_a_line_says_the_work_is(line, counts):
    assert read_line(line.encode()).counts == tuple(Count(*count) for count in counts)


@given(
    st.binary(max_size=300)
    | st.text(alphabet="epoch step=:1/%|[{<e-+.nainf \"'x", max_size=200).map(str.encode)
)
def test_no_line_ends_in_an_error(line):
    read_line(line)


@given(
    st.sampled_from(["a=", "1:", "a_loss/", "epoch 1 ", "5%|", "1/", "x-", "{", "loss ", "[1/"]),
    st.integers(1, 3000),
)
def test_no_line_takes_long(piece, count):
    line = (piece * count).encode()[:60000]
    before = time.thread_time()
    read_line(line)
    assert time.thread_time() - before < 0.2  # of the thread itself, so that other work does not count


def write(folder, name, text):
    with (folder / name).open("ab") as file:
        file.write(text.encode())


def test_the_file_wins_then_json_then_text(tmp_path):
    metrics = Metrics(tmp_path)
    write(tmp_path, "log", 'loss=3 acc=0.1 lr=0.01\n{"loss": 2, "acc": 0.2}\nloss=9 lr=0.02\n')
    assert metrics.read()
    assert metrics.to_json()["last"] == {"loss": 2, "acc": 0.2, "lr": 0.02}
    write(tmp_path, "metrics.jsonl", '{"loss": 1}\n')
    assert metrics.read()
    assert metrics.to_json() == {
        "last": {"loss": 1, "acc": 0.2, "lr": 0.02},
        "series": {"loss": [1.0], "acc": [0.2], "lr": [0.01, 0.02]},
    }


def test_what_is_printed_once_may_be_a_setting(tmp_path):
    metrics = Metrics(tmp_path)
    write(tmp_path, "log", "batch_size: 64 hidden=128\nspeed=1\nfinal accuracy: 0.98\nspeed=2\n")
    metrics.read()
    assert metrics.to_json()["last"] == {"accuracy": 0.98, "speed": 2}


def test_frames_of_a_bar_are_lines_and_the_last_one_counts_at_the_end(tmp_path):
    metrics = Metrics(tmp_path)
    for number in range(1, 4):
        write(tmp_path, "log", f"\r {number}0%|█  | {number}/10 [00:01<00:09, 1.0it/s, loss=0.{number}]")
    metrics.read()
    assert metrics.to_json()["last"] == {"loss": 0.2}
    metrics.read_all()
    assert metrics.to_json()["last"] == {"loss": 0.3}
    assert metrics.progress()["done"] == 3


def test_each_byte_is_read_once_also_by_the_next_engine(tmp_path, monkeypatch):
    task, kept = tmp_path / "0", tmp_path / "metrics.json"
    task.mkdir()
    read = []
    original = Tail.read

    def counted(self, limit):
        before = self._read_to
        found = original(self, limit)
        read.append(self._read_to - before)
        return found

    monkeypatch.setattr(Tail, "read", counted)
    write(task, "log", "loss=1\nstep 1/4\nloss=")
    first = Metrics(task, kept)
    first.read()
    first.save()
    write(task, "log", "2\nstep 2/4\n")
    second = Metrics(task, kept)
    assert second.to_json() == first.to_json() and second.progress() == first.progress()
    second.read_all()
    assert second.to_json()["series"] == {"loss": [1.0, 2.0]}
    assert second.progress()["done"] == 2
    again = Metrics(task, kept)
    again.read_all()
    assert again.to_json() == second.to_json()
    assert sum(read) <= (task / "log").stat().st_size + len("loss=")


@pytest.mark.parametrize(
    "state", [b"", b"[]", b"null", b'{"schema": 1}', b'{"schema": 1, "folder": "0", "values": 3}']
)
def test_a_kept_state_that_is_none_is_made_anew(tmp_path, state):
    task, kept = tmp_path / "0", tmp_path / "metrics.json"
    task.mkdir()
    write(task, "log", "loss=1\n")
    kept.write_bytes(state)
    metrics = Metrics(task, kept)
    metrics.read_all()
    assert metrics.to_json()["last"] == {"loss": 1}
    assert json.loads(kept.read_text())["schema"] == 1


def test_a_log_that_is_far_ahead_is_read_from_its_end_in_flat_memory(tmp_path):
    line = f"{'words ' * 16}loss=0.5 acc=0.25\n"
    with (tmp_path / "log").open("w") as file:
        file.write("lr=7\n")
        for _ in range(200):
            file.write(line * 500)
        file.write("loss=0.125\n")
    metrics = Metrics(tmp_path)
    tracemalloc.start()
    looks = 0
    while metrics.read():
        looks += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert looks <= BACKLOG // STEP + 1
    assert peak < 8 * STEP
    found = metrics.to_json()
    assert found["last"] == {"loss": 0.125, "acc": 0.25} and len(found["series"]["loss"]) <= POINTS


def test_names_are_bounded(tmp_path):
    write(tmp_path, "metrics.jsonl", json.dumps({f"m{n}": n for n in range(500)}) + "\n")
    write(tmp_path, "log", json.dumps({f"x{n}": n for n in range(500)}) + "\n")
    metrics = Metrics(tmp_path)
    metrics.read_all()
    assert len(metrics.to_json()["last"]) == NAMES


def test_reading_never_waits_for_another_thread(tmp_path):
    metrics = Metrics(tmp_path)
    write(tmp_path, "log", "loss=1\n")
    with metrics._turn:
        assert metrics.read() is False
    assert metrics.read() is True


# -- progress ---------------------------------------------------------------------------------------------


def follow(progress, *steps):
    for at, *counts in steps:
        progress.take([Count(*count) for count in counts])
        progress.observe(at)


def test_time_left_comes_from_the_speed_so_far():
    progress = Progress()
    follow(progress, (0, ("step", 10, 100)), (10, ("step", 20, 100)))
    assert progress.to_json(10) == {
        "done": 20, "total": 100, "unit": "step", "fraction": 0.2, "etaSeconds": 80,
    }  # fmt: skip
    assert progress.to_json(40)["etaSeconds"] == 50
    assert progress.to_json(400)["etaSeconds"] == 0


def test_steps_say_where_in_an_epoch_it_is():
    progress = Progress()
    follow(
        progress, (0, ("epoch", 1, 4)), (1, ("step", 1, 100)), (2, ("step", 50, 100)), (3, ("epoch", 2, 4))
    )
    found = progress.to_json(3)
    assert (found["done"], found["total"], found["unit"], found["fraction"]) == (2, 4, "epoch", 0.25)
    follow(progress, (11, ("step", 50, 100)))
    found = progress.to_json(11)
    assert found["fraction"] == 0.375
    assert found["etaSeconds"] == round(2.5 * 10 / (1.5 - 0.01))


def test_an_epoch_that_is_told_at_its_end_is_over():
    progress = Progress()
    follow(progress, (0, ("step", 99, 100)), (1, ("epoch", 1, 4)), (2, ("step", 50, 100)))
    assert progress.to_json(2)["fraction"] == 0.375


def test_a_bar_knows_itself_before_there_is_a_speed():
    progress = Progress()
    follow(progress, (5, ("iteration", 5, 100, 64.0)))
    assert progress.to_json(5)["etaSeconds"] == 64
    assert Progress().to_json(5) is None


def test_what_begins_anew_has_a_new_speed():
    progress = Progress()
    follow(
        progress, (0, ("step", 0, 10)), (10, ("step", 10, 10)), (20, ("step", 0, 10)), (30, ("step", 1, 10))
    )
    assert progress.to_json(30)["etaSeconds"] == 90


def test_progress_survives_being_kept():
    progress = Progress()
    follow(progress, (0, ("epoch", 1, 4)), (5, ("step", 50, 100)))
    assert Progress.of(json.loads(json.dumps(progress.state()))).to_json(6) == progress.to_json(6)


def test_which_cell_of_a_notebook_runs_is_kept_beside_the_metrics(tmp_path):
    """O1: a program's own progress goes before that of the cells; a new engine knows the cell too."""
    kept = tmp_path / "kept.json"
    metrics = Metrics(tmp_path, kept)
    told = {"cell": 3, "cells": 10, "line": "fit(x)", "at": 1000.5}
    write(tmp_path, "metrics.jsonl", json.dumps({"notebook": told}) + "\n")
    assert metrics.read()
    said = {"cell": 3, "cells": 10, "line": "fit(x)", "done": False, "since": "1970-01-01T00:16:40.500Z"}
    assert metrics.execution() == said and metrics.to_json() == {}
    cells = {"done": 3, "total": 10, "unit": "cell", "fraction": 0.2, "etaSeconds": None}
    assert metrics.progress() == cells
    metrics.save()
    assert Metrics(tmp_path, kept).execution() == said
    write(tmp_path, "log", "Epoch 1/4\n")
    metrics.read()
    assert metrics.progress()["unit"] == "epoch"


@pytest.mark.parametrize(
    "told",
    [
        None,
        3,
        {"cell": 5, "cells": 3},
        {"cell": 1, "cells": 3},
        {"cell": 1, "cells": 3, "line": "", "at": 1e20},
    ],
)
def test_what_tells_no_cell_is_no_cell(told):
    assert read_object(json.dumps({"notebook": told}).encode()).execution is None
