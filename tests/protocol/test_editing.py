"""An edit changes the bytes of its node and no others: comments, order, quotes, line ends stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from paijupyter.errors import InvalidDocument, PaiJupyterError, UsageProblem
from paijupyter.protocol import edit, read
from paijupyter.protocol.patching import Step, make, same

BLOCK = """\
# head
protocolVersion: 2
name: job   # the name
type: 'job'

taskRoles:
  worker:   # W
    instances: 1
    commands:
    - echo 'a'   # first
    # between
    - |
      echo b
      echo c

    - "x"
    -   name: odd
        deep:
          - - 1
            - 2
parameters: {lr: 0.1, n: [1, 2], }
empty:
prerequisites:
  - name: a
    type: dockerimage
    uri: x
  # second
  - type: data
    name: d
    text: >-
      folded
      text
extras: {}
# tail
"""
JSON_TEXT = json.dumps(read(BLOCK).raw)
PRETTY = json.dumps(read(BLOCK).raw, indent=2)
SHARED = """\
base: &b {cpu: 1, list: [1, 2]}   # shared
one: *b
two:
  <<: *b
  cpu: 2   # own
other: 1   # keep
"""


def op(kind: str, path: str, value: Any = None) -> dict[str, Any]:
    return {"op": kind, "path": path} | ({} if kind == "remove" else {"value": value})


def one(text: str, *operations: dict[str, Any]) -> str:
    return edit(text, operations)[0]


@pytest.mark.parametrize(
    ("operation", "old", "new"),
    [
        (op("replace", "/name", "other"), "name: job ", "name: other "),
        (op("replace", "/name", "1e5"), "name: job ", 'name: "1e5" '),
        (op("replace", "/name", "yes"), "name: job ", 'name: "yes" '),
        (op("replace", "/type", "it's"), "'job'", "'it''s'"),
        (op("replace", "/type", 5), "'job'", "5"),
        (op("replace", "/taskRoles/worker/instances", 4), "instances: 1", "instances: 4"),
        (op("replace", "/taskRoles/worker/commands/0", "echo z"), "- echo 'a' ", "- echo z "),
        (op("replace", "/taskRoles/worker/commands/0", "a: b"), "- echo 'a' ", '- "a: b" '),
        (
            op("replace", "/taskRoles/worker/commands/1", "one\ntwo\n"),
            "      echo b\n      echo c\n",
            "      one\n      two\n",
        ),
        (op("replace", "/parameters/lr", 0.5), "lr: 0.1", "lr: 0.5"),
        (op("replace", "/parameters/n/1", "a,b"), "n: [1, 2]", 'n: [1, "a,b"]'),
        (op("replace", "/empty", {"a": 1}), "empty:\n", "empty:\n  a: 1\n"),
        (op("replace", "/empty", "x"), "empty:\n", 'empty: x\n'),
        (op("add", "/taskRoles/worker/commands/-", "y"), "            - 2\n", '            - 2\n    - "y"\n'),
        (op("add", "/taskRoles/worker/commands/0", "y"), "    - echo 'a'", "    - \"y\"\n    - echo 'a'"),
        (op("add", "/taskRoles/ps", {"instances": 2}), "parameters:", "  ps:\n    instances: 2\nparameters:"),
        (op("add", "/parameters/x", "s"), "[1, 2], }", '[1, 2], x: "s", }'),
        (op("add", "/extras/paijupyter/env/A", "1"), "extras: {}",
         'extras:\n  paijupyter:\n    env:\n      A: "1"'),
        (op("add", "/secrets", {"A": ""}), "extras: {}\n", 'extras: {}\nsecrets:\n  A: ""\n'),
        (op("remove", "/name"), "name: job   # the name\n", ""),
        (op("remove", "/taskRoles/worker/commands/0"), "    - echo 'a'   # first\n", ""),
        (op("remove", "/taskRoles/worker/commands/1"), "    - |\n      echo b\n      echo c\n", ""),
        (op("remove", "/taskRoles/worker/commands/3/deep/0/0"), "- - 1\n            - 2", "- - 2"),
        (op("remove", "/prerequisites/1/type"), "- type: data\n    name", "- name"),
        (op("remove", "/parameters/lr"), "lr: 0.1, ", ""),
        (op("remove", "/extras"), "extras: {}\n", ""),
        ({"op": "move", "from": "/taskRoles/worker", "path": "/taskRoles/trainer"},
         "worker:   # W", "trainer:   # W"),
        ({"op": "copy", "from": "/name", "path": "/description"},
         "extras: {}\n", 'extras: {}\ndescription: "job"\n'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_o27_only_the_bytes_of_the_node_change(operation: Any, old: str, new: str, newline: str) -> None:
    """architecture.md, decision 2."""
    assert BLOCK.count(old) == 1
    text = BLOCK.replace("\n", newline)
    assert one(text, operation) == text.replace(old.replace("\n", newline), new.replace("\n", newline))


def test_a_byte_order_mark_and_a_missing_last_line_end_stay() -> None:
    assert one("\ufeffa: 1\nb: 2", op("add", "/c", 3), op("replace", "/a", 4)) == "\ufeffa: 4\nb: 2\nc: 3"
    assert one("\ufeffa: 1\nb: 2", op("remove", "/a")) == "\ufeffb: 2"


def test_several_operations_go_one_after_the_other() -> None:
    text = one(
        "a: 1\n", op("add", "/b", [1]), op("add", "/b/-", 2), op("test", "/b/1", 2), op("replace", "/a", 0)
    )
    assert text == "a: 0\nb:\n  - 1\n  - 2\n"


def test_what_is_wrong_afterwards_is_said_with_its_line(minimal: Any) -> None:
    from paijupyter.protocol import write

    text, problems = edit(write(minimal()), [op("replace", "/taskRoles/worker/instances", 0)])
    assert [(p.path, text.split("\n")[(p.line or 0) - 1].strip()) for p in problems] == [
        ("/taskRoles/worker/instances", "instances: 0")
    ]


def test_a_document_in_json_stays_json() -> None:
    text = one(
        PRETTY, op("replace", "/name", "x"), op("add", "/jobRetryCount", 1), op("remove", "/parameters/lr")
    )
    assert json.loads(text.replace("jobRetryCount:", '"jobRetryCount":'))["name"] == "x"


def test_shared_places_are_changed_alone_or_not_at_all() -> None:
    assert one(SHARED, op("replace", "/other", 2)) == SHARED.replace("other: 1", "other: 2")
    text = one(SHARED, op("replace", "/one/cpu", 9))
    assert read(text).raw["one"]["cpu"] == 9
    assert read(text).raw["base"]["cpu"] == 1
    assert "# shared" in text and "# keep" in text
    assert one(SHARED, op("replace", "/two/cpu", 3)) == SHARED.replace("cpu: 2", "cpu: 3")
    with pytest.raises(UsageProblem, match="cannot be made"):
        edit(SHARED, [op("replace", "/base/cpu", 5)])


@pytest.mark.parametrize(
    "patch",
    [
        [{}],
        [{"op": "explode", "path": "/a"}],
        [op("remove", "/nowhere")],
        [op("add", "/a/b", 1)],
        [op("add", "/l/9", 1)],
        [op("add", "/l/-1", 1)],
        [op("add", "/l/x/y", 1)],
        [op("replace", "name", 1)],
        [{"op": "add", "path": "/x"}],
        [op("test", "/a", 2)],
        [op("remove", "")],
        [op("replace", "", [])],
        [{"op": "move", "from": "/l", "path": "/l/0"}],
        [op("add", "/x", object())],
        [op("add", "/x", {1: 2})],
        [None],
        None,
        {},
        "x",
    ],
)
def test_wrong_patches_are_refused(patch: Any) -> None:
    with pytest.raises(UsageProblem) as caught:
        edit("a: 1\nl: [1]\n", patch)
    assert caught.value.message.endswith(".")


def test_text_that_is_no_document_is_refused() -> None:
    with pytest.raises(InvalidDocument):
        edit("a: [", [op("add", "/b", 1)])


# --- properties

TEXTS = st.sampled_from([BLOCK, BLOCK.replace("\n", "\r\n"), JSON_TEXT, PRETTY, BLOCK.rstrip("\n")])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-1000, 1000)
    | st.sampled_from(["", "1e5", "yes", "a b", "a: b", "x #y", "a\nb", "a\nb\n", " x", "é", "it's"])
    | st.sampled_from(['"', "{a}", "-", "\n"])
    | st.text(max_size=12)
)  # fmt: skip
KEYS = st.sampled_from(["a", "b-c", "yes", "1", "a b", "~", "/", "a/b~c", "#", "é"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@st.composite
def cases(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> tuple[str, Step, dict[str, Any]]:
    """A text, a change of it, and the operation that asks for it."""
    text = draw(texts)
    paths = sorted(path for path in read(text).places if path)
    assume(paths)
    path = draw(st.sampled_from(paths))
    keys = tuple(key.replace("~1", "/").replace("~0", "~") for key in path[1:].split("/"))
    kind = draw(st.sampled_from(["replace", "remove", "add", "child"]))
    value = draw(VALUES)
    here: Any = read(text).raw
    for key in keys:
        here = here[int(key)] if isinstance(here, list) else here[key]
    if kind == "replace":
        return text, Step("set", keys, value), op("replace", path, value)
    if kind == "remove":
        return text, Step("remove", keys), op("remove", path)
    if isinstance(here, list):
        index = str(draw(st.integers(0, len(here))))
        return text, Step("insert", (*keys, index), value), op("add", f"{path}/{index}", value)
    key = draw(KEYS)
    if isinstance(here, dict) or here is None:
        return text, Step("set", (*keys, key), value), op("add", f"{path}/{escaped(key)}", value)
    return text, Step("set", (key,), value), op("add", f"/{escaped(key)}", value)


@given(cases(TEXTS))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_o27_an_edit_does_what_it_says(case: tuple[str, Step, dict[str, Any]]) -> None:
    text, step, operation = case
    assert same(read(one(text, operation)).raw, make(read(text).raw, step))


@given(cases(TEXTS))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_o27_an_edit_keeps_what_is_around_it(case: tuple[str, Step, dict[str, Any]]) -> None:
    """All lines before the changed node's line and behind its last one are the same bytes as before."""
    text, step, operation = case
    places = read(text).places
    parent = places.get("".join(f"/{escaped(key)}" for key in step.keys[:-1]))
    place = places.get(step.path) or parent
    assume(place is not None and step.path.count("/") > 0)
    assert place is not None
    new = one(text, operation)
    start = text.rfind("\n", 0, (place.key or place.node).start) + 1
    # Removing the last member of a collection empties it, which is written at its parent's place.
    if step.kind == "remove" and parent is not None:
        start = min(start, text.rfind("\n", 0, (parent.key or parent.node).start) + 1)
    assert new.startswith(text[:start])
    rest = text.find("\n", place.node.end)
    if rest >= 0:
        # The second member of an item moves up to the dash when the first one goes.
        assert new.endswith(text[rest + 1 :].lstrip(" ") if step.kind == "remove" else text[rest + 1 :])


