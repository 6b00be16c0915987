"""YAML scalars mean what js-yaml 3 says, and turn into text as JavaScript does it."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.protocol.javascript import Timestamp, number_text, text_of
from paijupyter.protocol.scalars import resolve

# openpai.md 3.5 and openpai-measured.md 4.1: what the original server wrote into commands.
MEASURED = [
    ("42", "42"),
    ("-7", "-7"),
    ("1.0", "1"),
    ("0.010", "0.01"),
    ("1e-4", "0.0001"),
    ("1e-5", "0.00001"),
    ("1e-7", "1e-7"),
    ("1e21", "1e+21"),
    ("12345678901234567890", "12345678901234567000"),
    ("0x1F", "31"),
    ("010", "8"),
    ("1:30", "90"),
    ("1_000", "1000"),
    ("true", "true"),
    ("False", "false"),
    ("yes", "yes"),
    ("on", "on"),
    ("off", "off"),
    (".inf", "Infinity"),
    (".NaN", "NaN"),
    ("2020-01-02", "Thu Jan 02 2020 00:00:00 GMT+0000 (Coordinated Universal Time)"),
    ("2020-01-02T03:04:05Z", "Thu Jan 02 2020 03:04:05 GMT+0000 (Coordinated Universal Time)"),
]


@pytest.mark.parametrize(("yaml", "text"), MEASURED)
def test_o19_measured_table(yaml: str, text: str) -> None:
    assert text_of(resolve(yaml)) == text


@pytest.mark.parametrize(
    ("yaml", "value"),
    [
        ("~", None),
        ("Null", None),
        ("nUll", "nUll"),
        ("TRUE", True),
        ("tRue", "tRue"),
        ("+12", 12),
        ("0", 0),
        ("08", "08"),
        ("0o7", "0o7"),
        ("0b101", 5),
        ("-0b101", -5),
        ("0B1", "0B1"),
        ("0x", "0x"),
        ("0_7", 7),
        ("1_", "1_"),
        ("_1", "_1"),
        ("1__0", 10),
        ("0:30", "0:30"),
        ("1:60", "1:60"),
        ("190:20:30", 685230),
        ("190:20:30.15", 685230.15),
        ("-1:30", -90),
        (".5", 0.5),
        ("-.5", "-.5"),
        ("+.inf", math.inf),
        ("-.INF", -math.inf),
        (".", "."),
        ("._", "._"),
        ("1.", 1),
        ("1.e3", 1000),
        ("1e5", 100000),
        (".5e3", 500),
        ("12e03", 12000),
        ("1e", "1e"),
        ("e5", "e5"),
        ("1.2.3", "1.2.3"),
        ("0.1_5", 0.15),
        ("٣", "٣"),
        ("2001-12-14t21:59:43.10-05:00", Timestamp("2001-12-15T02:59:43.100Z")),
        ("2001-12-14 21:59:43.10 -5", Timestamp("2001-12-15T02:59:43.100Z")),
        ("2020-13-40", Timestamp("2021-02-09T00:00:00.000Z")),
        ("2020-1-2", "2020-1-2"),
        ("9999-99-99", "9999-99-99"),
    ],
)
def test_rules_beyond_the_table(yaml: str, value: Any) -> None:
    found = resolve(yaml)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "digits", ["9" * 400, "0x" + "f" * 400, "0" + "7" * 1000, "9" * 5000, "1:" + "0:" * 3000 + "0"]
)
def test_numbers_beyond_all_bounds_become_infinity(digits: str) -> None:
    assert resolve(digits) == math.inf


@given(st.text(alphabet="0123456789abcdefxoEe.:_-+TZ infNa~", max_size=30))
def test_no_text_breaks_the_rules(text: str) -> None:
    value = resolve(text.strip())
    assert value is None or isinstance(value, (str, bool, int, float))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.30000000000000004"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1.5e21, "1.5e+21"),
        (1e-6, "0.000001"),
        (1.25e-7, "1.25e-7"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (-0.0, "0"),
        (-1.5, "-1.5"),
        (100, "100"),
        (2**53, "9007199254740992"),
        (2**53 + 1, "9007199254740992"),
        (2**70, "1.1805916207174113e+21"),
        (-(2**60), "-1152921504606847000"),
        (10**400, "Infinity"),
    ],
)
def test_number_text_is_javascripts(number: float, text: str) -> None:
    assert number_text(number) == text


@given(st.integers(0, 2**64 - 1))
def test_number_text_reads_back_to_the_same_double(bits: int) -> None:
    value = struct.unpack("d", bits.to_bytes(8, "little"))[0]
    if math.isfinite(value):
        assert float(number_text(value)) == value


def test_lists_and_mappings_as_text() -> None:
    assert text_of([1, 2.0, "x", None, [3, [4]], True]) == "1,2,x,,3,4,true"
    assert text_of({"a": 1}) == "[object Object]"
    assert text_of([{}]) == "[object Object]"
