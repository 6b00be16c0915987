"""Secret values never reach the log (architecture, decision 8; O20)."""

from __future__ import annotations

import base64
import itertools
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.runtime.mask import MASK, Mask, forms

# A small alphabet makes overlaps, prefixes of one another and repeated beginnings likely.
_TEXT = st.text("ab\n", min_size=0, max_size=40)
_SECRET = st.text("ab", min_size=1, max_size=9)


def masked(values, chunks):
    mask = Mask(value.encode() for value in values)
    return b"".join([*(mask.feed(chunk) for chunk in chunks), mask.finish()])


def one_shot(patterns, data):
    """Replace leftmost, longest, the slow and obvious way."""
    out, position = b"", 0
    while position < len(data):
        here = [pattern for pattern in patterns if data.startswith(pattern, position)]
        if here:
            out += MASK
            position += max(map(len, here))
        else:
            out += data[position : position + 1]
            position += 1
    return out


@given(st.lists(_SECRET, max_size=4), _TEXT, st.lists(st.integers(0, 40), max_size=8))
def test_any_chunking_gives_the_one_shot_result(values, text, cuts):
    data = text.encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(places)]
    patterns = {form for value in values for form in forms(value.encode())}
    assert masked(values, chunks) == one_shot(patterns, data)


@given(st.text(min_size=4), st.binary(max_size=30), st.binary(max_size=30))
def test_no_value_survives(value, before, after):
    secret = value.encode("utf-8", "surrogatepass").strip(b"\r\n")
    shown = masked([], [])
    mask = Mask([secret])
    shown = mask.feed(before + secret + after) + mask.finish()
    if len(secret) >= 4 and secret not in MASK * 3:
        assert secret not in shown.replace(MASK, b"\0")


def test_bytes_are_held_only_while_they_may_begin_a_secret():
    mask = Mask([b"secret-value"])
    assert mask.feed(b"progress 10%") == b"progress 10%"
    assert mask.feed(b" sec") == b" "
    assert mask.feed(b"onde") == b"seconde"
    assert mask.feed(b" secret-") == b" "
    assert mask.feed(b"value!") == b"***!"


def test_without_secrets_everything_passes_as_it_is():
    mask = Mask([])
    assert mask.feed(b"\0\xff") == b"\0\xff"
    assert mask.finish() == b""


def test_lines_of_a_long_secret_are_hidden_one_by_one():
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\nab\n-----END KEY-----\n"
    said = b"x MIIEvQIBADANBgkqhkiG y ab z"
    assert masked([key], [said]) == b"x *** y ab z"
    assert masked([key], [repr({"KEY": key}).encode()]).count(b"MIIE") == 0


@pytest.mark.parametrize("position", range(4))
def test_usual_encodings_are_hidden(position):
    value = 'p@ss/word "with" ünïcode'
    pair = ("u" * position + value + ":x").encode()
    said = [
        base64.b64encode(pair),
        base64.urlsafe_b64encode(pair),
        json.dumps({"value": value}).encode(),
        json.dumps({"value": value}, ensure_ascii=False).encode(),
        quote(value, safe="").encode(),
    ]
    for text in said:
        assert MASK in masked([value], [text]), text
    core = base64.b64encode(pair)[position + 3 : -8]
    assert core not in masked([value], [said[0]])


@pytest.mark.parametrize("value", ["", "\n", "abc", "abc\n"])
def test_a_value_too_short_to_hide_anything_blots_out_nothing(value):
    assert masked([value], [b"abc abc\n"]) == b"abc abc\n"


def test_a_secret_cut_over_many_reads_with_a_large_key():
    key = "".join(chr(97 + i % 26) for i in range(5000))
    data = b"begin " + key.encode() + b" end"
    assert masked([key], [data[i : i + 7] for i in range(0, len(data), 7)]) == b"begin *** end"


@pytest.mark.parametrize(
    "quoted",
    [
        "to%20ken/%C3%A9%28x",
        "to%20ken%2F%C3%A9%28x",
        "to+ken%2f%c3%a9%28x",
        "to%20ken%2F%C3%A9(x",
        "to ken\\/\u00e9(x",
    ],
)
def test_every_usual_way_of_quoting_is_hidden(quoted):
    """What a library leaves as it is differs: `/` in a path, `(` in JavaScript, a blank as `+` in a form."""
    assert masked(["to ken/é(x"], [f"?t={quoted}&".encode()]) == b"?t=***&"
