"""Values, patches and rows of a form: nothing here needs widgets or an engine."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.errors import UsageProblem
from paijupyter.forms import patches
from paijupyter.forms.rows import Row, rows_of
from paijupyter.forms.values import entered, from_pairs, pairs, shown
from paijupyter.forms.vault import Vault
from paijupyter.protocol import edit_mapping, read
from paijupyter.protocol.fields import FIELDS

DOCUMENT = """\
# a comment that stays
protocolVersion: 2
name: mnist
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: 'python:3.11'}   # the image
  - {name: code, type: script, uri: here}
  - {name: big, type: dockerimage, uri: "pytorch"}
parameters:
  lr: 1e-2     # not 0.01
  text: "1.0"
secrets: {TOKEN: ""}
taskRoles:
  ps:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1000, gpu: 0, ports: {a: 1}}
    commands: [python train.py]
  worker:
    instances: 4
    dockerImage: big
    resourcePerInstance: {cpu: 2, memoryMB: 8192, gpu: 1}
    commands:
      - pip install -r requirements.txt
      - python train.py
extras:
  paijupyter:
    version: 1
    roles:
      ps: {service: true}
    data:
      - {name: train, uri: "https://host/train.csv", path: data}
    timeLimit: 9000
"""
DATA = read(DOCUMENT).raw


def row(path: str, role: str = "") -> Row:
    (found,) = [each for each in rows_of(DATA) if each.pattern == path and each.role == role]
    return found


def applied(patch: patches.Patch, text: str = DOCUMENT) -> tuple[str, dict[str, Any]]:
    changed = edit_mapping(text, patch)
    return changed, read(changed).raw


def test_every_row_of_the_table_has_its_place_in_the_form() -> None:
    """Architecture decision 14: a new field appears without work on a form."""
    own = {"/taskRoles", "/secrets"}
    assert {each.pattern for each in rows_of(DATA)} | own == {field.path for field in FIELDS}
    roles = [each.path for each in rows_of(DATA) if each.pattern == "/taskRoles/*/instances"]
    assert roles == ["/taskRoles/ps/instances", "/taskRoles/worker/instances"]
    images = [
        (each.path, each.label) for each in rows_of(DATA) if each.widget == "text" and "prereq" in each.path
    ]
    assert images == [("/prerequisites/0/uri", "Image image"), ("/prerequisites/2/uri", "Image big")]


def test_two_levels_show_gpus_first_and_the_rest_when_a_card_is_unfolded() -> None:
    """O7: GPUs at once; CPU, memory and more behind `customize`."""
    heads = [
        each.pattern.rpartition("/")[2]
        for each in rows_of(DATA)
        if each.section == "role" and each.role == "ps"
    ]
    assert heads == ["instances", "commands", "gpu"]
    rest = {each.pattern.rpartition("/")[2] for each in rows_of(DATA) if each.section == "customize"}
    assert {"cpu", "memoryMB", "shmMB", "ports", "minFailedInstances", "launcher"} <= rest


@pytest.mark.parametrize(
    ("path", "role", "value", "text"),
    [
        ("/taskRoles/*/resourcePerInstance/memoryMB", "worker", 8192, "8Gi"),
        ("/taskRoles/*/resourcePerInstance/memoryMB", "worker", 1000, "1000"),
        ("/extras/paijupyter/timeLimit", "", 9000, "150m"),
        ("/extras/paijupyter/timeLimit", "", 7200, "2h"),
        ("/taskRoles/*/instances", "worker", 4, "4"),
        ("/taskRoles/*/commands", "worker", ["a", "b"], "a\nb"),
        ("/taskRoles/*/commands", "worker", ["if x\n  then"], "if x\n  then"),
        ("/extras/paijupyter/outputs", "", ["*.pt", "logs/**"], "*.pt\nlogs/**"),
        ("/description", "", "two\n  lines", "two\n  lines"),
        ("/extras/paijupyter/roles/*/service", "ps", True, "true"),
        ("/name", "", None, ""),
    ],
)
def test_a_value_is_shown_as_it_would_be_typed(path: str, role: str, value: Any, text: str) -> None:
    field = row(path, role)
    assert shown(field, value) == text
    if field.widget != "switch":
        assert entered(field, text) == value


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 10**9))
def test_amounts_come_back(number: int) -> None:
    for path, limit in (("/extras/paijupyter/timeLimit", 10**8), ("/jobRetryCount", 10**9)):
        assert entered(row(path), shown(row(path), min(number, limit))) == min(number, limit)
    memory = row("/taskRoles/*/resourcePerInstance/memoryMB", "ps")
    assert entered(memory, shown(memory, number)) == number


@pytest.mark.parametrize(
    ("path", "role", "text", "word"),
    [
        ("/taskRoles/*/instances", "ps", "two", "Instances"),
        ("/taskRoles/*/resourcePerInstance/memoryMB", "ps", "much", "Memory"),
        ("/extras/paijupyter/timeLimit", "", "soon", "Duration"),
    ],
)
def test_what_is_no_value_is_said_in_one_sentence(path: str, role: str, text: str, word: str) -> None:
    with pytest.raises(UsageProblem, match=word):
        entered(row(path, role), text)


def test_rows_of_a_table_that_were_not_touched_keep_their_type() -> None:
    """O19: the text "1.0" stays a text, and 1e-2 is not rewritten, when another parameter changes."""
    before = DATA["parameters"]
    rows = [*pairs("/parameters", before), ("epochs", "20")]
    after = from_pairs("/parameters", rows, before)
    assert after == {"lr": 0.01, "text": "1.0", "epochs": 20}
    text, data = applied(patches.change(DATA, "/parameters", after))
    assert data["parameters"] == after
    assert "lr: 1e-2     # not 0.01" in text and 'text: "1.0"' in text


def test_tables_of_data_storages_ports_and_variables() -> None:
    """O16, O18, O22: one row each, in the words of the options."""
    data = DATA["extras"]["paijupyter"]["data"]
    assert pairs("/extras/paijupyter/data", data) == [("train", "https://host/train.csv,path=data")]
    more = from_pairs(
        "/extras/paijupyter/data", [*pairs("/x/data", data), ("repo", "git+https://h/r.git,ref=main")], data
    )
    assert more[0] == data[0] and more[1]["kind"] == "git" and more[1]["ref"] == "main"
    assert from_pairs("/extras/storages", [("team", "/mnt/team"), ("own", "")]) == [
        {"name": "team", "mountPath": "/mnt/team"},
        {"name": "own"},
    ]
    assert from_pairs("/a/ports", [("tb", "2")]) == {"tb": 2}
    assert from_pairs("/a/env", [("A", "1"), ("", "typed first")]) == {"A": "1"}
    assert from_pairs("/a/env", []) is None
    for path, rows in (
        ("/a/ports", [("tb", "many")]),
        ("/a/env", [("A", "1"), ("A", "2")]),
        ("/extras/storages", [("team", "relative")]),
        ("/extras/paijupyter/data", [("train", "https://user:secret-word@host/x")]),
    ):
        with pytest.raises(UsageProblem) as error:
            from_pairs(path, rows)
        assert "secret-word" not in str(error.value)


def test_a_change_touches_only_its_bytes() -> None:
    """O27: comments, order and bytes of all else stay."""
    text, data = applied(patches.change(DATA, "/taskRoles/worker/resourcePerInstance/gpu", 2))
    assert data["taskRoles"]["worker"]["resourcePerInstance"]["gpu"] == 2
    before, after = DOCUMENT.splitlines(), text.splitlines()
    assert [place for place, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [
        before.index("    resourcePerInstance: {cpu: 2, memoryMB: 8192, gpu: 1}")
    ]
    assert applied(patches.change(DATA, "/name", "mnist")) == (DOCUMENT, DATA)


def test_what_is_taken_out_leaves_no_empty_shell() -> None:
    text, data = applied(patches.change(DATA, "/extras/paijupyter/roles/ps/service", None))
    assert "roles" not in data["extras"]["paijupyter"] and "ps: {}" not in text
    assert data["taskRoles"] == DATA["taskRoles"]
    assert patches.change(DATA, "/description", None) == []


NAMES = st.sampled_from(["a", "b", "c", "d_1", "é"])
TABLES = st.dictionaries(
    NAMES, st.one_of(st.integers(), st.booleans(), st.text("xy #:", max_size=4)), max_size=4
)
LISTS = st.lists(st.sampled_from(["a", "b", "c: d", "#e"]), max_size=5)


@settings(max_examples=40, deadline=None)
@given(TABLES, TABLES)
def test_a_table_becomes_what_was_asked_for(before: dict[str, Any], after: dict[str, Any]) -> None:
    _check_change(before, after)


@settings(max_examples=40, deadline=None)
@given(LISTS, LISTS)
def test_a_list_becomes_what_was_asked_for(before: list[str], after: list[str]) -> None:
    _check_change(before, after)


def _check_change(before: Any, after: Any) -> None:
    from paijupyter.protocol import write

    text = "# first\n" + write({"x": before, "y": {"z": 1}})
    changed = edit_mapping(text, patches.change({"x": before, "y": {"z": 1}}, "/x", after))
    assert read(changed).raw["x"] == after and changed.startswith("# first\n")


def test_roles_are_added_copied_renamed_and_removed() -> None:
    """O10: as cards; what is said of a role elsewhere goes with it."""
    _, data = applied(patches.add_role(DATA))
    new = data["taskRoles"]["worker2"]
    assert new["commands"] == [] and new["dockerImage"] == "image"
    assert data["extras"]["paijupyter"]["roles"]["worker2"] == {"limitMemory": False}
    _, data = applied(patches.add_role(DATA, "ps"))
    assert data["taskRoles"]["ps2"] == DATA["taskRoles"]["ps"]
    assert data["extras"]["paijupyter"]["roles"]["ps2"] == {"service": True}
    text, data = applied(patches.rename_role(DATA, "ps", "server"))
    assert list(data["taskRoles"]) == ["server", "worker"]
    assert data["extras"]["paijupyter"]["roles"] == {"server": {"service": True}}
    assert "# not 0.01" in text
    _, data = applied(patches.remove_role(DATA, "ps"))
    assert list(data["taskRoles"]) == ["worker"] and "roles" not in data["extras"]["paijupyter"]
    with pytest.raises(UsageProblem, match="only one"):
        patches.remove_role(data, "worker")
    for wrong in ("worker", "Not a role", ""):
        with pytest.raises(UsageProblem):
            patches.rename_role(DATA, "ps", wrong)


def test_names_of_secrets_change_and_nothing_else() -> None:
    _, data = applied(patches.name_secrets(DATA, ["HF", "MORE"]))
    assert data["secrets"] == {"HF": "", "MORE": ""}
    _, data = applied(patches.name_secrets(DATA, []))
    assert "secrets" not in data


def test_a_vault_shows_names_only() -> None:
    """O20."""
    vault = Vault()
    vault.put("TOKEN", "swordfish")
    vault.rename("TOKEN", "HF")
    assert "swordfish" not in repr(vault) + str(vault)
    with pytest.raises(TypeError):
        pickle.dumps(vault)
    assert vault.get("HF") == "swordfish"
    vault.forget()
    assert "HF" not in vault


def test_lists_of_several_kinds_are_rows_of_a_name_and_the_rest() -> None:
    """Plug-ins may come twice; images have fields of their own and stay where they are."""
    place = "/extras/com.microsoft.pai.runtimeplugin"
    before = [{"plugin": "git", "parameters": {"repo_uri": "a"}}, {"plugin": "git", "parameters": {}}]
    rows = pairs(place, before)
    assert rows[0] == ("git", '{"parameters": {"repo_uri": "a"}}') and len(rows) == 2
    assert from_pairs(place, [*rows, ("ssh", "")], before) == [*before, {"plugin": "ssh"}]
    assert from_pairs(place, [], before) is None
    with pytest.raises(UsageProblem, match="object as JSON"):
        from_pairs(place, [("ssh", "[1]")])
    image = {"name": "image", "type": "dockerimage", "uri": "a"}
    data = {"name": "d", "type": "data", "uri": ["x"]}
    assert pairs("/prerequisites", [image, data]) == [("d", '{"type": "data", "uri": ["x"]}')]
    assert from_pairs("/prerequisites", [], [image, data]) == [image]


def test_what_hived_is_told_of_a_role_goes_with_it() -> None:
    text = DOCUMENT.replace(
        "extras:\n", "extras:\n  hivedScheduler:\n    taskRoles:\n      worker: {skuType: V100}\n", 1
    )
    data = read(text).raw
    renamed = applied(patches.rename_role(data, "worker", "chief"), text)[1]
    assert renamed["extras"]["hivedScheduler"] == {"taskRoles": {"chief": {"skuType": "V100"}}}
    copied = applied(patches.add_role(data, "worker"), text)[1]
    assert list(copied["extras"]["hivedScheduler"]["taskRoles"]) == ["worker", "worker2"]
    assert "hivedScheduler" not in applied(patches.remove_role(data, "worker"), text)[1]["extras"]
