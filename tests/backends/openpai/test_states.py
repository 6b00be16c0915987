"""States and ends of OpenPAI in our words, held to recorded answers of the original server (O31, O32)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.backends.openpai import answers, states
from paijupyter.runtime import codes
from tests.openpai.records import FILES, needed, recorded

NAMES = {"worker": "worker", "ps": "ps", "master": "master"}


@pytest.mark.parametrize(
    ("number", "state", "reason"),
    [
        ("057", "waiting", "queued"),
        ("058", "waiting", "starting"),
        ("059", "waiting", "queued"),
        ("060", "running", ""),
        ("061", "running", "stopping"),
        ("072", "waiting", "retry-delay"),
        ("073", "waiting", "starting"),
    ],
)
def test_an_unfinished_job(number: str, state: str, reason: str) -> None:
    detail = answers.detail_of(recorded(number))
    found = states.position(detail.summary, detail)
    assert found is not None
    if number == "073":  # in whichever moment of its circles it was recorded
        assert found.state in ("waiting", "running")
        return
    assert (found.state, found.reason) == (state, reason)
    if state == "waiting":
        assert detail.summary.sub_state in found.message or "tasks" in found.message


@pytest.mark.parametrize(
    ("number", "state", "reason", "words"),
    [
        ("062", "stopped", "", "requested to stop"),
        ("063", "succeeded", "", ""),
        ("064", "succeeded", "", ""),
        ("065", "failed", "user", "worker-0 failed: its command exited with 3 (OpenPAI's code 255"),
        ("066", "failed", "user", "220 "),
        ("067", "failed", "out-of-memory", "-1200"),
        ("068", "failed", "user", "FailedTaskCount"),
        ("069", "failed", "start", "code 1 PAIRuntimeExitAbnormally"),
        ("070", "failed", "refused", "-1100"),
        ("071", "failed", "refused", "-200"),
    ],
)
def test_an_end(number: str, state: str, reason: str, words: str) -> None:
    """The catalogue's own reason and advice stay in the message."""
    detail = answers.detail_of(recorded(number))
    found = states.outcome(detail.summary, detail, NAMES, booted=False)
    assert (found.state, found.reason) == (state, reason)
    assert words in found.message
    if state == "failed":
        assert "OpenPAI advises" in found.message or not detail.spec.solution


def test_tasks_of_a_failed_job() -> None:
    detail = answers.detail_of(recorded("068"))
    told = [states.status_of(task, NAMES, 0, booted=False) for task in detail.tasks]
    by_state = sorted(each.state for each in told if each)
    assert by_state.count("failed") == 1
    assert "stopped" in by_state
    failed = next(each for each in told if each and each.state == "failed")
    assert failed.exit is not None
    assert failed.exit.code is not None
    assert failed.ended_at is not None


def test_last_lines_are_those_of_the_command() -> None:
    detail = answers.detail_of(recorded("091"))
    assert states.runtime_error(detail.diagnostics) == (5, ("attempt 0",))


@pytest.mark.parametrize(
    ("number", "reason", "words"),
    [("078", "image", "no-such-image"), ("079", "unschedulable", ""), ("080", "volume", "MountVolume")],
)
def test_events_say_why_it_waits(number: str, reason: str, words: str) -> None:
    """O28."""
    events = answers.events_of(recorded(number))
    detail = answers.detail_of(recorded("059" if number == "079" else "058"))
    found = states.position(detail.summary, detail, events)
    assert found is not None
    assert (found.state, found.reason) == ("waiting", reason)
    assert words in found.message


@needed
def test_every_recorded_detail_can_be_read() -> None:
    for path in FILES:
        body = json.loads(path.read_text())["responseBody"]
        if isinstance(body, dict) and "jobStatus" in body:
            detail = answers.detail_of(body)
            assert detail.summary.name
            assert detail.summary.state


def test_a_loop_of_the_platform_is_said() -> None:
    data = {"name": "j", "username": "a", "state": "RUNNING", "subState": "AttemptRunning"}
    summary = answers.summary_of({**data, "retryDetails": {"platform": 22, "user": 0}})
    found = states.position(summary, None)
    assert found is not None
    assert "22 times" in found.message


def test_codes_of_the_boot_program_are_told_apart_from_the_commands() -> None:
    assert {code: reason for reason, code in codes._CODES.items() if reason not in ("launcher", "ports")} == {
        **states.BOOT_CODES
    }
    diagnostics = (
        "Pod failed: PodPattern matched:\ncontainers:\n  - name: app\n    message: |-\n"
        "      [PAI_RUNTIME_ERROR_START]\n      exitCode: 255\n      originUserExitCode: 42\n"
        "      errorLogs:\n        user: |\n          {}\n      [PAI_RUNTIME_ERROR_END]\n"
    )
    ours, theirs = (
        answers.Task("worker", 0, "FAILED", diagnostics=diagnostics.format(line), exit_code=255)
        for line in ("[paijupyter] requests is missing.", "forty-two")
    )
    for task, booted, reason in ((ours, True, "requirements"), (theirs, True, "user"), (ours, False, "user")):
        status = states.status_of(task, NAMES, 0, booted=booted)
        assert status is not None
        assert status.reason == reason


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@given(_JSON, _JSON, _JSON)
def test_no_answer_can_break_it(status: Any, roles: Any, more: Any) -> None:
    """Unknown fields, missing ones and those of other types are no failure of ours."""
    detail = answers.detail_of({"name": more, "jobStatus": status, "taskRoles": roles, "new": more})
    assert states.outcome(detail.summary, detail, {}, booted=True).state in ("succeeded", "stopped", "failed")
    states.position(detail.summary, detail, answers.events_of({"data": [more, status]}))
