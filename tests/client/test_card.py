"""What cards say, as text and as HTML (screens.md; architecture decision 6)."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.client import card, going, words
from paijupyter.client.card_html import job_html, plan_html, rich
from paijupyter.errors import Problem

NOW = datetime(2026, 11, 29, 19, 45, tzinfo=timezone.utc)
HOSTILE = "<script>alert('x')</script>&\"`"


def view(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": "01JD",
        "name": "mnist-k3f9qd",
        "shortName": "mnist",
        "profile": "local",
        "state": "running",
        "reason": "",
        "message": "",
        "since": "2026-11-29T19:41:31.123Z",
        "submittedAt": "2026-11-29T19:41:30.000Z",
        "startedAt": "2026-11-29T19:41:48.000Z",
        "endedAt": None,
        "packageSha256": "3f9a1c" + "0" * 58,
        "roles": {
            "worker": {"instances": 4, "states": {"running": 3, "waiting": 1}},
            "ps": {"instances": 1, "states": {"running": 1}},
        },
        "failedTask": None,
        "advice": "",
        "parameters": {"lr": 0.1, "epochs": 20},
        "secretNames": ["HF_TOKEN"],
        "outputs": [],
        "metrics": {"last": {"loss": 0.1433, "acc": 0.951}, "series": {"loss": [3, 2, 1], "acc": [0.1, 0.9]}},
    }
    return {**base, **changes}


def failed(**changes: Any) -> dict[str, Any]:
    task = {
        "role": "worker",
        "index": 2,
        "code": 3,
        "signal": None,
        "reason": "user",
        "lastLines": ["Traceback:", "ValueError: lr"],
        "message": "worker-2 ended with exit code 3.",
    }
    base = view(
        state="failed",
        reason="user",
        endedAt="2026-11-29T19:45:00.000Z",
        failedTask=task,
        advice="give each worker more memory",
    )
    return {**base, **changes}


class _Checker(HTMLParser):
    """Holds that every element is closed, and collects elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("state", ["waiting", "running", "succeeded", "failed", "stopped"])
def test_each_state_has_an_icon_and_a_word(state: str) -> None:
    """Same facts without colour: icon and word (screens.md, principle 7)."""
    found = card.facts(view(state=state), now=NOW)
    assert card.text(found).startswith(f"{words.ICONS[state]} {state}  mnist-k3f9qd")
    assert words.ICONS[state] in _Checker(job_html(found)).text
    assert len(set(words.ICONS.values())) == 5


def test_a_running_card_says_ready_of_all_and_progress() -> None:
    text = card.text(card.facts(view(), now=NOW))
    assert "local · worker 3/4 · ps 1/1 · 3 min 12 s" in text
    assert "loss 0.1433 █▅▁" in text
    assert "parameters  lr = 0.1, epochs = 20" in text
    assert "HF_TOKEN" in text


def test_a_line_of_the_entry_file_is_a_line_of_the_cell() -> None:
    task = {
        "role": "worker",
        "index": 0,
        "code": 1,
        "lastLines": ['  File "/data/jobs/1/tasks/worker-0/0/work/.paijob/cell.py", line 4'],
    }
    broken = failed(message="`worker-0` raised ValueError in `.paijob/cell.py`, line 4: x", failedTask=task)
    found = card.facts(broken, now=NOW)
    assert found.line == "`worker-0` raised ValueError in the cell, line 4: x"
    assert found.last_lines == ('  File ".paijob/cell.py", line 4',)
    assert "in cell 7, line 4" in card.facts({**broken, "cell": {"id": "c", "number": 7}}, now=NOW).line


def test_many_objects_are_counted() -> None:
    objects = [{"kind": "process", "name": f"worker-{number}"} for number in range(1000)]
    assert ("objects", "1000 processes") in card.plan_facts({"objects": objects}).rows


def test_a_counter_and_its_total_are_progress() -> None:
    last = {"epoch": 7, "loss": 0.143, "epochs": 20, "step": 3, "steps": "many"}
    found = card.facts(view(metrics={"last": last, "series": {"epoch": [1, 2]}}), now=NOW)
    assert found.metrics[0] == ("epoch", "7/20", "▓▓▓▓▓▓░░░░░░░░░░")
    assert found.metrics[1:] == (("step", "3", ""), ("loss", "0.143", ""))


