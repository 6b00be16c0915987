"""Canonical YAML: read back to the same values by us, by PyYAML, and masked by OpenPAI."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.errors import UsageProblem
from paijupyter.protocol import read, write
from paijupyter.protocol.javascript import SAFE_INTEGER

NASTY = [
    "1e5", "12e03", ".5e3", "1e-5", "yes", "no", "on", "y", "010", "0x1F", "1:30", "1_000", "~",
    "null", "true", "", " ", "- a", "a: b", "a #b", "#", "'", '"', "\\", "%", "@x", "`", "&a", "*a",
    "!x", "|", ">", "{", "[a]", "2020-01-02", ".inf", ".nan", "=", "<<", "? a", "\n", "a\n", "a\nb",
    "a\n\nb\n", "a\nb\n\n", " a\nb", "a \nb", "\ta", "a\tb\nc", "\r\n", "a\rb", "\x00", "\x1b",
    "\x7f", "\x85", "\u2028", "\ufeff", "\ud800", "\U0001f600", "é\nü", "---", "...", "a: |\n  b",
    "\u00a0\nx", "+.inf", "0o7", "-", "key: ", "\ufeffa\nb", "\U0001f600\nb",
]  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-SAFE_INTEGER, SAFE_INTEGER)
    | st.floats(allow_nan=False)
    | st.sampled_from(NASTY)
    | st.text(max_size=30)
)
KEYS = st.sampled_from(NASTY) | st.text(max_size=10)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


def same_types(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(same_types(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_types, one, other))
    if isinstance(one, bool) or one is None or isinstance(one, str):
        return type(one) is type(other) and one == other
    # PyYAML holds more digits of a whole number than a double has.
    return not isinstance(other, (bool, str)) and float(one) == float(other)


@given(DOCUMENTS)
@settings(max_examples=150)
def test_o27_what_is_written_reads_back_to_the_same(data: dict[str, Any]) -> None:
    assert same_types(data, read(write(data)).raw)


@given(DOCUMENTS)
def test_o27_pyyaml_reads_the_same_too(data: dict[str, Any]) -> None:
    """OpenPAI's runtime reads with PyYAML what its server read with js-yaml (openpai.md 2.5)."""
    assert same_types(data, yaml.safe_load(write(data)))


@pytest.mark.parametrize("text", NASTY)
def test_nasty_texts_stay_texts_as_value_item_and_key(text: str) -> None:
    data = {"a": text, "b": [text, [text]], "c": {text: text}}
    assert read(write(data)).raw == data


def test_writing_is_stable_and_in_block_style(minimal: Any) -> None:
    text = write(minimal())
    assert write(read(text).data) == text
    assert text == (
        'protocolVersion: 2\nname: "job"\ntype: "job"\nprerequisites:\n  - name: "image"\n'
        '    type: "dockerimage"\n    uri: "python:3.11"\ntaskRoles:\n  worker:\n    instances: 1\n'
        '    dockerImage: "image"\n    resourcePerInstance:\n      cpu: 1\n      memoryMB: 1024\n'
        '      gpu: 0\n    commands:\n      - "echo hello"\n'
    )


def test_o20_openpais_mask_covers_the_secrets_and_nothing_else(minimal: Any) -> None:
    """The mask is one regular expression (openpai.md 4.4): plain key at column 0, no quoted key after it."""
    data = minimal({"/secrets": {"token": "canary42", "1e5": "canary42"}, "/parameters": {"a": 1}})
    ordered = {"secrets": data.pop("secrets"), **data}
    masked = re.sub(r"(?ms)^secrets:\s*(.*?)(?=^\w|\Z)", 'secrets: "******"\n', write(ordered))
    assert "canary42" not in masked
    assert set(yaml.safe_load(masked)) == set(ordered)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (1e-7, "1.0e-7"),
        (1e21, "1.0e+21"),
        (0.1, "0.1"),
        (float("inf"), ".inf"),
        (2**53, "9007199254740992"),
    ],
)
def test_numbers_are_numbers_to_both_readers(value: float, text: str) -> None:
    assert write({"a": value}) == f"a: {text}\n"
    assert yaml.safe_load(write({"a": value})) == {"a": value}
    assert read(write({"a": value})).raw == {"a": value}


def test_timestamps_stay_timestamps() -> None:
    document = read("a: 2020-01-02T03:04:05Z\n")
    assert read(write(document.raw)).raw == document.raw
    assert type(read(write(document.raw)).raw["a"]) is type(document.raw["a"])


@pytest.mark.parametrize("value", [{1: "a"}, {"a": object()}, {"a": b"x"}, {"a": {1, 2}}])
def test_what_yaml_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(UsageProblem):
        write(value)


def test_depth_is_bounded() -> None:
    value: Any = 1
    for _ in range(500):
        value = [value]
    with pytest.raises(UsageProblem, match="deeper"):
        write({"a": value})
