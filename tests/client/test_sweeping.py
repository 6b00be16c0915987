"""From options of `sweep` to a request; what the table and the pictures of a group say (T4, T8, 2.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from paijupyter.client import group_card, plots, sweeping
from paijupyter.client.group import Group, GroupFailed
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.errors import UsageProblem

TEMPLATE = """\
protocolVersion: 2
name: demo
type: job
prerequisites: [{protocolVersion: 2, name: image, type: dockerimage, uri: python}]
taskRoles:
  main:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ["train {1}"]
"""


def round_of(folder: Path, *words: str, body: str | None = None, surface: str = "cli") -> Mapping[str, Any]:
    options = parse_verb("sweep", words, "magic" if surface == "magic" else "cli")
    return sweeping.round_of(options, Origin(surface, folder, "python"), body).request


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.yaml").write_text(TEMPLATE)
    (tmp_path / "x.yaml").write_text("fields: [a]\nexperiments: {1: {a: 1}}\n")
    (tmp_path / "r.csv").write_text("lr,note\n0.1,x\n")
    (tmp_path / "train.py").write_text("print(1)\n")
    return tmp_path


def test_a_template_and_its_list_travel_as_they_are(folder: Path) -> None:
    """T1, T4: the texts byte for byte; -1 is passed on; what is not given is not sent."""
    request = round_of(
        folder, "t.yaml", "-x", "x.yaml", "--specific-experiment", "-1", "--set", "d=/data", "--failed"
    )
    assert request["template"] == TEMPLATE and request["placeholders"] is True
    assert request["experiments"] == (folder / "x.yaml").read_text()
    assert request["only"] == "-1" and request["set"] == {"d": "/data"} and request["failed"] is True
    assert request["package"] and "name" not in request and "atOnce" not in request


def test_a_script_gets_its_values_as_parameters(folder: Path) -> None:
    words = ["train.py", "--grid", "lr=0.1,0.01", "--grid", 'm=["a,b", 2]', "--group", "g", "--at-once", "2"]
    request = round_of(folder, *words, "--cpu", "2")
    assert request["placeholders"] is False and request["name"] == "g" and request["atOnce"] == 2
    assert json.loads(request["experiments"]) == {"grid": {"lr": [0.1, 0.01], "m": ["a,b", 2]}}
    assert "python train.py" in request["template"] and "cpu: 2" in request["template"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--rows", "r.csv"], {"rows": "lr,note\n0.1,x\n"}),
        (["-x", "r.csv"], {"rows": "lr,note\n0.1,x\n"}),
        (["--rows", '[{"lr": 1}]'], {"rows": [{"lr": 1}]}),
    ],
)
def test_tables(folder: Path, words: list[str], expected: dict[str, Any]) -> None:
    """2.2: a CSV or a data frame of rows."""
    assert json.loads(round_of(folder, "train.py", *words)["experiments"]) == expected


def test_a_table_that_a_list_names_is_put_in_its_place(folder: Path) -> None:
    (folder / "y.yaml").write_text("atOnce: 2\nrows: r.csv\n")
    assert (
        round_of(folder, "train.py", "-x", "y.yaml")["experiments"]
        == 'atOnce: 2\nrows: "lr,note\\n0.1,x\\n"\n'
    )


def test_the_cell_is_the_list_below_a_template_and_else_what_runs(folder: Path) -> None:
    """T3: the body of the cell as YAML or a Python dict."""
    request = round_of(folder, "t.yaml", body="{1: ['a']}", surface="magic")
    assert request["experiments"] == "{1: ['a']}" and request["template"] == TEMPLATE
    request = round_of(folder, "--grid", "lr=1,2", body="print(lr)", surface="magic")
    assert request["placeholders"] is False and "grid" in request["experiments"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a template"),
        (["t.yaml"], "no experiments"),
        (["t.yaml", "-x", "x.yaml", "--grid", "a=1"], "come from --experiments and from --grid"),
        (["t.yaml", "-x", "x.yaml", "--gpu", "1"], "does not go with a template"),
        (["t.yaml", "-x", "no.yaml"], "does not exist"),
        (["train.py", "--grid", "a"], "NAME=VALUE"),
        (["train.py", "--grid", "a=[1"], "no JSON list"),
        (["train.py", "--rows", "{1"], "neither a file nor JSON"),
        (["train.py", "--grid", "a=1", "--at-once", "x"], "--at-once"),
    ],
)
def test_what_cannot_be_meant_is_said(folder: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        round_of(folder, *words)


VIEW = {
    "id": "i", "name": "demo", "state": "failed", "counts": {"failed": 1, "succeeded": 1, "waiting": 1},
    "total": 3, "kept": 1, "profile": "local", "round": 2, "atOnce": 2, "stopAfter": None, "message": "",
    "parameters": ["lr", "note"], "problems": [],
}  # fmt: skip


def row(key: str, state: str, **more: Any) -> dict[str, Any]:
    plain = {"key": key, "values": {"lr": 0.1, "note": "<b>"}, "state": state, "job": None, "metrics": {}}
    return {
        **plain,
        "reason": "",
        "name": "",
        "message": "",
        "lastLine": "",
        "seconds": None,
        "node": "a",
        "restarts": 0,
        **more,
    }


ROWS = [
    row("1", "succeeded", seconds=75.0, metrics={"loss": 0.25}, lastLine="loss=0.25"),
    row("2", "failed", seconds=3.0, message="main-0 ended with exit code 1.", lastLine="boom"),
    row("10", "waiting", message="Waits for its turn: at most 2 of the group run at once."),
]


def test_the_table_has_a_column_for_each_thing_that_differs() -> None:
    """2.2: the status table."""
    text = group_card.text(group_card.facts(VIEW, ROWS))
    assert text.splitlines()[0] == (
        "✕ failed  demo   local · 3 experiments · at most 2 at once   1 waiting · 1 failed · 1 succeeded"
    )
    assert "1 experiment unchanged since the last run, so kept." in text
    assert text.splitlines()[2].split() == ["experiment", "lr", "note", "state", "time", "loss", "what"]
    assert "1 min 15 s" in text and "main-0 ended with exit code 1. boom" in text
    moved = [{**each, "node": each["key"], "restarts": 1} for each in ROWS]
    assert {"node", "restarts"} <= set(group_card.facts(VIEW, moved).columns)


def test_the_html_is_escaped_and_sorts_by_raw_values() -> None:
    html = group_card.html(group_card.facts(VIEW, ROWS), "t")
    assert "<b>" not in html and "&lt;b&gt;" in html
    assert 'data-v="75.0"' in html and 'data-v="0.25"' in html and html.count("<script>") == 1


def test_a_large_table_is_cut_and_says_so() -> None:
    many = [row(str(each), "succeeded") for each in range(1000)]
    found = group_card.facts({**VIEW, "total": 1000}, many)
    assert len(found.rows) == group_card.ROWS and found.more == 800
    assert "800 more experiments" in group_card.text(found)


def test_many_parameters_share_a_column() -> None:
    names = [f"p{each}" for each in range(9)]
    rows = [row("1", "succeeded", values=dict.fromkeys(names, 1))]
    assert "values" in group_card.facts({**VIEW, "parameters": names}, rows).columns


def test_a_picture_has_a_point_for_each_number() -> None:
    """2.2: metric against parameter; a text or a factor of fifty changes the axis."""
    svg = plots.scatter([(1e-4, 0.5, "1"), (0.1, 0.25, "2"), (0.2, "NaN", "3")], "lr", "loss").svg
    assert svg.count("<circle") == 2 and "lr = 0.0001, loss = 0.5" in svg
    assert plots.scatter([("a<", 1, "1"), ("b", 2, "2")], "model", "acc").svg.count("a&lt;") >= 2
    assert plots.scatter([(1, 1, "1")], "n", "acc").svg.count("<circle") == 1
    with pytest.raises(UsageProblem, match="No experiment has both"):
        plots.scatter([], "lr", "loss")


def test_curves_leave_out_what_is_no_number() -> None:
    svg = plots.lines({"1": [1, None, 0.5], "2": [], "3": [2, 1]}, "loss").svg
    assert svg.count("<polyline") == 2
    with pytest.raises(UsageProblem, match="course"):
        plots.lines({"1": [None]}, "loss")


class FakeGroups:
    def get(self, ref: str) -> dict[str, Any]:
        return VIEW

    def experiments(self, ref: str, *, series: bool = False) -> tuple[dict[str, Any], ...]:
        return tuple({**each, "series": {"loss": [1, 0.25]} if each["metrics"] else {}} for each in ROWS)


class FakeClient:
    groups = FakeGroups()


def test_the_handle_says_what_failed_and_draws_itself() -> None:
    group = Group.attach("demo", FakeClient())  # type: ignore[arg-type]
    with pytest.raises(GroupFailed, match=r"2 failed \(main-0 ended with exit code 1\.\)"):
        group.check()
    assert group.curves("loss").svg.count("<polyline") == 1
    assert "paijupyter-group" in group._repr_mimebundle_()["text/html"]
    with pytest.raises(UsageProblem, match="has no job"):
        group.job(10)


def test_the_data_frame_has_values_and_metrics_as_columns() -> None:
    """2.2: as a data frame in Python."""
    pytest.importorskip("pandas")
    frame = Group.attach("demo", FakeClient()).to_frame()  # type: ignore[arg-type]
    assert list(frame.index) == ["1", "2", "10"] and frame.loc["1", "metric.loss"] == 0.25
    assert frame["lr"].tolist() == [0.1] * 3 and frame.loc["2", "state"] == "failed"