def test_ports_that_were_asked_for_are_shown_while_they_are_open() -> None:
    ports = {"ps-0": {"tb": [15316, 15317], "ssh": [1]}, "worker-0": {"http": [2]}}
    found = card.facts(view(ports=ports), now=NOW)
    assert found.ports == (("ps-0 tb", "http://127.0.0.1:15316"), ("ps-0 tb.1", "http://127.0.0.1:15317"))
    assert "ps-0 tb http://127.0.0.1:15316, ps-0 tb.1 http://127.0.0.1:15317" in card.text(found)
    assert not card.facts(failed(ports=ports), now=NOW).ports
    assert not card.facts(view(ports={"w-0": {"ssh": [1]}}), now=NOW).ports


@pytest.mark.parametrize("known", ["hub", "kernel", "terminal", "nothing"])
def test_ports_lead_through_the_jupyter_server_where_it_is_known(monkeypatch, isolated_home, known) -> None:
    """O22: below base_url, also on a Hub; a path is a link in a page only, not in text."""
    for name in ("JUPYTER_SERVER_URL", "JUPYTERHUB_SERVICE_PREFIX", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    base = {"hub": "/user/x/", "kernel": "/a%40b/", "terminal": "http://h:8888/lab/", "nothing": ""}[known]
    if known == "hub":
        monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", base)
    if known == "terminal":
        monkeypatch.setenv("JUPYTER_SERVER_URL", base)
    if known == "kernel":
        monkeypatch.setenv("JPY_PARENT_PID", "4711")
        folder = isolated_home / "jrun"
        folder.mkdir()
        (folder / "jpserver-4711.json").write_text(json.dumps({"base_url": base}))
    shown = card.bundle(view(ports={"ps-0": {"tb": [15316]}}))
    path = f"{base}paijupyter/v1/jobs/01JD/ports/ps-0/tb/"
    here = "http://127.0.0.1:15316"
    assert f'<a href="{path if base else here}"' in shown["text/html"]
    assert f"ps-0 tb {path if known == 'terminal' else here}\n" in shown["text/plain"]


def test_progress_says_how_far_and_how_long(monkeypatch) -> None:
    """O30: the bar of screens.md; a snapshot that nobody redraws makes no promise."""
    progress = {"done": 7, "total": 20, "unit": "epoch", "fraction": 0.33, "etaSeconds": 1083}
    usage = {"tasks": 4, "cpu": 3.42, "memoryMB": 812, "gpu": {"count": 2, "busy": 0.87, "memoryMB": 2048}}
    found = view(metrics={"last": {"loss": 0.14, "epoch": 7, "epochs": 20}}, progress=progress, usage=usage)
    text = card.text(card.facts(found, now=NOW))
    assert "  epoch 7/20 ▓▓▓▓▓░░░░░░░░░░░   loss 0.14   ~ 18 min left\n" in text
    assert "uses        3.4 CPU, 812 MiB, 2 GPU 87 % 2 GiB" in text
    assert "left" in job_html(card.facts(found, now=NOW)) and "left" not in card.bundle(found)["text/plain"]
    for seconds, said in ((5, "~ 5 s left"), (7200, "~ 2 h left"), (400000, "~ 5 d left")):
        assert going.left({"state": "running", "progress": {"etaSeconds": seconds}}) == said
    assert going.left({"state": "failed", "progress": {"etaSeconds": 5}}) == ""


def test_a_waiting_card_has_a_reason_and_a_clock() -> None:
    """Never a bare pending (screens.md, principle 2)."""
    waiting = view(state="waiting", reason="queued", startedAt=None, since="2026-11-29T19:41:00Z", position=2)
    assert "in the queue · position 2" in card.text(card.facts(waiting, now=NOW))
    for said in (
        "it waits in queue `team` at place 2",
        "Number 2 in this machine's queue, waiting for 1 job.",
    ):
        told = card.text(card.facts({**waiting, "message": said}, now=NOW))
        assert said in told and "position" not in told, "a place is said once"
    assert "· 4 min" in card.text(card.facts(waiting, now=NOW))


def test_a_failed_card_says_what_where_and_what_next() -> None:
    text = card.text(card.facts(failed(), now=NOW))
    assert "after 3 min 12 s" in text
    assert "worker-2 ended with exit code 3." in text
    assert "worker-2 │ ValueError: lr" in text
    assert "→ give each worker more memory" in text


def test_a_diagnosis_goes_before_the_bare_fact() -> None:
    text = card.text(card.facts(failed(message="worker-2 ran out of memory."), now=NOW))
    assert "worker-2 ran out of memory." in text
    assert "ended with exit code 3." not in text


def test_a_snapshot_ends_with_its_time() -> None:
    """A saved notebook ends with the final snapshot and its time (architecture decision 6)."""
    assert "ended       2026-11-29 19:45 UTC" in card.text(card.facts(failed(), now=NOW))


def test_a_profile_that_cannot_be_reached_changes_no_state() -> None:
    found = card.facts(view(staleSince="2026-11-29T19:44:00Z"), now=NOW)
    assert found.state == "running"
    assert "`local` cannot be reached since 2026-11-29 19:44 UTC" in found.line


def test_html_and_text_say_the_same() -> None:
    for each in (view(), failed(), view(state="stopped", message="Stopped by ann.")):
        found = card.facts(each, now=NOW)
        shown = _Checker(job_html(found)).text.replace("\xa0", " ")
        for line in (found.name, found.time, found.line.replace("`", ""), found.advice, *found.last_lines):
            assert line in shown
        for label, value in found.rows:
            assert label in shown and value in shown


def test_nothing_of_a_user_is_markup() -> None:
    """Never unescaped values in HTML (jupyter.md 6.3)."""
    task = {"role": "worker", "index": 0, "code": 1, "lastLines": [HOSTILE], "message": HOSTILE}
    hostile = failed(
        name=HOSTILE,
        profile=HOSTILE,
        message=HOSTILE,
        advice=HOSTILE,
        parameters={HOSTILE: HOSTILE},
        secretNames=[HOSTILE],
        outputs=[{"path": HOSTILE, "size": 3}],
        metrics={"last": {HOSTILE: 1}, "series": {}},
        roles={HOSTILE: {"instances": 1, "states": {}}},
        failedTask=task,
    )
    problems = [Problem("warning", "x", HOSTILE, file=HOSTILE, hint=HOSTILE)]
    checked = _Checker(job_html(card.facts(hostile, problems, NOW)))
    assert "script" not in checked.tags
    assert checked.text.count("alert('x')") >= 9


def test_html_is_self_contained() -> None:
    plan = {
        "ok": False,
        "name": "m",
        "document": "a: 1\n",
        "problems": [Problem("error", "x", "Bad.").to_json()],
    }
    for html in (job_html(card.facts(failed(), now=NOW)), plan_html(card.plan_facts(plan))):
        checked = _Checker(html)
        assert not {"script", "link", "img", "iframe", "style"} & set(checked.tags)
        names = {name for name, _ in checked.attributes}
        assert names <= {"class", "style", "aria-hidden", "title"}
        assert "url(" not in html and "var(--jp-" in html


@given(st.text())
def test_text_in_backticks_is_code_and_never_markup(text: str) -> None:
    checked = _Checker(rich(text))
    assert set(checked.tags) <= {"code"}
    # HTML drops or replaces a few control characters; all others stay.
    if text.isprintable():
        shown = text if text.count("`") % 2 else text.replace("`", "")
        assert checked.text == shown


def test_the_bundle_keeps_a_reference_and_no_data() -> None:
    """An output holds a reference, not data (architecture decision 6)."""
    found = card.bundle(view())
    assert found[card.MIME] == {
        "schema": 1,
        "id": "01JD",
        "name": "mnist-k3f9qd",
        "profile": "local",
        "packageSha256": "3f9a1c" + "0" * 58,
        "submittedAt": "2026-11-29T19:41:30.000Z",
    }
    json.dumps(found)
    assert set(found) == {card.MIME, "text/html", "text/plain"}


def test_problems_of_the_plan_are_folded_in_worst_first() -> None:
    problems = [Problem("hint", "h", "Hint."), Problem("error", "e", "Bad."), Problem("warning", "w", "Hm.")]
    found = card.facts(view(), problems, NOW)
    assert [each.severity for each in found.problems] == ["error", "warning", "hint"]
    checked = _Checker(job_html(found))
    assert "details" in checked.tags
    assert "plan: 1 error, 1 warning, 1 hint" in checked.text


def test_a_plan_opens_with_its_verdict_and_lists_each_problem_with_its_place() -> None:
    plan = {
        "ok": False,
        "name": "mnist",
        "profile": "local",
        "roles": [{"name": "worker", "instances": 4, "cpu": 4, "memoryMB": 8192, "gpu": 1}],
        "package": {"sha256": "3f9a1c" + "0" * 58, "files": 14, "bytes": 212_000},
        "parameters": {"lr": 0.1},
        "secretNames": ["HF_TOKEN"],
        "starts": "now",
        "objects": [{"count": 4, "kind": "process"}],
        "problems": [
            Problem("error", "too-large", "Role `worker` never fits.", "/taskRoles/worker", 7).to_json()
        ],
    }
    text = card.plan_text(card.plan_facts(plan, ["data/ (.gitignore, 1.2 GB)"]))
    first, second, *rest = text.splitlines()
    assert first == "mnist on local   ✕ cannot be submitted: 1 error"
    assert second.strip() == "4 tasks: worker ×4 (1 GPU, 4 CPU, 8 GiB) · 4 GPU"
    assert any("package" in line and "3f9a1c000000: 14 files, 212 kB" in line for line in rest)
    assert any("data/ (.gitignore, 1.2 GB)" in line for line in rest)
    assert "✕ line 7: Role `worker` never fits." in rest[-1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"code": 3}, "failed: worker-2 ended with exit code 3"),
        ({"code": None, "signal": "SIGKILL"}, "failed: worker-2 was ended by signal SIGKILL"),
        (
            {"code": None, "reason": "machine-restarted", "message": ""},
            "failed: worker-2: the machine was restarted",
        ),
    ],
)
def test_the_outcome_names_role_index_and_exit(changes: dict[str, Any], said: str) -> None:
    task = {"role": "worker", "index": 2, "code": 3, "signal": None, "reason": "user", "message": "m"}
    assert card.outcome(failed(failedTask={**task, **changes})) == said