STYLES = [(flow, style) for flow in (False, None, True) for style in (None, '"', "'", "|")]
DUMPED = st.builds(
    lambda data, style: yaml.safe_dump(
        data, default_flow_style=style[0], default_style=style[1], allow_unicode=True, sort_keys=False
    ),
    st.dictionaries(KEYS, VALUES, min_size=1, max_size=4),
    st.sampled_from(STYLES),
)


@given(cases(DUMPED))
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_o27_edits_work_in_every_style_pyyaml_writes(case: tuple[str, Step, dict[str, Any]]) -> None:
    text, step, operation = case
    assert same(read(one(text, operation)).raw, make(read(text).raw, step))


@given(
    st.text(alphabet="ab:-[]{}&*<| \n#'\"1,", max_size=40),
    st.sampled_from(["/a", "/a/0", "/b/a", "/-"]),
    VALUES,
)
@settings(max_examples=100)
def test_no_edit_ends_in_another_exception(text: str, path: str, value: Any) -> None:
    for kind in ("add", "replace", "remove"):
        try:
            edit(text, [op(kind, path, value)])
        except PaiJupyterError as error:
            assert error.message


def test_o27_an_item_far_behind_its_dash_is_replaced_in_its_place() -> None:
    """Found by hypothesis: the lines below the first stand where that one does."""
    new = one(BLOCK, op("replace", "/taskRoles/worker/commands/3", [None, None]))
    assert new == BLOCK.replace(
        "-   name: odd\n        deep:\n          - - 1\n            - 2\n",
        "-   - null\n        - null\n",
    )
