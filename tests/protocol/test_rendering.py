"""References in commands, as measured on the original server (openpai.md 3, openpai-measured.md 4)."""

from __future__ import annotations

from typing import Any

import pytest

from paijupyter.errors import InvalidDocument
from paijupyter.protocol import check, read, render_commands, write
from paijupyter.protocol.rendering import render_role

PARAMETERS = """
parameters:
  int: 42
  small: 1e-5
  yes: on
  empty: ""
  nothing: null
  list: [1, 2.0, x]
  deep: {a: 1, b: {c: deep}}
  html: "a&b<c>d\\"e'f"
  block: |
    two
    lines
  padded: "  lead and trail  "
  my-key: works
  my.key: never
  tag: "<% $parameters.int %>"
  stage: "<%& $secrets.token %>"
"""
_TEMPLATE = (
    """protocolVersion: 2
name: job
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: x}
  - {name: code, type: script, version: 1.0, uri: "git://x", custom: open}
  - {name: in, type: data, uri: [a, b]}
secrets:
  token: ""
  nested: {k: v}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    script: code
    data: in
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands:
COMMANDS
"""
    + PARAMETERS
)


def with_items(items: str) -> str:
    return _TEMPLATE.replace("COMMANDS", items)


def rendered(command: str) -> str:
    lines = "\n".join(f"        {line}" for line in command.split("\n"))
    return render_commands(read(with_items(f"      - |\n{lines}")))["worker"]


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("<% $parameters.int %>", "42"),
        ("<%$parameters.int%>", "42"),
        ("<%\n$parameters.int %>", "42"),
        ("<% $parameters.small %>", "0.00001"),
        ("<% $parameters.yes %>", "on"),
        ("x<% $parameters.empty %>y", "xy"),
        ("<% $parameters.list %>", "1,2,x"),
        ("<% $parameters.list[1] %>", "2"),
        ("<% $parameters.list.1 %>", "2"),
        ("<% $parameters.list.length %>", "3"),
        ("<% $parameters.deep %>", "[object Object]"),
        ("<% $parameters.deep.a %>", "1"),
        ("<% $parameters.deep.b.c %>", "deep"),
        ("<% $parameters %>", "[object Object]"),
        ("<% $parameters.html %>", "a&b<c>d\"e'f"),
        ("x<% $parameters.block %>y", "xtwo\nlines\ny"),
        ("x<% $parameters.padded %>y", "x  lead and trail  y"),
        ("<% $parameters.my-key %>", "works"),
        ("<% $parameters.tag %>", "<% $parameters.int %>"),
        ("<% $parameters.stage %>", "<% $secrets.token %>"),
        ("<% $secrets.token %>", "<% $secrets.token %>"),
        ("<%$secrets.nested.k%>", "<% $secrets.nested.k %>"),
        ("<% $data.uri %>", "a,b"),
        ("<% $data.uri[1] %>", "b"),
        ("<% $data.name %>", "in"),
        ("<% $script.version %>", "1"),
        ("<% $script.custom %>", "open"),
        ("a <%! a comment %>b", "a b"),
        ("a\n<%! a comment %>\nb", "a\nb"),
        ("no tag: <p> 5 % 3", "no tag: <p> 5 % 3"),
    ],
)
def test_o19_references(reference: str, text: str) -> None:
    assert rendered(reference) == text


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("<% $parameters.nothing %>", "unresolved-reference"),
        ("<% $parameters.lost %>", "unresolved-reference"),
        ("<% $parameters.my.key %>", "unresolved-reference"),
        ("<% $parameters.list[7] %>", "unresolved-reference"),
        ("<% $parameters.int.x %>", "unresolved-reference"),
        ("<% $output.uri %>", "unresolved-reference"),
        ("<% $dockerimage.uri %>", "unresolved-reference"),
        ("<% parameters.int %>", "unresolved-reference"),
        ("<% %>", "unresolved-reference"),
        ("<% $secrets.lost %>", "unknown-secret"),
        ("<% $secrets %>", "unknown-secret"),
        ("<%& $parameters.int %>", "reference-form"),
        ("<%{ $parameters.int }%>", "reference-form"),
        ("<%# $parameters.int %>", "reference-form"),
        ("<%/ $parameters.int %>", "reference-form"),
        ("echo <% $parameters.int", "unclosed-reference"),
    ],
)
def test_o19_what_the_server_leaves_or_drops_is_an_error_with_its_line(reference: str, code: str) -> None:
    text = with_items(f"      - echo 1\n      - |\n        echo 2\n        echo {reference}")
    document = read(text)
    with pytest.raises(InvalidDocument) as caught:
        render_commands(document)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == (code, "/taskRoles/worker/commands/1")
    assert problem.line == text[: text.index(reference)].count("\n") + 1
    assert problem in check(document)


