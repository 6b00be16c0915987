"""Reports of a task are taken out of its log, which stays what the task printed, byte for byte (P36)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.backends.base import Usage
from paijupyter.backends.kubernetes.layout import REPORT
from paijupyter.backends.kubernetes.sieve import Report, Sieve
from paijupyter.backends.kubernetes.tasklog import TaskLog
from paijupyter.runtime import reports

STAMP = "2026-11-30T02:00:00Z"
_OUTPUT = st.binary(max_size=40).filter(lambda data: REPORT[:1] not in data)
_REPORTS = st.builds(
    Report,
    st.sampled_from(["metrics", "usage", "environment"]),
    st.text("abc{}:1 ü", max_size=20),
)


def record(report: Report) -> bytes:
    return REPORT + f"{report.kind} {report.text}\n".encode()


def test_both_sides_mark_reports_alike() -> None:
    assert reports.MARK == REPORT


@given(st.lists(st.one_of(_OUTPUT, _REPORTS), max_size=8), st.lists(st.integers(1, 30), max_size=40))
def test_however_it_is_cut(parts: list[bytes | Report], cuts: list[int]) -> None:
    """Output within a line goes on after a report as if there had been none."""
    data = b"".join(record(each) if isinstance(each, Report) else each for each in parts)
    sieve, own, found = Sieve(), b"", []
    for size in [*cuts, len(data) + 1]:
        piece, data = data[:size], data[size:]
        content, new = sieve.feed(piece)
        own += content
        found += new
        sieve = Sieve(sieve.held)  # as a new engine would
    own += sieve.finish()
    assert own == b"".join(each for each in parts if isinstance(each, bytes))
    assert found == [each for each in parts if isinstance(each, Report)]


def test_what_only_looks_like_a_report_is_output() -> None:
    sieve = Sieve()
    assert sieve.feed(b"a\x1epaij") == (b"a", [])
    assert sieve.feed(b"x\n\x1e") == (b"\x1epaijx\n", [])
    assert sieve.finish() == b"\x1e"
    endless = REPORT + b"x" * (1 << 20)
    assert Sieve().feed(endless) == (endless, [])


def test_reports_lie_where_a_process_here_would_have_written_them(tmp_path: Path) -> None:
    log = TaskLog(tmp_path)
    lock = {"schema": 1, "python": "3.11.2", "packages": {"torch": "2.4"}}
    log.append(b"10%", STAMP)
    log.append(record(Report("environment", json.dumps(lock))), STAMP)
    log.append(record(Report("metrics", '{"loss": 1}')) + record(Report("news", "of later")), STAMP)
    log.append(b"\r20%\n" + record(Report("usage", '{"cpu": 0.5, "memoryMB": 12.5}')), STAMP)
    log.append(record(Report("usage", "nonsense")) + record(Report("environment", "[]")), STAMP)
    assert (tmp_path / "log").read_bytes() == b"10%\r20%\n"
    assert (tmp_path / "metrics.jsonl").read_text() == '{"loss": 1}\n'
    assert json.loads((tmp_path / "environment.json").read_text()) == lock
    assert log.usage == Usage(0.5, 12.5)


@pytest.mark.parametrize("cut", [0, 1, 20, 45])
def test_after_a_crash_nothing_is_lost_or_doubled(tmp_path: Path, cut: int) -> None:
    """What came after the cursor was saved comes once more; the cut may lie within a report."""
    first, second = (record(Report("metrics", f'{{"loss": {number}}}')) for number in (1, 2))
    data = b"begin" + first + b" middle" + second + b" end\n"
    log = TaskLog(tmp_path)
    log.append(data[:cut], STAMP)
    log.save()
    log.append(data[cut:], STAMP)
    log.close()  # and not saved
    again = TaskLog(tmp_path)
    again.append(data[cut:], STAMP)
    again.finish()
    assert (tmp_path / "log").read_bytes() == b"begin middle end\n"
    assert (tmp_path / "metrics.jsonl").read_text() == '{"loss": 1}\n{"loss": 2}\n'


def test_another_container_begins_its_metrics_anew(tmp_path: Path) -> None:
    log = TaskLog(tmp_path)
    log.append(record(Report("metrics", '{"loss": 1}')) + REPORT + b"metrics {", STAMP)
    log.note("The container was started again (1).")
    log.begin_container("other")
    log.append(record(Report("metrics", '{"loss": 3}')) + b"again\n", STAMP)
    log.finish()
    assert (tmp_path / "metrics.jsonl").read_text() == '{"loss": 3}\n'
    assert (tmp_path / "log").read_bytes().endswith(b"again\n") and REPORT not in (
        tmp_path / "log"
    ).read_bytes()
