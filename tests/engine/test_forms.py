"""What forms ask the engine: rows, a document to begin with, values of a text, data of a folder."""

from __future__ import annotations

import pytest

from paijupyter.client.client import JobsClient
from paijupyter.errors import PaiJupyterError


@pytest.fixture
def client():
    return JobsClient.connect()


def test_a_document_to_begin_with_says_what_is_missing_and_where(client):
    """O4: one role without commands; its values come with the text, its problem with path and line."""
    text = client.ask("POST", "/v1/document/start", body={"name": "My job"})["document"]
    read = client.edit(text, [])
    assert read["text"] == text
    assert read["values"]["taskRoles"]["worker"]["commands"] == []
    (problem,) = read["problems"]
    assert problem["severity"] == "error" and problem["path"] == "/taskRoles/worker/commands"
    assert problem["line"] == 1 + text.splitlines().index("    commands: []")
    path = {"op": "replace", "path": "/taskRoles/worker/commands", "value": ["true"]}
    assert client.edit(text, [path])["problems"] == []


def test_values_are_those_that_stand_in_the_text(client):
    """O27: edits refer to values as they are written, so these are what a form shows; JSON can carry them."""
    text = client.ask("POST", "/v1/document/start", body={"name": "job"})["document"]
    odd = text.replace('name: "job"', "name: 007") + "parameters: {far: .inf, when: 2020-01-01}\n"
    values = client.edit(odd, [])["values"]
    assert values["parameters"]["far"] == "Infinity"
    with pytest.raises(PaiJupyterError) as refused:
        client.edit(text + "]", [])
    assert refused.value.problems[0].line == len(text.splitlines()) + 1


def test_the_form_gets_every_row(client):
    schema = client.schema()
    assert [row["path"] for row in schema["form"]] == [row["path"] for row in schema["fields"]]


def test_data_of_a_folder_travels_by_name(client, tmp_path):
    """O18: a file beside the document goes into the store; one that is not there is said with its place."""
    (tmp_path / "train.csv").write_text("1,2\n")
    text = client.ask("POST", "/v1/document/start", body={"name": "job"})["document"]
    data = [{"name": "train", "uri": "train.csv"}, {"name": "gone", "uri": "gone.csv"}]
    made = client.edit(text, [{"op": "add", "path": "/extras/paijupyter/data", "value": data}])["text"]
    body = {"document": made, "folder": str(tmp_path)}
    found = client.ask("POST", "/v1/packages/data", body=body)
    assert list(found["data"]) == ["train"]
    (problem,) = found["problems"]
    assert problem["code"] == "data-file" and problem["path"] == "/extras/paijupyter/data/1"
    planned = client.plan({"document": made, "data": found["data"]})
    unsent = [each["path"] for each in planned["problems"] if each["code"] == "data-not-sent"]
    assert unsent == ["/extras/paijupyter/data/1"]
