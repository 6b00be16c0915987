"""Search over whole logs: every line counted once, the first ones with their place."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.errors import NotFound, UsageProblem
from paijupyter.jobs import searching

letters = st.text(alphabet="abABäÄ .\r", max_size=12)


@settings(deadline=None)
@given(st.lists(letters, max_size=20), st.text(alphabet="abä.", min_size=1, max_size=3), st.integers(4, 40))
def test_any_split_finds_the_lines_that_python_finds(lines, text, piece):
    content = "".join(f"{line}\n" for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_text(content, newline="")
        before = searching.PIECE
        # Lines are never longer than a piece here: of longer ones only pieces are searched.
        searching.PIECE = max(piece, 32)
        try:
            found = searching.search([("w-0", path), ("w-1", Path(folder) / "none")], text, 0, 1000)
        finally:
            searching.PIECE = before
    wanted = [line for line in lines if text.lower() in line.lower()]
    assert found.lines == len(wanted) == len(found.hits)
    data = content.encode()
    for hit, line in zip(found.hits, wanted, strict=True):
        assert data[hit["offset"] :].startswith(line.encode() + b"\n")


def test_a_line_longer_than_a_piece_is_searched_in_flat_memory(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * (3 * searching.PIECE) + b"needle" + b"y" * searching.PIECE + b"\nneedle\n")
    found = searching.search([("w-0", path)], "needle", 0, 1)
    assert found.lines == 2 and len(found.hits) == 1 and found.to_json()["more"]


@pytest.mark.asyncio
async def test_the_service_searches_all_tasks_or_one(bench):
    """O31: over the whole file, at the server."""
    job = await bench.submit("seek")
    bench.write(job, "tasks/worker-0/0/log", "one\nTwo words\nthree\nstray TWO\n")
    found = await bench.service.whole_logs.search(job["id"], "two", most=1)
    assert found["lines"] == 2 and found["more"]
    assert found["hits"] == [{"task": "worker-0", "attempt": 0, "offset": 4, "text": "Two words"}]
    assert (await bench.service.whole_logs.search(job["id"], "nothing", "worker-0"))["lines"] == 0
    with pytest.raises(UsageProblem):
        await bench.service.whole_logs.search(job["id"], "")
    with pytest.raises(NotFound):
        await bench.service.whole_logs.search(job["id"], "two", "other-0")
