"""A form's widgets with a real engine behind them (issue: the form; O4-O27, P22)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paijupyter.errors import PaiJupyterError

Open = Callable[..., Any]

COMMENTED = """\
# my job
protocolVersion: 2
name: mine   # short
type: job
prerequisites: [{name: image, type: dockerimage, uri: python}]
taskRoles:
  worker:
    instances: 1   # one is enough
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ["echo 'hello'"]
"""


@pytest.fixture
def document(isolated_home: Path) -> Path:
    (isolated_home / "project").mkdir(exist_ok=True)
    path = isolated_home / "project" / "job.yaml"
    return path


def test_the_main_path_fields_plan_question_submission_card(open_form: Open) -> None:
    """O2, O4, O11: a script, two tasks, a name; the button says what it does and asks first."""
    opened = open_form("train.py")
    form = opened.form
    assert opened.reason == "" and form.submitting.button.description == "Submit 1 task"
    opened.type("/name", "mnist")
    opened.type("/taskRoles/worker/instances", "2")
    assert form.submitting.button.description == "Submit 2 tasks"
    assert "train.py" in form._plan_said.value and "process worker-1" in form._plan_said.value
    form.submitting.confirm.click()  # Nothing was asked yet.
    form.settle()
    assert opened.jobs == []
    form.submitting.button.click()
    form.submitting.confirm.click()
    form.submitting.confirm.click()  # Twice is once.
    form.settle()
    (job,) = opened.jobs
    assert job.name.startswith("mnist-") and form.job is job
    assert job.wait(60).state == "succeeded"
    assert job.view["roles"]["worker"]["instances"] == 2


def test_edits_keep_comments_and_bytes_and_both_views_are_one_document(
    open_form: Open, document: Path
) -> None:
    """O27: the fields and the text are views of one source document."""
    document.write_text(COMMENTED)
    opened = open_form("-f", "job.yaml")
    opened.type("/taskRoles/worker/instances", "3")
    assert opened.form.text == COMMENTED.replace("instances: 1 ", "instances: 3 ")
    assert opened.form.source.value == opened.form.text
    opened.form.source.value = opened.form.text.replace("name: mine", "name: yours")
    opened.form.settle()
    assert opened.control("/name").input.value == "yours"
    assert "# one is enough" in opened.form.text


def test_line_ends_of_a_text_stay_when_it_is_typed_in(open_form: Open, document: Path) -> None:
    document.write_bytes(COMMENTED.replace("\n", "\r\n").encode())
    opened = open_form("-f", "job.yaml")
    assert "\r" not in opened.form.source.value
    opened.form.source.value = opened.form.source.value.replace("# my job", "# our job")
    opened.form.settle()
    assert opened.form.text == COMMENTED.replace("\n", "\r\n").replace("my job", "our job")


def test_a_text_that_cannot_be_read_says_where_and_can_be_corrected(open_form: Open, document: Path) -> None:
    document.write_text(COMMENTED)
    opened = open_form("-f", "job.yaml")
    opened.form.source.value = COMMENTED + "  : [\n"
    opened.form.settle()
    assert opened.form.submitting.button.disabled and "cannot be read" in opened.reason
    assert "line" in opened.form._source_said.value
    opened.type("/name", "lost")
    assert "cannot be read" in opened.form.submitting.state.value
    opened.form.source.value = COMMENTED
    opened.form.settle()
    assert not opened.form.submitting.button.disabled


def test_problems_stand_at_their_fields_and_disable_the_button_with_the_reason(open_form: Open) -> None:
    """P22: what is wrong is said where it is, and beside the button."""
    opened = open_form("train.py")
    opened.type("/taskRoles/worker/instances", "many")
    assert "Instances must be a whole number" in opened.reason
    assert "many" in opened.control("/taskRoles/worker/instances")._said.value
    assert "instances: 1" in opened.form.text
    opened.type("/taskRoles/worker/instances", "1")
    assert opened.reason == ""
    opened.type("/taskRoles/worker/resourcePerInstance/cpu", "100000")
    assert opened.form.submitting.button.disabled
    card = opened.form.roles["worker"]
    assert any("100000" in each._said.value for each in card.controls)
    assert card.more.selected_index == 0  # The field is behind `customize`, which opens.


def test_nothing_to_run_yet_is_said_at_the_commands(open_form: Open) -> None:
    """`%paijob form` alone."""
    opened = open_form("--role", "worker:2")
    assert opened.form.submitting.button.disabled
    opened.type("/taskRoles/worker/commands", "echo one\necho two")
    assert opened.reason == "" and opened.form.submitting.button.description == "Submit 2 tasks"
    assert '- "echo one"' in opened.form.text


def test_roles_are_cards_to_add_copy_rename_and_remove(open_form: Open) -> None:
    """O10, P25."""
    opened = open_form("train.py")
    form = opened.form
    form.roles["worker"].copy.click()
    form.settle()
    assert list(form.roles) == ["worker", "worker2"]
    form.roles["worker2"].title.value = "ps"
    form.settle()
    assert list(form.roles) == ["worker", "ps"] and "Submit 2 tasks" in form.submitting.button.description
    form.roles["ps"].title.value = "worker"
    form.settle()
    assert "exists already" in form.submitting.state.value and form.roles["ps"].title.value == "ps"
    form.roles["ps"].remove.click()
    form.settle()
    form.roles["worker"].remove.click()
    form.settle()
    assert list(form.roles) == ["worker"] and "only one" in form.submitting.state.value
    form.add_role.click()
    form.settle()
    assert form.submitting.button.disabled and list(form.roles) == ["worker", "worker2"]


def test_tables_choices_and_switches_write_the_document(open_form: Open) -> None:
    """O19, O21, O22."""
    opened = open_form("--param", "lr=0.1", "train.py")
    parameters = opened.control("/parameters")
    parameters.add.click()
    name, value = parameters.entries[-1]
    name.value = "epochs"
    value.value = "20"
    opened.form.settle()
    assert "lr: 0.1" in opened.form.text and "epochs: 20" in opened.form.text
    parameters.entries[0][0].value = "rate"
    opened.form.settle()
    assert "rate: 0.1" in opened.form.text and "lr" not in opened.form.text
    parameters._remove(parameters._rows[0])
    opened.type("/extras/paijupyter/install", "never")
    opened.type("/extras/paijupyter/roles/worker/launcher", "torchrun")
    opened.type("/jobRetryCount", "2")
    opened.type("/extras/paijupyter/roles/worker/service", "false")
    for said in ('install: "never"', "jobRetryCount: 2", 'launcher: "torchrun"', "service: false"):
        assert said.replace('"', "") in opened.form.text.replace('"', "")
    assert "rate" not in opened.form.text
    opened.type("/jobRetryCount", "")
    assert "jobRetryCount" not in opened.form.text


def test_a_secret_is_a_reference_and_its_value_is_sent_once(
    open_form: Open, monkeypatch: pytest.MonkeyPatch, isolated_home: Path
) -> None:
    """O20, decision 8: typed here, from a variable; not before each has one."""
    monkeypatch.setenv("OF_THE_KERNEL", "canary-env-77")
    (isolated_home / "project").mkdir(exist_ok=True)
    opened = open_form("--secret", "TYPED=ask", "--command", "echo ${#TYPED} ${#OTHER}")
    form = opened.form
    assert "TYPED" in opened.reason and form.submitting.button.disabled
    form.secrets.add.click()
    line = form.secrets.lines[-1]
    line.source.value = "env"
    line.name.value = "OTHER"
    line.target.value = "OF_THE_KERNEL"
    form.secrets.lines[0].entry._handle_custom_msg({"kind": "value", "value": "canary-typed-55"}, [])
    form.settle()
    assert opened.reason == "" and form.secrets.lines[0].entry.told == "value is given"
    assert form.reference()["secrets"] == {"TYPED": "ask", "OTHER": "env:OF_THE_KERNEL"}
    form.submitting.button.click()
    form.submitting.confirm.click()
    form.settle()
    (job,) = opened.jobs
    job.wait(60)
    log = "".join(chunk.text for chunk in opened.client.logs(job.id))
    assert log == "15 13\n"
    assert "TYPED" in opened.reason and "again" in opened.reason  # It is forgotten once it was sent.
    everything = str([each.get_state() for each in _models(form)]) + form.text + str(form.reference())
    assert "canary-" not in everything


def test_values_in_a_foreign_document_leave_its_text_at_once(open_form: Open, document: Path) -> None:
    """O20, O27: a document of OpenPAI may hold values; widget state must not."""
    document.write_text(COMMENTED + "secrets: {TOKEN: canary-in-yaml-31}   # of the team\n")
    opened = open_form("-f", "job.yaml")
    assert 'secrets: {TOKEN: ""}   # of the team' in opened.form.text
    assert opened.reason == "" and "TOKEN" in opened.form._draft.vault
    assert "canary" not in str([each.get_state() for each in _models(opened.form)])


def test_a_keyring_that_is_not_there_is_said_and_nothing_is_kept(open_form: Open) -> None:
    opened = open_form("--secret", "TOKEN=keyring:hf", "train.py")
    opened.form.secrets.lines[0].entry._handle_custom_msg({"kind": "value", "value": "canary-ring-9"}, [])
    opened.form.settle()
    assert "keyring" in opened.form.submitting.state.value
    assert "canary" not in str([each.get_state() for each in _models(opened.form)]) and "TOKEN" not in (
        opened.form._draft.vault
    )


def test_a_form_begins_with_an_earlier_job(open_form: Open) -> None:
    first = open_form("--name", "first", "--command", "echo hello")
    first.form.submitting.button.click()
    first.form.submitting.confirm.click()
    first.form.settle()
    first.jobs[0].wait(60)
    again = open_form("--from", first.jobs[0].name)
    assert again.control("/taskRoles/worker/commands").input.value == "echo hello"
    with pytest.raises(PaiJupyterError):
        open_form("--from", "no-such-job")


def test_options_of_a_cell_fill_the_form(open_form: Open) -> None:
    """`%%paijob --form`: prefilled from the cell and its options."""
    opened = open_form("--name", "net", "--param", "lr=0.5", "--mem", "2Gi", cell="print(lr)\n")
    assert opened.control("/name").input.value == "net"
    assert opened.control("/taskRoles/worker/resourcePerInstance/memoryMB").input.value == "2Gi"
    assert [(a.value, b.value) for a, b in opened.control("/parameters").entries] == [("lr", "0.5")]
    assert ".paijob/cell.py" in opened.form._plan_said.value


def test_a_job_can_be_stopped_from_its_form(open_form: Open) -> None:
    """O32."""
    opened = open_form("--command", "sleep 600")
    opened.form.submitting.button.click()
    opened.form.submitting.confirm.click()
    opened.form.settle()
    opened.told("● running  it   local · worker 1/1")
    assert opened.form.submitting.stop.layout.display is None
    opened.form.submitting.stop.click()
    opened.form.settle()
    assert opened.jobs[0].refresh().state == "stopped"
    opened.told("■ stopped  it   local")
    assert opened.form.submitting.stop.layout.display == "none"


def test_every_field_says_what_it_is_and_whether_it_is_needed(open_form: Open) -> None:
    """P22, P33: default, required or optional, and what it does."""
    opened = open_form("train.py")
    for each in opened.form._all():
        field = getattr(each, "input", None)
        if field is not None:
            assert field.description.startswith(each.row.label) and each.row.help in field.tooltip
    assert opened.control("/jobRetryCount").input.placeholder == "default: 0"
    assert opened.control("/taskRoles/worker/commands").input.placeholder == "required"


def _models(form: Any) -> list[Any]:
    import ipywidgets

    return [each for each in ipywidgets.widgets.widget._instances.values() if each.comm is not None]
