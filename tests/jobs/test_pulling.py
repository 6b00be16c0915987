"""Outputs copied into a folder of this host (O15): whole, below it, over something else only if asked."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
import pytest_asyncio

from paijupyter.errors import Conflict, NotFound, PaiJupyterError

pytestmark = pytest.mark.asyncio


async def pull(bench, folder, ref="mnist", **options):
    """Pull, and return the last word on it."""
    return [step async for step in bench.service.outputs.pull(ref, folder, **options)][-1]


@pytest_asyncio.fixture
async def job(bench):
    """Return a job that left two files."""
    view = await bench.submit()
    bench.write(view, "output/worker-0/model.bin", b"m" * 3_000_000)
    bench.write(view, "output/worker-0/logs/events", b"e")
    return view


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


async def test_all_outputs_come_and_coming_again_changes_nothing(bench, job, tmp_path):
    folder = tmp_path / "new" / "home"
    said = await pull(bench, folder)
    assert said == {"folder": str(folder), "brought": 2, "unchanged": 0, "size": 3_000_001}
    assert names(folder) == ["worker-0/logs/events", "worker-0/model.bin"]
    before = (folder / "worker-0" / "model.bin").stat()
    assert (await pull(bench, folder))["unchanged"] == 2
    after = (folder / "worker-0" / "model.bin").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


async def test_only_the_files_that_were_named(bench, job, tmp_path):
    assert (await pull(bench, tmp_path / "to", paths=["worker-0/logs/events"]))["brought"] == 1
    assert names(tmp_path / "to") == ["worker-0/logs/events"]
    with pytest.raises(NotFound):
        await pull(bench, tmp_path / "to", paths=["worker-0/none"])
    with pytest.raises(PaiJupyterError, match="relative"):
        await pull(bench, tmp_path / "to", paths=["../record.json"])


async def test_what_says_something_else_is_not_written_over_unasked(bench, job, tmp_path):
    """Nothing at all is written then; with `replace` it is."""
    mine = tmp_path / "worker-0" / "model.bin"
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    with pytest.raises(Conflict) as refused:
        await pull(bench, tmp_path)
    assert refused.value.code == "files-differ"
    assert refused.value.message.endswith("has other files of these names: `worker-0/model.bin`.")
    assert (mine.read_bytes(), names(tmp_path)) == (b"mine", ["worker-0/model.bin"])
    assert (await pull(bench, tmp_path, replace=True))["brought"] == 2
    assert mine.stat().st_size == 3_000_000


async def test_a_link_of_the_folder_leads_nothing_out(bench, job, tmp_path):
    """Neither a folder that is a link elsewhere, nor a file that is one."""
    outside, folder = tmp_path / "outside", tmp_path / "to"
    outside.mkdir()
    folder.mkdir()
    (folder / "worker-0").symlink_to(outside)
    with pytest.raises(PaiJupyterError) as refused:
        await pull(bench, folder, replace=True)
    assert (refused.value.code, names(outside)) == ("unsafe-path", [])
    (folder / "worker-0").unlink()
    (folder / "worker-0").mkdir()
    precious = outside / "precious"
    precious.write_text("x")
    (folder / "worker-0" / "model.bin").symlink_to(precious)
    with pytest.raises(Conflict):
        await pull(bench, folder)
    await pull(bench, folder, replace=True)
    assert precious.read_text() == "x" and not (folder / "worker-0" / "model.bin").is_symlink()


async def test_a_disk_that_refuses_is_a_sentence_and_leaves_no_part(bench, job, tmp_path):
    (tmp_path / "worker-0").write_text("a file where a folder is needed")
    with pytest.raises(PaiJupyterError) as refused:
        await pull(bench, tmp_path, replace=True)
    assert refused.value.code == "pull-failed"
    assert refused.value.message.startswith("File `worker-0/")
    assert names(tmp_path) == ["worker-0"]


async def test_who_gives_up_leaves_no_part(bench, job, tmp_path, monkeypatch):
    """The file under way is gone."""
    monkeypatch.setattr("paijupyter.jobs.pulling._BETWEEN", 0.0)
    folder = tmp_path / "to"
    async with aclosing(bench.service.outputs.pull("mnist", folder)) as steps:
        async for step in steps:
            assert step["size"] == 3_000_001
            assert step["bytes"] < 3_000_000
            break
    assert names(folder) == []


async def test_two_at_once_bring_it_once(bench, job, tmp_path):
    said = await asyncio.gather(*(pull(bench, tmp_path / "to") for _ in range(3)))
    assert {each["brought"] + each["unchanged"] for each in said} == {2}
    assert names(tmp_path / "to") == ["worker-0/logs/events", "worker-0/model.bin"]


async def test_a_job_without_outputs_makes_no_folder(bench, tmp_path):
    await bench.submit()
    assert (await pull(bench, tmp_path / "to"))["brought"] == 0
    assert not (tmp_path / "to").exists()