def test_outcomes_without_a_task() -> None:
    assert card.outcome(view(state="succeeded")) == "succeeded"
    assert card.outcome(view(state="stopped", message="Stopped by ann.")) == "stopped: Stopped by ann"
    assert card.outcome(view(state="failed", reason="deadline")) == "failed: ran into its time limit"


@given(st.lists(st.one_of(st.floats(), st.integers(), st.none(), st.text()), max_size=300))
def test_a_course_is_drawn_of_whatever_comes(values: list[object]) -> None:
    drawn = words.spark(values)
    assert len(drawn) <= 16
    assert set(drawn) <= set("▁▂▃▄▅▆▇█")


def test_a_plan_says_with_whose_checkpoints_the_job_begins() -> None:
    earlier = {"id": "1", "name": "mnist-k3f9qd", "files": 2, "bytes": 3_100_000}
    text = card.plan_text(
        card.plan_facts({"ok": True, "name": "mnist", "profile": "local", "resumes": earlier})
    )
    assert "resumes  mnist-k3f9qd: 2 files, 3.1 MB in $PAI_CHECKPOINT_DIR" in text


def test_ports_of_pods_are_brought_here_by_a_command_where_no_server_is() -> None:
    found = card.facts(view(kind="kubernetes", name="board-x1", ports={"ps-0": {"tb": [20001]}}), now=NOW)
    assert found.ports == (("ps-0 tb", "paijob forward board-x1 20001 --task ps-0"),)
    assert "<a href=" not in job_html(found) and found.ports[0][1] in job_html(found)