@pytest.mark.parametrize(
    "item",
    [
        "- >\n        echo 1\n        <%\n        $parameters.lost %>",
        "- echo 1\n        && echo <% $parameters.lost %>",
        '- "echo 1 \\\n        <% $parameters.lost %>"',
        "- |\n        <% $parameters.int %> <% $parameters.int %>\n        <% $parameters.lost %>",
        "- <% $parameters.lost %>",
    ],
)
def test_lines_of_references_in_every_style(item: str) -> None:
    text = with_items(f"      {item}")
    (problem,) = [p for p in check(read(text)) if p.severity == "error"]
    at = text.index("$parameters.lost")
    at = text.rindex("<%", 0, at)
    assert problem.line == text.count("\n", 0, at) + 1


def test_the_same_reference_twice_is_found_on_both_lines() -> None:
    text = with_items("      - |\n        <% $parameters.x1 %>\n        <% $parameters.x1 %>")
    first = text[: text.index("x1")].count("\n") + 1
    assert [p.line for p in check(read(text)) if p.severity == "error"] == [first, first + 1]


def test_hints_name_what_was_meant() -> None:
    (problem,) = render_role(read(with_items("      - <% $parameters.intt %>")), "worker").problems
    assert problem.hint == "Did you mean `int`?"


def test_commands_are_trimmed_joined_by_newlines_and_deployed(minimal: Any) -> None:
    """Only the ends of an item are trimmed: heredocs keep their indentation (openpai.md 3.3)."""
    data = minimal({"/taskRoles/worker/commands": ["  echo a \\\n", "  b c", "cat <<X\n  in\nX\n"]})
    data["deployments"] = [
        {"name": "other", "taskRoles": {"worker": {"preCommands": ["no"]}}},
        {"name": "mine", "taskRoles": {"worker": {"preCommands": ["pre"], "postCommands": ["post"]}}},
    ]
    data["defaults"] = {"deployment": "mine"}
    assert render_commands(read(write(data)))["worker"] == "pre\necho a \\\nb c\ncat <<X\n  in\nX\npost"
    del data["defaults"]
    assert render_commands(read(write(data)))["worker"] == "echo a \\\nb c\ncat <<X\n  in\nX"


def test_references_are_filled_in_per_role(minimal: Any) -> None:
    data = minimal({"/prerequisites/1": {"name": "a", "type": "data", "uri": ["A"]}})
    data["prerequisites"].append({"name": "b", "type": "data", "uri": ["B"]})
    role = data["taskRoles"]["worker"] | {"commands": ["use <% $data.uri[0] %>"]}
    data["taskRoles"] = {"one": role | {"data": "a"}, "two": role | {"data": "b"}}
    assert render_commands(read(write(data))) == {"one": "use A", "two": "use B"}


@pytest.mark.parametrize(
    ("command", "warned"),
    [
        ("python train.py --token <% $secrets.token %>", True),
        ("python train.py --token=<% $secrets.token %>", True),
        ("curl -H 'Authorization: <% $secrets.token %>' http://x", True),
        ("export TOKEN=<% $secrets.token %>", False),
        ('TOKEN="<% $secrets.token %>" python train.py', False),
        ("echo <% $secrets.token %> | login --stdin", False),
        ("cat > f <<EOF\ntoken: <% $secrets.token %>\nEOF", False),
        ("cat <<EOF\nx\nEOF\npython t.py <% $secrets.token %>", True),
        ("python t.py <% $parameters.stage %>", True),
        ("# not <% $secrets.token %>", False),
    ],
)
def test_o20_a_secret_on_a_command_line_gets_a_warning(command: str, warned: bool) -> None:
    """architecture.md, decision 8."""
    lines = "\n".join(f"        {line}" for line in command.split("\n"))
    problems = check(read(with_items(f"      - |\n{lines}")))
    assert bool([p for p in problems if p.code == "secret-argument" and p.severity == "warning"]) is warned


def test_rendering_time_does_not_explode() -> None:
    """Long blanks and thousands of tags are read in one pass."""
    command = "<% " + " " * 200_000 + "x"
    data = read(with_items("      - x")).data
    data["taskRoles"]["worker"]["commands"] = [command, "<% $parameters.int %>" * 5000]
    document = read(write(data))
    with pytest.raises(InvalidDocument):
        render_commands(document)
