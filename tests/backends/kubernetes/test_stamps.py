"""The bytes of a log come out as they were written, however the stream is cut (P24, O30)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.backends.kubernetes.stamps import Cursor, Unstamper


def stamped(lines: list[tuple[int, bytes]]) -> bytes:
    """Write lines as the API does: each with the nanosecond at which it was begun."""
    return b"".join(b"%s %s" % (_stamp(at).encode(), line) for at, line in lines)


def _stamp(at: int) -> str:
    return f"2026-11-29T23:{at // 60_000_000_000:02}:{at // 1_000_000_000 % 60:02}.{at % 1_000_000_000:09}Z"


def since(lines: list[tuple[int, bytes]], cursor: Cursor) -> bytes:
    """Return what the API answers from the cursor's whole second on."""
    return stamped(
        [(at, line) for at, line in lines if not cursor.since or _stamp(at)[:19] >= cursor.since[:19]]
    )


CONTENT = st.lists(
    st.tuples(
        st.integers(0, 1_500_000_000),  # to the next line; 0 and seconds both occur
        st.binary(max_size=30).map(lambda each: each.replace(b"\n", b"\r")),
    ),
    max_size=12,
)


def _log(content: list[tuple[int, bytes]], ends: bool) -> list[tuple[int, bytes]]:
    now, lines = 0, []
    for gap, text in content:
        now += gap
        lines.append((now, text + b"\n"))
    if lines and not ends:
        at, text = lines[-1]
        lines[-1] = (at, text[:-1])
        if not lines[-1][1]:
            lines.pop()
    return lines


@given(
    CONTENT,
    st.booleans(),
    st.lists(st.integers(0, 400), max_size=6),
    st.lists(st.integers(1, 60), max_size=8),
)
def test_cuts_lose_and_double_nothing(
    content: list[tuple[int, bytes]], ends: bool, cuts: list[int], pieces: list[int]
) -> None:
    """Each stream is cut after some bytes, comes in pieces of any size, and the next begins at a second."""
    lines = _log(content, ends)
    cursor, got = Cursor(), b""
    for cut in [*cuts, 10**9]:
        reader = Unstamper(cursor)
        stream, sizes = since(lines, cursor)[:cut], [*pieces, 10**9]
        while stream:
            size = sizes.pop(0)
            got += reader.feed(stream[:size])
            stream = stream[size:]
        assert not reader.gap
        assert not reader.said
        cursor = Cursor.from_json(cursor.to_json())
    assert got == b"".join(text for _, text in lines)


def test_lines_that_look_like_stamps_stay() -> None:
    reader = Unstamper(Cursor())
    raw = b"2026-11-29T23:00:00.1Z 2026-11-29T23:00:00Z mine\n2026-11-29T23:00:00.2Z \n"
    assert reader.feed(raw) == b"2026-11-29T23:00:00Z mine\n\n"
    assert reader.first == "2026-11-29T23:00:00.1Z"


def test_words_of_the_node_are_not_the_tasks() -> None:
    """A 200 whose body says that the log is gone (kubernetes/kubernetes#59902)."""
    reader = Unstamper(Cursor())
    assert (
        reader.feed(b"2026-11-29T23:00:00Z one\nunable to retrieve container logs for containerd://abc\n")
        == b"one\n"
    )
    assert reader.said == [b"unable to retrieve container logs for containerd://abc"]


TOO_MANY = b"failed to create fsnotify watcher: too many open files"
BAR = b"2026-11-29T23:00:00Z 10%|#   |\r20%|##  |"


@pytest.mark.parametrize("pieces", [(BAR + TOO_MANY,), (BAR, TOO_MANY), (BAR[:30], BAR[30:] + TOO_MANY)])
def test_words_of_the_node_within_a_line_are_not_the_tasks(pieces: tuple[bytes, ...]) -> None:
    """A kubelet that cannot follow says so wherever it is; the line goes on in the next stream."""
    cursor = Cursor()
    reader = Unstamper(cursor, follows=True)
    got = b"".join(map(reader.feed, pieces))
    reader.end()
    assert (got, reader.said) == (b"10%|#   |\r20%|##  |", [TOO_MANY])
    again = Unstamper(cursor, follows=True)
    assert again.feed(BAR + b"\r30%|### |\n") == b"\r30%|### |\n"
    again.end()
    assert again.said == []


def test_what_a_task_says_like_a_node_is_not_lost() -> None:
    """Held back while nothing follows it, given with what does; and at the end read without following."""
    said = b"failed to open log file x"
    for more in (b"yz\n", b"\rgone on", b"\n"):
        reader = Unstamper(Cursor(), follows=True)
        assert reader.feed(BAR + said) + reader.feed(more) == BAR[21:] + said + more
        reader.end()
        assert reader.said == []
    cursor = Cursor()
    first = Unstamper(cursor, follows=True)
    assert first.feed(BAR) + first.feed(said) == BAR[21:]
    first.end()
    assert Unstamper(cursor).feed(BAR + said) == said


def test_a_rotated_log_is_noticed() -> None:
    """What was asked again is not there any more: lines may be missing, and none is taken for one seen."""
    cursor = Cursor()
    Unstamper(cursor).feed(b"2026-11-29T23:00:05.1Z one\n2026-11-29T23:00:05.2Z two\n")
    reader = Unstamper(cursor)
    assert reader.feed(b"2026-11-29T23:00:05.7Z late\n") == b"late\n"
    assert reader.gap


def test_zones_are_kept() -> None:
    cursor = Cursor()
    assert Unstamper(cursor).feed(b"2026-11-29T23:00:05.1+02:00 one\n") == b"one\n"
    assert cursor.since == "2026-11-29T23:00:05+02:00"
