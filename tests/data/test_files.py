"""O15, O18: files of the submitting side travel like the package, or are refused with a reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from paijupyter import paths
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.client.submission import prepare
from paijupyter.data.files import take
from paijupyter.errors import UsageProblem
from paijupyter.package import Limits, LocalStore
from paijupyter.protocol.data import DataSource


@pytest.fixture
def store() -> LocalStore:
    return LocalStore(paths.data_dir())


def _source(uri: str, **more: str) -> DataSource:
    return DataSource("d", "file", uri, **more)


def test_all_of_a_folder_travels_whatever_ignore_files_say(tmp_path: Path, store: LocalStore) -> None:
    folder = tmp_path / "sets"
    (folder / "deep").mkdir(parents=True)
    (folder / ".gitignore").write_text("*\n")
    (folder / "deep/big.bin").write_bytes(os.urandom(400_000))
    (folder / "run.sh").write_text("x")
    (folder / "run.sh").chmod(0o755)
    (folder / "nb.ipynb").write_text('{"cells": [], "outputs": 1}')
    (tmp_path / "elsewhere").write_text("linked")
    (folder / "link").symlink_to("../elsewhere")
    taken = take(_source("sets"), tmp_path, store)
    entries = {entry.path: entry for entry in store.manifest(taken.sha256).entries}
    assert set(entries) == {
        f"sets/{name}" for name in (".gitignore", "deep/big.bin", "run.sh", "nb.ipynb", "link")
    }
    assert entries["sets/run.sh"].mode == "100755"
    assert entries["sets/link"].size == len("linked"), "a link to a file travels as that file"
    assert store.verify(taken.sha256) == []
    assert (taken.files, taken.bytes) == (5, sum(entry.size for entry in entries.values()))
    assert take(_source(f"file://{folder}"), Path("/"), store).sha256 == taken.sha256


def test_what_did_not_change_is_not_read_again(tmp_path: Path, store: LocalStore, monkeypatch: Any) -> None:
    """As with packages, only a file that was at rest for two seconds is believed."""
    monkeypatch.setattr("paijupyter.data.files.is_settled", lambda *numbers: True)
    (tmp_path / "a").write_text("old")
    first = take(_source("a"), tmp_path, store)
    monkeypatch.setattr("paijupyter.data.files._hash", None)
    assert take(_source("a"), tmp_path, store) == first


def test_refusals_name_the_limit_and_another_way(tmp_path: Path, store: LocalStore) -> None:
    (tmp_path / "big").write_bytes(b"x" * 100)
    (tmp_path / "empty").mkdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "links/up").symlink_to("..")
    os.mkfifo(tmp_path / "pipe")
    for source, words, hint in (
        (_source("big"), "more than 99 B and 5 files", "data put big STORAGE:big"),
        (_source("none"), "does not exist", "relative"),
        (_source("empty"), "has no files", ""),
        (_source("links"), "link to a folder", ""),
        (_source("pipe"), "no regular file", ""),
    ):
        with pytest.raises(UsageProblem) as refused:
            take(source, tmp_path, store, limits=Limits(5, 99))
        assert words in refused.value.message
        assert hint in refused.value.hint
    with pytest.raises(UsageProblem, match="has the sha256"):
        take(_source("big", sha256="0" * 64), tmp_path, store)


def test_the_request_names_what_travelled_and_the_plan_what_did_not(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1")
    words = ["--data", "a=a.csv", "--data", "b=none.csv", "--command", "true"]
    found = prepare(parse_verb("submit", words, "cli"), Origin("cli", tmp_path))
    assert list(found.request["data"]) == ["a"]
    (problem,) = [each for each in found.problems if each.severity == "error"]
    assert problem.code == "data-file"
    assert problem.path == "/extras/paijupyter/data/1"


@pytest.mark.asyncio
async def test_files_travel_into_the_job_and_stay_for_its_retries(bench: Any, tmp_path: Path) -> None:
    """The file may change or go: the job has what was submitted, and so has its retry."""
    (tmp_path / "train.csv").write_text("1,2,3")
    taken = take(DataSource("t", "file", "train.csv"), tmp_path, bench.service.packages)
    item = {"name": "t", "uri": "train.csv"}
    view = await bench.submit('cat "$PAI_DATA_T/train.csv"', [item], data={"t": taken.sha256})
    assert view["data"] == [
        {
            "name": "t",
            "kind": "file",
            "uri": "train.csv",
            "read": "$PAI_DATA_T/train.csv",
            "package": taken.sha256,
            "bytes": 5,
        }
    ]
    (tmp_path / "train.csv").unlink()
    assert "1,2,3" in (await bench.final(view["id"]))["log"]
    bench.service.packages.sweep(bench.service._catalog.index.packages(), older_than=-1000)
    await bench.restart()
    again = await bench.service.retry(view["id"])
    assert "1,2,3" in (await bench.final(again["id"]))["log"]


@pytest.mark.asyncio
async def test_outputs_are_shown_where_they_go(bench: Any) -> None:
    """P7, O15: declared in the plan, collected at the end, listed in the view, which names their folder."""
    from paijupyter.client import card

    document = bench.request("echo 1 > model.txt; echo 2 > $PAI_OUTPUT_DIR/note", [])
    document["document"] += '    outputs: ["model.txt", "none/**"]\n'
    plan = await bench.service.plan(document)
    assert plan["outputs"] == ["model.txt", "none/**"]
    assert "model.txt, none/**: kept" in card.plan_text(card.plan_facts(plan))
    view, _ = await bench.service.submit(document)
    final = await bench.final(view["id"])
    assert [each["path"] for each in final["outputs"]] == ["worker-0/model.txt", "worker-0/note"]
    assert (Path(final["outputFolder"]) / "worker-0/note").read_text() == "2\n"
    assert "`none/**` matched no file" in final["log"]
    assert f"puts them into {view['name']}/" in card.text(card.facts(final))
