"""The rows of a form: every row of the table, each with the type of its value."""

from __future__ import annotations

import json

from paijupyter.protocol.fields import FIELDS
from paijupyter.protocol.form import form_rows


def test_every_row_of_the_table_is_in_the_form_with_a_type():
    """O7, P22: two levels; default, required and what it does go along; nothing else is needed to draw it."""
    rows = form_rows()
    assert [row["path"] for row in rows] == [field.path for field in FIELDS]
    assert json.loads(json.dumps(rows)) == [dict(row) for row in rows]
    for row in rows:
        assert row["schema"].get("type"), row["path"]
        assert "$ref" not in json.dumps(row["schema"]) and "anyOf" not in json.dumps(row["schema"])
        assert row["section"] in ("what", "role", "with", "advanced")
        assert row["widget"] != "select" or row["schema"]["enum"]


def test_what_a_role_shows_at_once_and_what_below_customize():
    """O7: instances, GPUs and commands at once; CPU, memory, image, ports and completion below."""
    role = {row["path"].rpartition("/")[2]: row["level"] for row in form_rows() if row["section"] == "role"}
    assert [name for name, level in role.items() if level == "basic"] == ["instances", "commands", "gpu"]
    assert {"cpu", "memoryMB", "uri", "ports", "minFailedInstances", "shmMB"} <= set(role)


def test_lists_of_several_kinds_say_what_each_kind_has():
    """openpai.md 1.3, 1.7: plug-ins and prerequisites; images have fields of their own."""
    rows = {row["path"]: row["schema"]["items"] for row in form_rows() if row["widget"] == "kinds"}
    plugins = rows["/extras/com.microsoft.pai.runtimeplugin"]["kinds"]
    assert plugins["key"] == "plugin"
    assert set(plugins["of"]) == {"ssh", "tensorboard", "teamwise_storage", "git", "cmd"}
    ssh = plugins["of"]["ssh"]["properties"]["parameters"]
    assert ssh["examples"] == [{"jobssh": True}] and ssh["properties"]["jobssh"]["description"].endswith(".")
    prerequisites = rows["/prerequisites"]["kinds"]
    assert prerequisites["key"] == "type" and set(prerequisites["of"]) == {"script", "output", "data"}
    assert prerequisites["of"]["data"]["properties"]["uri"]["type"] == "array"


def test_what_only_some_profiles_heed_says_so():
    only = {row["path"]: row["profiles"] for row in form_rows() if row["profiles"]}
    assert only["/taskRoles/*/taskRetryCount"] == ["openpai"]
    assert only["/extras/paijupyter/kubernetes/priorityClass"] == ["kubernetes"]
    assert "/extras/gangAllocation" not in only and "/jobRetryCount" not in only


def test_tables_say_what_their_columns_are():
    rows = {row["path"]: row["schema"] for row in form_rows()}
    assert rows["/extras/paijupyter/data"]["items"]["required"] == ["name", "uri"]
    assert rows["/extras/storages"]["items"]["required"] == ["name"]
    assert rows["/taskRoles/*/resourcePerInstance/ports"]["values"] == {"type": "integer", "minimum": 1}
    assert rows["/extras/paijupyter/env"]["values"] == {"type": "string"}
