"""TensorBoard on the outputs of a job: one per job, found again, ended when nobody uses it (O32).

Here something stands in for TensorBoard: only its life is looked at. The real one: test_real_board.py.
"""

from __future__ import annotations

import asyncio
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import pytest_asyncio

from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs.boards import Boards

pytestmark = pytest.mark.asyncio
STANDIN = Path(__file__).with_name("standin")


@pytest.fixture(autouse=True)
def standin(monkeypatch):
    """Put what stands in for TensorBoard where a new interpreter finds it first."""
    monkeypatch.setenv("PYTHONPATH", str(STANDIN))


@pytest_asyncio.fixture
async def job(bench):
    """Return a job that left a file of events."""
    view = await bench.submit()
    bench.write(view, "output/worker-0/runs/events.out.tfevents.1", b"e")
    return view


def _served(number):
    with urllib.request.urlopen(f"http://127.0.0.1:{number}/", timeout=60) as answer:
        return answer.read().decode()


def _refuses(number):
    try:
        _served(number)
    except OSError:
        return True
    return False


async def _gone(number):
    end = time.monotonic() + 60
    while not await asyncio.to_thread(_refuses, number):
        assert time.monotonic() < end, "the board goes on"
        await asyncio.sleep(0.05)


async def test_a_board_serves_the_outputs_and_is_found_again(bench, job):
    """Its address is that of a port, so the Jupyter server passes on to it; the engine lives as long."""
    outputs, entrances = bench.service.outputs, bench.service.entrances
    assert bench.service.unfinished() == 1  # the job
    found = await outputs.tensorboard("mnist")
    path = f"paijupyter/v1/jobs/{job['id']}/ports/outputs/tensorboard/"
    assert found == {"task": "outputs", "label": "tensorboard", "port": found["port"], "path": path}
    assert await asyncio.to_thread(_served, found["port"]) == "events.out.tfevents.1"
    assert await outputs.tensorboard(job["id"]) == found
    way = await entrances.forward("mnist", "outputs", "tensorboard")
    assert way == {"task": "outputs", "port": found["port"], "local": found["port"]}
    assert bench.service.unfinished() == 2
    with pytest.raises(NotFound):
        await entrances.forward("mnist", "outputs", 22)


async def test_many_who_ask_at_once_get_one(bench, job):
    found = await asyncio.gather(*(bench.service.outputs.tensorboard("mnist") for _ in range(4)))
    assert len({each["port"] for each in found}) == 1


async def test_a_board_ends_with_the_engine(bench, job):
    found = await bench.service.outputs.tensorboard("mnist")
    await bench.service.outputs.boards.close()
    await _gone(found["port"])
    with pytest.raises(Conflict) as refused:
        await bench.service.entrances.forward("mnist", "outputs", "tensorboard")
    assert refused.value.code == "not-running"


async def test_a_board_ends_with_its_job(bench, job):
    """Nobody can reach it any more, and its files are gone; the engine is not kept by it."""
    found = await bench.service.outputs.tensorboard("mnist")
    await bench.finish("mnist")
    await bench.service.delete("mnist")
    assert bench.service.unfinished() == 0
    await _gone(found["port"])


async def test_a_board_that_nobody_uses_ends(bench, job):
    boards = Boards(bench.service._catalog, idle=0.5)
    found = await boards.open("mnist")
    await _gone(found["port"])
    assert boards.busy == 0
    again = await boards.open("mnist")  # and begins again when it is asked for
    assert await asyncio.to_thread(_served, again["port"]) == "events.out.tfevents.1"
    await boards.close()


async def test_why_there_is_no_board(bench, job, monkeypatch, tmp_path):
    """O32: what is missing, and what to do."""
    view = await bench.submit(name="plain")
    bench.write(view, "output/worker-0/model.bin", b"m")
    with pytest.raises(Conflict) as refused:
        await bench.service.outputs.tensorboard("plain")
    assert refused.value.code == "no-events" and "$PAI_OUTPUT_DIR" in refused.value.hint
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(PaiJupyterError) as refused:
        await bench.service.outputs.tensorboard("mnist")
    assert refused.value.message == "TensorBoard cannot be started: RuntimeError: the board is broken."
    with pytest.raises(PaiJupyterError) as refused:
        await bench.service.outputs.tensorboard("mnist", "/no/such/python")
    assert refused.value.code == "tensorboard-failed"
    monkeypatch.delenv("PYTHONPATH")
    bare = tmp_path / "python"  # whatever is installed here, it has nothing but the standard library
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(Conflict) as refused:
        await bench.service.outputs.tensorboard("mnist", str(bare))
    assert refused.value.code == "no-tensorboard"
    assert refused.value.hint == f"Install it there: {bare} -m pip install tensorboard"
    assert bench.service.outputs.boards.busy == 0
