"""Outputs stay within their folder (P7); metrics stay small (O30)."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import NotFound, PaiJupyterError
from paijupyter.jobs.metrics import POINTS, Metrics
from paijupyter.jobs.outputs import list_outputs, output_file
from paijupyter.jobs.view import json_safe


@pytest.fixture
def job(tmp_path):
    out = tmp_path / "job" / "output"
    (out / "worker-0" / "deep").mkdir(parents=True)
    (out / "worker-0" / "model.npz").write_bytes(b"abc")
    (out / "worker-0" / "deep" / "b.txt").write_bytes(b"b")
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "job" / "job.json").write_text("{}")
    return tmp_path / "job"


def test_outputs_are_listed_with_sizes_in_order(job):
    assert list_outputs(job) == [
        {"path": "worker-0/model.npz", "size": 3},
        {"path": "worker-0/deep/b.txt", "size": 1},
    ]
    assert len(list_outputs(job, 1)) == 1


def test_links_lead_nowhere_outside(job, tmp_path):
    out = job / "output" / "worker-0"
    (out / "away").symlink_to(tmp_path / "secret")
    (out / "up").symlink_to("../../..")
    (out / "loop").symlink_to("loop")
    (out / "facts").symlink_to("../../job.json")
    (out / "best").symlink_to("model.npz")
    (out / "gone").symlink_to("nothing")
    assert [each["path"] for each in list_outputs(job)] == [
        "worker-0/best",
        "worker-0/model.npz",
        "worker-0/deep/b.txt",
    ]
    assert output_file(job, "worker-0/best").name == "model.npz"
    for path in ("worker-0/away", "worker-0/up/secret", "worker-0/loop", "worker-0/facts", "worker-0/gone"):
        with pytest.raises(NotFound):
            output_file(job, path)


@pytest.mark.parametrize("path", ["../job.json", "/etc/passwd", "worker-0/../../job.json", "a\0b"])
def test_paths_that_lead_out_are_refused(job, path):
    with pytest.raises(PaiJupyterError) as caught:
        output_file(job, path)
    assert caught.value.code == "invalid-path" and caught.value.status == 400


@pytest.mark.parametrize("path", ["", "worker-0", "nope", "worker-0/model.npz/x"])
def test_what_is_no_file_is_not_found(job, path):
    with pytest.raises(NotFound):
        output_file(job, path)


@given(st.text())
def test_no_path_reaches_a_file_outside(tmp_path_factory, path):
    root = tmp_path_factory.mktemp("o") / "job"
    (root / "output").mkdir(parents=True)
    with pytest.raises(PaiJupyterError):
        output_file(root, path)


def write(path, rows):
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_last_values_and_series(tmp_path):
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics(path.parent)
    assert metrics.read() is False and metrics.to_json() == {}
    write(path, [{"epoch": 1, "loss": 0.5, "note": "text", "ok": True}, {"epoch": 2, "loss": 0.25}])
    assert metrics.read() is True
    assert metrics.to_json() == {
        "last": {"epoch": 2, "loss": 0.25},
        "series": {"epoch": [1.0, 2.0], "loss": [0.5, 0.25]},
    }
    assert metrics.read() is False


def test_a_diverged_loss_is_told_in_strict_json(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"loss": NaN, "a": Infinity, "b": -Infinity}\n{"big": 1' + "0" * 400 + "}\n")
    metrics = Metrics(path.parent)
    metrics.read_all()
    found = json.loads(json.dumps(metrics.to_json(), allow_nan=False))
    assert found["last"] == {"loss": "NaN", "a": "Infinity", "b": "-Infinity", "big": "Infinity"}
    assert found["series"]["loss"] == [None]
    assert json_safe({"x": [math.nan, -math.inf, 1]}) == {"x": ["NaN", "-Infinity", 1]}


def test_torn_and_foreign_lines_are_passed_over(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'not json\n[1]\n"x"\n\xff\xfe\n{"a": 1}\n{"a": 2')
    metrics = Metrics(path.parent)
    metrics.read_all()
    assert metrics.to_json()["last"] == {"a": 1}
    with path.open("ab") as file:
        file.write(b"5}\n")
    metrics.read_all()
    assert metrics.to_json()["last"] == {"a": 25}


def test_a_file_started_anew_is_read_anew(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, [{"a": 1}, {"a": 2}])
    metrics = Metrics(path.parent)
    metrics.read_all()
    path.write_text('{"b": 1}\n')
    metrics.read_all()
    assert metrics.to_json()["last"] == {"b": 1}


@given(st.integers(1, 3000))
def test_a_series_is_thinned_evenly_and_stays_short(tmp_path_factory, count):
    path = tmp_path_factory.mktemp("m") / "metrics.jsonl"
    write(path, ({"x": number} for number in range(count)))
    metrics = Metrics(path.parent)
    while metrics.read(997):
        pass
    values = metrics.to_json()["series"]["x"]
    assert len(values) <= POINTS and values[0] == 0
    steps = {after - before for before, after in itertools.pairwise(values)}
    assert len(steps) <= 1
    assert count <= POINTS or len(values) >= POINTS // 2
    assert metrics.to_json()["last"] == {"x": count - 1}
