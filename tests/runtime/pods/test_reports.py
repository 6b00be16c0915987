"""What a task in a pod tells of itself beside its output (O22): through its log, and not in it."""

from __future__ import annotations

import json

import pytest

from paijupyter.backends.kubernetes.sieve import Sieve
from paijupyter.runtime import reports, tree
from paijupyter.runtime.reports import Reports


def parted(job, key="worker-0"):
    """Return the task's own output, and the texts that it has reported by kind."""
    own, found = Sieve().feed(job.pods[key].log.encode())
    told = {}
    for each in found:
        told.setdefault(each.kind, []).append(each.text)
    return own.decode(), told


def test_metrics_and_what_is_installed_come_through_the_log(make_job):
    """Within a line of output too, and masked like all that a task says."""
    job = make_job(worker=2)
    job.spec["reports"] = True
    job.secrets(TOKEN="a-secret-value")
    command = (
        "printf half; echo '{\"loss\": 1}' >> $PAI_METRICS_FILE; "
        'printf \'{"loss": 2, "note": "%s"}\' $TOKEN >> $PAI_METRICS_FILE; echo " line"'
    )
    job.run(worker=command)
    own, told = parted(job)
    assert own.endswith("half line\n")
    assert told["metrics"] == ['{"loss": 1}', '{"loss": 2, "note": "***"}']
    (lock,) = map(json.loads, told["environment"])
    assert lock["python"].startswith("3.") and isinstance(lock["packages"], dict)
    assert "places" not in lock
    assert parted(job, "worker-1")[1] == {}, "the first task of a role speaks for it"


def test_without_being_asked_nothing_is_told(make_job):
    job = make_job(worker=1)
    job.run(worker="echo '{\"loss\": 1}' >> $PAI_METRICS_FILE")
    assert job.pods["worker-0"].log == ""


class Kept:
    """A log that keeps the records."""

    def __init__(self):
        self.records = []

    def report(self, record):
        self.records.append(record.removeprefix(reports.MARK).decode().rstrip("\n"))


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(reports.time, "monotonic", lambda: now[0])
    return now


def test_of_endless_metrics_the_last_line_is_told_now_and_then(tmp_path, clock):
    log = Kept()
    told = Reports(str(tmp_path), log, str, True)
    line = json.dumps({"x": "y" * 1000})
    with (tmp_path / "metrics.jsonl").open("w") as stream:
        for _ in range(3000):
            stream.write(line + "\n")
        stream.write('{"last": 1}\n')
    clock[0] += 1
    told.beat()
    assert 1000 < len(log.records) < 1100
    assert log.records[-1] == 'metrics {"last": 1}'
    assert told.left() == pytest.approx(2.0)  # the use of memory, before the next look at metrics


def test_a_file_that_is_written_anew_is_told_anew(tmp_path, clock):
    log = Kept()
    told = Reports(str(tmp_path), log, str, True)
    path = tmp_path / "metrics.jsonl"
    for text in ('{"a": 1}\n{"b', '{"a": 1}\n{"b": 2}\n', "{}\n"):
        path.write_text(text)
        clock[0] += 1.1
        told.beat()
    assert [each for each in log.records if each.startswith("metrics")] == [
        'metrics {"a": 1}',
        'metrics {"b": 2}',
        "metrics {}",
    ]


def test_use_of_processor_and_memory_is_of_the_whole_tree(tmp_path, clock, monkeypatch):
    used = iter([5.0, 6.0, 6.0])
    monkeypatch.setattr(tree, "processor_seconds", lambda: next(used))
    monkeypatch.setattr(tree, "resident", lambda: 3 << 20)
    log = Kept()
    told = Reports(str(tmp_path), log, str, False)
    clock[0] += 4
    told.beat()
    told.beat()
    assert log.records == ['usage {"cpu": 0.25, "memoryMB": 3.0}']
    assert tree.processor_seconds() == 6.0


def test_the_time_of_this_very_process_is_counted():
    before = tree.processor_seconds()
    sum(number * number for number in range(2_000_000))
    assert tree.processor_seconds() > before


def test_a_job_begins_with_the_checkpoints_of_another(make_job):
    """On their volume: the first task copies them, all wait for it, and what there is in the end is told."""
    job = make_job(ps=1, worker=2)
    for name in ("earlier/checkpoints/deep", "kept"):
        (job.home / name).mkdir(parents=True)
    (job.home / "earlier/checkpoints/deep/step").write_text("7")
    job.spec.update(reports=True, kept=str(job.home / "kept"), earlier=str(job.home / "earlier/checkpoints"))
    show = 'echo "step $(cat $PAI_CHECKPOINT_DIR/deep/step)"'
    job.run(ps=f"{show}; echo 88 > $PAI_CHECKPOINT_DIR/next; sleep 60", worker=f"{show}; sleep 1")
    for key in ("ps-0", "worker-0", "worker-1"):
        assert parted(job, key)[0].startswith("step 7\n")
    assert (job.home / "earlier/checkpoints/deep/step").read_text() == "7"
    assert not (job.home / "earlier/checkpoints/next").exists()
    told = [json.loads(each) for each in parted(job, "ps-0")[1]["checkpoints"]]
    assert told[-1] == {"files": 2, "bytes": 4}
    assert "checkpoints" not in parted(job, "worker-0")[1]


def test_checkpoints_that_are_gone_are_said(make_job):
    job = make_job(worker=1)
    job.spec.update(kept=str(job.home / "kept"), earlier=str(job.home / "nowhere"))
    ended = job.run(worker="true")["worker-0"]
    assert (ended["status"], ended["reason"]) == (44, "data")
    assert "checkpoints of the earlier job could not be copied: No such file" in ended["message"]
