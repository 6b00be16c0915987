"""Folders of records: whole or not at all, and what a crash left behind goes once nobody can be at it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paijupyter.jobs import folders


def test_a_folder_is_there_with_all_it_has(tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "one"
    folders.make(folder, {"job.json": b"{}"}, ("tasks",))
    assert {path.name for path in folder.iterdir()} == {"job.json", "tasks"}
    assert [path.name for path in folder.parent.iterdir()] == ["one"]


def test_what_cannot_be_made_whole_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        folders.make(tmp_path / "one", {"job.json": b"{}", "no/such/folder": b""})
    assert list(tmp_path.iterdir()) == []


def test_what_is_removed_twice_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folders.make(folder, {"job.json": b"{}"})
    folders.remove(folder)
    folders.remove(folder)
    assert list(tmp_path.iterdir()) == []


def test_old_leftovers_go_and_young_ones_stay(tmp_path: Path) -> None:
    """A draft of a moment ago may be the work of another host on the same disk."""
    for name in (folders.DRAFT, folders.GONE):
        (tmp_path / f"{name}old-1").mkdir()
        os.utime(tmp_path / f"{name}old-1", (0, 0))
        (tmp_path / f"{name}young-1").mkdir()
    (tmp_path / "one").mkdir()
    os.utime(tmp_path / "one", (0, 0))
    folders.sweep(tmp_path)
    folders.sweep(tmp_path / "absent")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{folders.GONE}young-1",
        f"{folders.DRAFT}young-1",
        "one",
    ]
