"""Documents are read with every variant that a validator accepts, or refused with all reasons."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paijupyter.errors import InvalidDocument, PaiJupyterError
from paijupyter.protocol import check, read, render_commands, write
from paijupyter.protocol.document import Document

MINIMAL: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "job",
    "type": "job",
    "version": "1",
    "prerequisites": [
        {"name": "image", "type": "dockerimage", "uri": "x", "auth": {"password": "<% $secrets.k %>"}},
        {"name": "d", "type": "data", "uri": ["x"]},
    ],
    "parameters": {"p": 1},
    "secrets": {"k": ""},
    "taskRoles": {
        "worker": {
            "instances": 1,
            "completion": {"minFailedInstances": 1, "minSucceededInstances": 1},
            "taskRetryCount": 0,
            "dockerImage": "image",
            "data": "d",
            "prerequisites": ["image"],
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1024, "gpu": 0, "ports": {"a": 1}},
            "extraContainerOptions": {"shmMB": 1},
            "commands": ["echo <% $parameters.p %> <% $data.uri[0] %> <% $secrets.k %>"],
        }
    },
    "deployments": [{"name": "d", "taskRoles": {"worker": {"preCommands": ["x"]}}}],
    "defaults": {"deployment": "d", "virtualCluster": "default"},
    "extras": {
        "storages": [{"name": "a"}],
        "gangAllocation": True,
        "com.microsoft.pai.runtimeplugin": [
            {"plugin": "ssh", "taskroles": ["worker"], "parameters": {"a": "<% $parameters.p %>"}}
        ],
        "hivedScheduler": {"taskRoles": {"worker": {"skuType": "a", "affinityGroupName": "x"}}},
        "paijupyter": {"version": 1, "env": {"A": "b"}, "roles": {"worker": {"env": {"A": "b"}}}},
    },
}


def refusal(text: str | bytes) -> InvalidDocument:
    with pytest.raises(InvalidDocument) as caught:
        read(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "empty-document", None),
        ("# only a comment\n", "empty-document", None),
        ("- a\n- b\n", "not-a-mapping", 1),
        ("just text", "not-a-mapping", 1),
        ("a: 1\nb: [1, 2\nc: 3\n", "yaml-syntax", 3),
        ("a: b: c\n", "yaml-syntax", 1),
        ("a:\n\tb: 1\n", "yaml-syntax", 2),
        ("a: 1\n---\nb: 2\n", "several-documents", 2),
        ("a: 1\n---\n", "several-documents", 2),
        ("a: *nowhere\n", "yaml-syntax", 1),
        ("a: &a [*a]\n", "yaml-syntax", 1),
        ("a: 1\nb: \0\n", "yaml-syntax", 2),
        ('a: "\\U99999999"\n', "yaml-syntax", None),
        ("a: !!python/object:os.system x\n", "yaml-tag", 1),
        ("a: !!int x\n", "yaml-tag", 1),
        ("a: !!set {x}\n", "yaml-tag", 1),
        ("a: 1\n<<: 5\n", "merge", 2),
        ("a: '", "yaml-syntax", 1),
    ],
)
def test_o27_what_is_no_document_is_refused_with_its_line(text: str, code: str, line: int | None) -> None:
    problem = refusal(text).problems[0]
    assert (problem.code, problem.severity) == (code, "error")
    if line is not None:
        assert problem.line == line


def test_hints_say_where_it_was_opened() -> None:
    assert refusal("a:\n  - 'x\n  - y\n").problems[0].line == 2
    assert "in line 2 is not closed" in refusal("a: 1\nb: [1, 2\nc: 3\n").problems[0].hint


def test_all_duplicate_keys_are_named_with_both_lines() -> None:
    problems = refusal("a: 1\nb: 2\na: 3\nc: {x: 1, 'x': 2}\n1: a\n'1': b\n").problems
    assert [(p.code, p.line, p.path) for p in problems] == [
        ("duplicate-key", 3, "/a"),
        ("duplicate-key", 4, "/c/x"),
        ("duplicate-key", 6, "/1"),
    ]
    assert "line 1" in problems[0].message


def test_tabs_say_so_and_are_fine_where_js_yaml_takes_them() -> None:
    assert refusal("a:\n\tb: 1\n").problems[0].message.startswith("Tab ")
    assert read("a:\t1\nb: [1,\t2]\t# c\n").raw == {"a": 1, "b": [1, 2]}
    assert read('{\n\t"a": [\n\t\t1\n\t]\n}').raw == {"a": [1]}, "JSON indented with tabs"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # What js-yaml 3.13.1 says, where PyYAML says something else or nothing.
        ("a: b\tc\n", "b\tc"),
        ("a: b \t # c\n", "b"),
        ("a: b\t\n  c\n", "b c"),
        ("a: b\n  \tc\n", "b c"),
        ("a:\n  - x\n\t\n  - y\n", ["x", "y"]),
        ("a: 1\n\t# c\n", 1),
        ("a: |\n  x", "x\n"),
        ("a: >\n  x\n  y", "x y\n"),
        ("a: |-\n  x", "x"),
        ("a: ! 12\n", 12),
        ("a: !!str 12\n", "12"),
        ("a: !!float 1\n", 1),
        ("? a\n: {x, y: z}\n", {"x": None, "y": "z"}),
        ("a: [b: c]\n", [{"b": "c"}]),
        ("a : x\n", "x"),
    ],
)
def test_syntax_means_what_js_yaml_says(text: str, value: Any) -> None:
    assert read(text).raw == {"a": value}


def test_keys_are_the_text_javascript_makes_of_them() -> None:
    assert list(read("1.0: a\n010: b\ntrue: c\n~: d\n[1, 2]: e\n").raw) == ["1", "8", "true", "null", "1,2"]


def test_alias_bomb_is_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert refusal("\n".join(lines)).problems[0].code == "too-many-nodes"


def test_aliases_and_merges_are_read_like_js_yaml() -> None:
    document = read("a: &x {k: 1, l: 2}\nb: *x\nc:\n  <<: *x\n  l: 3\nd:\n  <<: [{m: 1}, *x]\n")
    assert document.raw["b"] == {"k": 1, "l": 2}
    assert document.raw["c"] == {"l": 3, "k": 1}
    assert document.raw["d"] == {"m": 1, "k": 1, "l": 2}
    document.raw["b"]["k"] = 9
    assert document.raw["a"]["k"] == 1, "two uses of an anchor must not share their value"
    assert document.line_of("/b") == 2
    assert document.line_of("/b/k") == 1


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_depth_is_bounded(opening: str) -> None:
    for count in (200, 5000):
        assert refusal(opening * count).problems[0].code in ("too-deep", "yaml-syntax")


@pytest.mark.slow
def test_documents_of_many_megabytes_are_refused_and_smaller_ones_read(minimal: Any) -> None:
    assert refusal("a: " + "x" * 10_000_000).problems[0].code == "too-large"
    data = minimal({"/taskRoles/worker/commands": ["echo " + "x" * 100] * 900})
    assert read(write(data)).data == data


def test_byte_order_mark_and_crlf_and_utf_16(minimal: Any) -> None:
    text = write(minimal())
    data = read(text).data
    for variant in (
        "\ufeff" + text,
        text.replace("\n", "\r\n"),
        ("\ufeff" + text).encode(),
        text.encode("utf-16"),
        text.replace("\n", "\r\n").encode(),
    ):
        document = read(variant)
        assert document.data == data
        assert document.line_of("/taskRoles/worker/commands") == read(text).line_of(
            "/taskRoles/worker/commands"
        )
    assert read("\ufeff" + text).text == "\ufeff" + text, "the source stays byte for byte"


def test_bytes_that_are_no_text_are_refused() -> None:
    problem = refusal(b"a: 1\nb: \xff\xfe\n").problems[0]
    assert (problem.code, problem.line) == ("not-utf-8", 2)


def test_job_template_with_braces_is_read_not_crashed_on() -> None:
    """`{{jobname}}` is a mapping as a key in YAML (openpai.md 13, job.yml)."""
    assert read("name: {{jobname}}\n").raw == {"name": {"[object Object]": None}}


def test_lines_are_those_of_the_key(minimal: Any) -> None:
    text = "protocolVersion: 2\ntaskRoles:\n\n  worker:\n    commands:\n      - a\n      - |\n        b\n"
    document = read(text)
    assert [
        document.line_of(path)
        for path in (
            "/taskRoles",
            "/taskRoles/worker",
            "/taskRoles/worker/commands/0",
            "/taskRoles/worker/commands/1",
        )
    ] == [2, 4, 6, 7]
    assert document.line_of("/taskRoles/worker/instances") == 4, "what a correction added is at its parent"
    assert document.line_of("/nowhere/at/all") == 1
    assert document.column_of("/taskRoles/worker") == 3


# --- corrections (openpai.md 2.2)


def corrected(document: Document) -> list[str]:
    return [problem.code for problem in document.corrections]


def test_missing_instances_and_resources_are_filled_in(minimal: Any) -> None:
    data = minimal({"/taskRoles/worker/instances": ..., "/taskRoles/worker/resourcePerInstance": {"gpu": 2}})
    document = read(write(data))
    role = document.data["taskRoles"]["worker"]
    assert role["instances"] == 1
    assert role["resourcePerInstance"] == {"gpu": 2, "cpu": 1, "memoryMB": 1024}
    assert corrected(document) == ["instances-missing", "resource-missing", "resource-missing"]
    assert "instances" not in document.raw["taskRoles"]["worker"]
    assert not [p for p in check(document) if p.severity == "error"]


@pytest.mark.parametrize("value", [None, 0])
def test_null_and_zero_completion_counts(minimal: Any, value: int | None) -> None:
    counts = {"minFailedInstances": value, "minSucceededInstances": value}
    document = read(write(minimal({"/taskRoles/worker/completion": counts})))
    assert "completion" not in document.data["taskRoles"]["worker"]
    assert corrected(document) == ["completion-count"] * 2


def test_data_uri_as_a_text_becomes_a_list(minimal: Any) -> None:
    item = {"name": "d", "type": "data", "uri": "http://x"}
    document = read(write(minimal({"/prerequisites/1": item})))
    assert document.data["prerequisites"][1]["uri"] == ["http://x"]
    assert corrected(document) == ["uri-list"]


def test_version_numbers_become_the_text_that_commands_would_get(minimal: Any) -> None:
    text = write(minimal()) + "version: 1.0\n"
    document = read(text)
    assert document.data["version"] == "1"
    assert corrected(document) == ["version-number"]


def test_o33_old_role_names_and_port_labels_are_renamed_everywhere(minimal: Any) -> None:
    data = minimal()
    data["taskRoles"] = {"my-worker.1": data["taskRoles"]["worker"], "1": data["taskRoles"]["worker"]}
    data["taskRoles"]["my-worker.1"]["resourcePerInstance"]["ports"] = {"a-b": 1}
    data["deployments"] = [{"name": "d", "taskRoles": {"my-worker.1": {"preCommands": ["x"]}}}]
    data["extras"] = {"hivedScheduler": {"taskRoles": {"my-worker.1": {"skuType": "A"}}}}
    document = read(write(data))
    assert list(document.data["taskRoles"]) == ["myworker1", "role1"]
    assert document.data["taskRoles"]["myworker1"]["resourcePerInstance"]["ports"] == {"a_b": 1}
    assert list(document.data["deployments"][0]["taskRoles"]) == ["myworker1"]
    assert list(document.data["extras"]["hivedScheduler"]["taskRoles"]) == ["myworker1"]
    assert document.line_of("/taskRoles/myworker1") == read(write(data)).places["/taskRoles"].line + 1
    assert not [p for p in check(document) if p.severity == "error"]


def test_what_nobody_accepts_is_not_corrected(minimal: Any) -> None:
    document = read(write(minimal({"/taskRoles/worker/instances": None})))
    assert document.corrections == []
    assert [p.path for p in check(document) if p.severity == "error"] == ["/taskRoles/worker/instances"]


# --- nothing else is ever raised

_PIECES = st.sampled_from(
    [
        "protocolVersion: 2\n", "name: ", "taskRoles:\n", "  worker:\n", "    commands:\n", "      - ",
        "a", "1", "- ", ": ", "\n", "  ", "{", "}", "[", "]", ",", "|", ">", "'", '"', "&a ", "*a",
        "!!str ", "!", "%", "@", "\t", "#", "---\n", "...\n", "? ", "<<: ", "~", "<% $parameters.x %>",
        "<%", "extras:\n", "\r\n", "\ufeff", "prerequisites:\n", "parameters: ", "secrets: ", "null",
        "deployments:\n", "\\", "\x85", "  type: data\n",
    ]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=40).map("".join))
@settings(max_examples=150)
@example("a: !<tag:yaml.org,2002:merge> x")
@example("%YAML 1.99999999999\n---\na: 1")
@example('"a": "\\xZZ"')
@example("? [a, {b: c}]\n: d")
def test_no_text_ends_in_another_exception(text: str) -> None:
    try:
        document = read(text)
    except PaiJupyterError as error:
        assert error.message
        return
    for target in ("paijupyter", "openpai"):
        assert all(problem.message for problem in check(document, target))  # type: ignore[arg-type]
    with contextlib.suppress(PaiJupyterError):
        render_commands(document)


@given(st.binary(max_size=200))
def test_no_bytes_end_in_another_exception(data: bytes) -> None:
    with contextlib.suppress(PaiJupyterError):
        check(read(data))


@given(
    st.sampled_from(sorted(read(write(MINIMAL)).places)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=4,
    ),
    st.booleans(),
)
@settings(max_examples=150)
def test_no_value_at_any_place_ends_in_another_exception(path: str, value: Any, yaml_date: bool) -> None:
    data: Any = copy.deepcopy(MINIMAL)
    here, keys = data, path.split("/")[1:]
    for key in keys[:-1]:
        here = here[int(key)] if isinstance(here, list) else here[key]
    if keys:
        here[int(keys[-1]) if isinstance(here, list) else keys[-1]] = "XX" if yaml_date else value
    text = write(data).replace('"XX"', "2020-01-02")
    document = read(text)
    for target in ("paijupyter", "openpai"):
        check(document, target)  # type: ignore[arg-type]
    with contextlib.suppress(PaiJupyterError):
        render_commands(document)
