"""The real TensorBoard on what a job left (O32); test_boards.py has the rest of its life."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from importlib.util import find_spec

import pytest

pytestmark = [pytest.mark.asyncio, pytest.mark.services, pytest.mark.timeout(400)]


@pytest.mark.skipif(
    find_spec("tensorboard") is None, reason="tensorboard is not installed: make test-services"
)
async def test_the_real_one_finds_the_runs_of_a_job(bench):
    """Its page and what the page asks for come from the port; nothing of it goes on after its end."""
    from tensorboard.summary import Writer

    view = await bench.submit()
    folder = bench.folder(view) / "output" / "worker-0" / "runs"
    folder.mkdir(parents=True)
    writer = Writer(str(folder))
    writer.add_scalar("loss", 0.5, 1)
    writer.close()
    board = await bench.service.outputs.tensorboard("mnist")
    process = bench.service.outputs.boards._boards[view["id"]].process

    def ask(path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{board['port']}/{path}", timeout=120) as answer:
            return answer.read()

    assert b"<title>TensorBoard" in await asyncio.to_thread(ask, "")
    for _ in range(1200):
        runs = json.loads(await asyncio.to_thread(ask, "data/runs"))
        if runs:
            break
        await asyncio.sleep(0.1)
    assert runs == ["worker-0/runs"]
    await bench.service.outputs.boards.close()
    assert process.returncode is not None
