"""When a job ends, what a document of ours looks like, and names."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paijupyter.errors import UsageProblem
from paijupyter.protocol import (
    FIELDS,
    Counts,
    JobOptions,
    Policy,
    build_document,
    check,
    converted,
    decide,
    parse_role,
    parse_secret,
    policies,
    read,
    render_commands,
    short_name,
    split_suffix,
    split_task_key,
    task_key,
    with_suffix,
    write,
)
from paijupyter.protocol.models import JobDocument, document_schema

THREE = Policy(3, 1, 3)


@pytest.mark.parametrize(
    ("policy", "counts", "state", "role"),
    [
        # openpai-measured.md 6.2, three instances unless said.
        ({"w": THREE}, {"w": Counts(0, 1)}, "failed", "w"),
        ({"w": THREE}, {"w": Counts(2, 0)}, None, None),
        ({"w": THREE}, {"w": Counts(3, 0)}, "succeeded", "w"),
        ({"w": THREE}, {}, None, None),
        ({"w": Policy(3, 1, 1)}, {"w": Counts(1, 0)}, "succeeded", "w"),
        ({"w": Policy(3, 2, 3)}, {"w": Counts(0, 1)}, None, None),
        ({"w": Policy(3, 2, 3)}, {"w": Counts(0, 2)}, "failed", "w"),
        ({"w": Policy(3, -1, 3)}, {"w": Counts(1, 1)}, None, None),
        ({"w": Policy(3, -1, 3)}, {"w": Counts(2, 1)}, "succeeded", ""),
        ({"w": Policy(2, 5, 9)}, {"w": Counts(1, 1)}, "succeeded", ""),
        ({"ps": Policy(1, 1, 1), "w": Policy(2, 1, 2)}, {"w": Counts(2, 0)}, "succeeded", "w"),
        ({"ps": Policy(1, 1, -1), "w": Policy(2, 1, 2)}, {"ps": Counts(1, 0)}, None, None),
        (
            {"ps": Policy(1, 1, -1), "w": Policy(2, 1, 2)},
            {"ps": Counts(0, 1), "w": Counts(2, 0)},
            "failed",
            "ps",
        ),
        ({"ps": Policy(1, 1, -1)}, {"ps": Counts(1, 0)}, "succeeded", ""),
        ({"w": Policy(1, -5, 1)}, {"w": Counts(0, 1)}, "succeeded", ""),
    ],
)
def test_o23_completion(policy: Any, counts: Any, state: str | None, role: str | None) -> None:
    verdict = decide(policy, counts)
    if state is None:
        assert verdict is None
    else:
        assert verdict is not None
        assert (verdict.state, verdict.role) == (state, role)
        assert verdict.message.endswith(".")


@given(
    st.dictionaries(
        st.sampled_from("abc"),
        st.tuples(
            st.integers(1, 4), st.integers(-1, 5), st.integers(-1, 5), st.integers(0, 4), st.integers(0, 4)
        ),
        min_size=1,
    )
)
def test_o23_a_job_always_ends_when_all_tasks_have(roles: dict[str, tuple[int, int, int, int, int]]) -> None:
    policy = {name: Policy(i, f, s) for name, (i, f, s, _, _) in roles.items()}
    counts = {name: Counts(min(done, i), i - min(done, i)) for name, (i, _, _, done, _) in roles.items()}
    assert decide(policy, counts) is not None


def test_p36_policies_of_services_and_of_documents() -> None:
    roles: dict[str, Any] = {
        "ps": {"instances": 2},
        "worker": {"instances": 3},
        "board": {"instances": 1},
        "odd": {"instances": 4, "completion": {"minFailedInstances": 2, "minSucceededInstances": 0}},
    }
    extras = {"paijupyter": {"version": 1, "roles": {"board": {"service": True}}}}
    assert policies({"taskRoles": roles, "extras": extras}) == {
        "ps": Policy(2, 1, -1),
        "worker": Policy(3, 1, 3),
        "board": Policy(1, 1, -1),
        "odd": Policy(4, 2, 4),
    }
    roles["ps"]["completion"] = {"minSucceededInstances": 1}
    assert policies({"taskRoles": roles})["ps"] == Policy(2, 1, 1), "a count of its own decides"
    del roles["ps"]["completion"]
    extras = {"paijupyter": {"version": 1, "roles": {"ps": {"service": False}}}}
    assert policies({"taskRoles": roles, "extras": extras})["ps"] == Policy(2, 1, 2)


def full_options() -> JobOptions:
    return JobOptions(
        name="My job: ünicode!",
        roles=[
            parse_role("ps:1,mem=2Gi"),
            parse_role(
                "worker:4,gpu=1,cpu=2,mem=8Gi,shm=1Gi,port=tb:1,image=b/c:1,launcher=torchrun,env.A=b"
            ),
            parse_role("none:0"),
        ],
        commands={"ps": ["python ps.py"], "worker": ["python train.py --lr <% $parameters.lr %>"]},
        parameters={"lr": 0.1, "note": "1e5", "layers": [1, 2]},
        secrets=[parse_secret("HF_TOKEN=keyring:hf")],
        image="a/b:1",
        env={"X": "yes"},
        time_limit=3600,
        outputs=["model.npz"],
        package="0" * 64,
        notebook={"path": "quickstart.ipynb", "cell": "abc"},
        retry_count=2,
        virtual_cluster="default",
        requirements="requirements.txt",
        install="if-missing",
        barrier_timeout=60,
        description="A job",
    )


def test_o1_a_built_document_has_everything_and_is_clean_on_both_targets() -> None:
    data = build_document(full_options())
    document = read(write(data))
    assert document.data == data
    assert check(document) == check(document, "openpai") == []
    JobDocument.model_validate(data)
    assert list(data["taskRoles"]) == ["ps", "worker"], "a role of 0 instances is left out (P25)"
    assert data["taskRoles"]["ps"]["completion"] == {"minFailedInstances": 1, "minSucceededInstances": -1}
    assert data["taskRoles"]["worker"]["completion"] == {"minFailedInstances": 1, "minSucceededInstances": 4}
    assert data["name"] == "My-job-unicode"
    assert [item["name"] for item in data["prerequisites"]] == ["image", "image_worker"]
    assert render_commands(document)["worker"] == "python train.py --lr 0.1"
    assert data["extras"]["paijupyter"]["roles"] == {
        "ps": {"service": True},
        "worker": {"env": {"A": "b"}, "launcher": "torchrun"},
    }


def test_o20_a_built_document_has_names_of_secrets_and_not_where_they_come_from() -> None:
    text = write(build_document(full_options()))
    assert '\nsecrets:\n  HF_TOKEN: ""\n' in text
    assert "keyring" not in text


def test_the_least_that_makes_a_job() -> None:
    data = build_document(JobOptions("", ["true"]))
    assert data["name"] == "job"
    assert data["taskRoles"]["worker"]["resourcePerInstance"] == {"cpu": 1, "memoryMB": 1024, "gpu": 0}
    assert "completion" not in data["taskRoles"]["worker"]
    assert data["extras"] == {"paijupyter": {"version": 1, "roles": {"worker": {"limitMemory": False}}}}
    assert check(read(write(data)), "openpai") == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (JobOptions("a", []), "no command"),
        (JobOptions("a", [" "]), "no command"),
        (JobOptions("a", {"ps": ["x"]}), "`worker` has no command"),
        (JobOptions("a", ["x"], [parse_role("w"), parse_role("w")]), "twice"),
        (JobOptions("a", ["x"], [parse_role("w:0")]), "none left"),
    ],
)
def test_what_makes_no_job(options: JobOptions, words: str) -> None:
    with pytest.raises(UsageProblem, match=words):
        build_document(options)


def test_p1_p39_names() -> None:
    assert short_name("Ünï code.ipynb") == "Uni-code-ipynb"
    assert short_name("../") == "job"
    assert len(short_name("x" * 500)) == 100
    full = with_suffix("mnist")
    assert re.fullmatch(r"mnist-[a-z2-7]{6}", full)
    assert split_suffix(full)[0] == "mnist"
    assert split_suffix("my-worker") == ("my-worker", ""), "a word is no suffix"
    assert split_suffix("a-b") == ("a-b", "")


@given(st.text())
def test_p1_every_text_becomes_a_usable_name(text: str) -> None:
    name = short_name(text)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,100}", name)
    assert short_name(name) == name
    assert split_suffix(with_suffix(name))[0] == name


def test_p2_two_suffixes_differ() -> None:
    assert len({with_suffix("a") for _ in range(200)}) == 200


def test_role_and_task_names() -> None:
    assert [converted(name) for name in ("Ps_Server", "WORKER", "_")] == ["psserver", "worker", ""]
    assert split_task_key(task_key("my-role", 3)) == ("my-role", 3)
    assert split_task_key("worker") is None


# --- the table of fields is held to the model (architecture.md, decision 14)


def _resolve(schema: dict[str, Any], node: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in node:
        return _resolve(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    found = [node]
    for word in ("anyOf", "oneOf", "allOf"):
        for option in node.get(word, ()):
            found += _resolve(schema, option)
    return found


def _member(schema: dict[str, Any], nodes: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for node in nodes:
        if key == "*":
            inner = [
                node[word] for word in ("items", "additionalProperties") if isinstance(node.get(word), dict)
            ]
            inner += list(node.get("patternProperties", {}).values())
        else:
            inner = [node["properties"][key]] if key in node.get("properties", {}) else []
        for item in inner:
            found += _resolve(schema, item)
    return found


@pytest.mark.parametrize("row", FIELDS, ids=lambda row: row.path)
def test_every_field_is_one_of_the_model(row: Any) -> None:
    schema = document_schema()
    nodes = _resolve(schema, schema)
    for key in row.path.strip("/").split("/"):
        nodes = _member(schema, nodes, key)
        assert nodes, f"the model has no {row.path}"
    types = {node.get("type") for node in nodes}
    if row.widget in ("number", "memory", "duration"):
        assert "integer" in types
    if row.widget == "switch":
        assert "boolean" in types
    if row.widget == "select":
        assert any("enum" in node for node in nodes)


def test_fields_are_described_and_unique() -> None:
    """P22, P33: default, required and what it does, for every one."""
    assert len({row.path for row in FIELDS}) == len(FIELDS)
    flags = [row.flag for row in FIELDS if row.flag]
    assert len(set(flags)) == len(flags)
    for row in FIELDS:
        assert row.label[0].isupper() and row.help.endswith(".")
        assert row.level in ("basic", "advanced")
        assert not (row.required and row.default is not None)
        if row.widget in ("number", "memory", "duration") and row.path != "/jobRetryCount":
            assert row.unit


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["taskRoles"].update(Worker=data["taskRoles"]["worker"]),
        lambda data: data["taskRoles"]["worker"].pop("instances"),
        lambda data: data["taskRoles"]["worker"]["resourcePerInstance"].pop("gpu"),
        lambda data: data["taskRoles"]["worker"]["resourcePerInstance"].update(ports={}),
        lambda data: data["taskRoles"]["worker"].update(completion={"minFailedInstances": -2}),
        lambda data: data["taskRoles"]["worker"].update(env={}),
        lambda data: data.update(version=1.0),
        lambda data: data.update(protocolVersion="2"),
        lambda data: data.pop("prerequisites"),
        lambda data: data["prerequisites"].append({"name": "d", "type": "data", "uri": "x"}),
        lambda data: data["extras"]["paijupyter"].update(version=2),
        lambda data: data["extras"]["paijupyter"].update(unknown=1),
    ],
)
def test_the_writing_model_takes_only_what_all_validators_accept(change: Any) -> None:
    """openpai.md 2.2: emit the intersection."""
    data = build_document(JobOptions("a", ["true"]))
    JobDocument.model_validate(data)
    change(data)
    with pytest.raises(ValidationError):
        JobDocument.model_validate(data)


def test_values_of_a_document_go_through_json() -> None:
    data = read("a: 2020-01-02\nb: [1.5, yes, ~]\n").raw
    assert json.loads(json.dumps(data)) == {"a": "2020-01-02T00:00:00.000Z", "b": [1.5, "yes", None]}
