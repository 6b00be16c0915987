"""The stat cache makes the second look cheap and never wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.package import LocalStore, select, snapshot
from paijupyter.package import stat_cache as module
from paijupyter.package.stat_cache import Row, StatCache, fingerprint, is_settled


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files count as settled that were written just now."""
    monkeypatch.setattr(module, "RACY_NS", -(10**12))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the user's files that are opened."""
    opened: list[str] = []
    original = os.open

    def noting(path, flags, *args, **options):
        if isinstance(path, str) and "/project/" in path:
            opened.append(path.partition("/project/")[2])
        return original(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", noting)
    return opened


def test_the_second_look_reads_nothing(write, root: Path, store: LocalStore, settled, reads) -> None:
    write({"a": "1", "b/c": "2", "n.ipynb": '{"cells": []}', "large": b"x" * 300_000})
    first = snapshot(root, store)
    assert sorted(reads) == ["a", "b/c", "large", "n.ipynb"]
    reads.clear()
    again = snapshot(root, store)
    assert not reads
    assert again.sha256 == first.sha256 and again.manifest == first.manifest
    assert (again.files, again.bytes) == (first.files, first.bytes)


def test_only_what_changed_is_hashed(
    write, root: Path, store: LocalStore, data: Path, settled, reads
) -> None:
    write({f"f{n}": str(n) * 50 for n in range(20)})
    snapshot(root, store)
    reads.clear()
    write({"f3": "changed"})
    changed = snapshot(root, LocalStore(data))
    assert reads.count("f3") == 2, "hashed, then packed"
    assert {entry.path: entry.size for entry in changed.manifest.entries}["f3"] == len("changed")
    assert not store.verify(changed.sha256)


def test_recalls_broken_notebooks(write, root: Path, store: LocalStore, settled) -> None:
    write({"bad.ipynb": "{", "other": "x" * 100})
    for _ in range(3):
        assert [problem.code for problem in snapshot(root, store).problems] == ["notebook-broken"]


def test_same_size_and_mtime_is_noticed_by_ctime(write, root: Path, store: LocalStore, settled) -> None:
    write({"a": "old"})
    before = (root / "a").stat()
    first = snapshot(root, store)
    (root / "a").write_text("new")
    os.utime(root / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert snapshot(root, store).sha256 != first.sha256


def test_executable_bit_and_removal_are_noticed(write, root: Path, store: LocalStore, settled) -> None:
    write({"a": "1", "b": "2"})
    hashes = {snapshot(root, store).sha256}
    (root / "a").chmod(0o755)
    hashes.add(snapshot(root, store).sha256)
    (root / "b").unlink()
    hashes.add(snapshot(root, store).sha256)
    assert len(hashes) == 3


def test_just_written_files_are_not_believed(write, root: Path, store: LocalStore, reads) -> None:
    """A file may be written again within one tick of the clock, with the same size."""
    write({"a": "1"})
    snapshot(root, store)
    reads.clear()
    snapshot(root, store)
    assert "a" in reads


@pytest.mark.parametrize(
    ("mtime", "ctime", "settled_"), [(0, 0, True), (0, 9, False), (9, 0, False), (99, 0, False)]
)
def test_is_settled(mtime: int, ctime: int, settled_: bool) -> None:
    second = 10**9
    assert is_settled(mtime * second, ctime * second, 10 * second) is settled_


def test_a_store_that_lost_the_package_gets_it_again(write, root: Path, store: LocalStore, settled) -> None:
    write({"a": "1", "large": b"x" * 300_000, "n.ipynb": '{"cells": []}'})
    first = snapshot(root, store)
    (store.folder(first.sha256) / "pack").unlink()
    for blob in store.blobs.glob("*/*"):
        blob.unlink()
    assert snapshot(root, store).sha256 == first.sha256
    assert not store.verify(first.sha256)


def test_two_roots_do_not_mix(write, root: Path, store: LocalStore, settled) -> None:
    write({"x/a": "1", "y/a": "2"})
    assert snapshot(root / "x", store).sha256 != snapshot(root / "y", store).sha256


def rows(number: int) -> dict[str, Row]:
    return {f"p{n} é": Row(n, -n, n, n, n, n % 2, bytes([n]) * 32) for n in range(number)}


@pytest.mark.parametrize("number", [0, 1, 5])
def test_round_trip(data: Path, number: int) -> None:
    cache = StatCache(data, "/root")
    cache.save(rows(number))
    assert cache.load() == rows(number)
    assert StatCache(data, "/other").load() == {}


@settings(max_examples=100, deadline=None)
@given(change=st.data())
def test_damage_is_a_miss(tmp_path_factory: pytest.TempPathFactory, change: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("cache")
    cache = StatCache(folder, "/root")
    cache.save(rows(3))
    (file,) = folder.glob("*.rows")
    good = file.read_bytes()
    place = change.draw(st.integers(0, len(good) - 1))
    how = change.draw(st.sampled_from(["cut", "flip", "grow"]))
    bad = {
        "cut": good[:place],
        "flip": good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :],
        "grow": good + b"\0",
    }[how]
    file.write_bytes(bad)
    assert cache.load() == {}


def test_a_damaged_last_manifest_is_a_miss(write, root: Path, store: LocalStore, data: Path, settled) -> None:
    write({"a": "1"})
    first = snapshot(root, store)
    (file,) = (data / "stat-cache").glob("*.last")
    file.write_bytes(file.read_bytes().replace(first.manifest.data, first.manifest.data[::-1]))
    assert snapshot(root, store).sha256 == first.sha256


def test_a_cache_that_cannot_be_written_costs_only_speed(
    write, root: Path, store: LocalStore, data: Path
) -> None:
    write({"a": "1"})
    data.mkdir()
    (data / "stat-cache").write_text("in the way")
    assert snapshot(root, store).sha256


def test_fingerprint_tells_generated_files_apart(write, root: Path) -> None:
    write({"a": "1"})
    files = select(root).files
    prints = {
        fingerprint(files, {}),
        fingerprint([], {}),
        fingerprint(files, {"a": b"1"}),
        fingerprint(files, {"a": b"2"}),
        fingerprint(files, {"b": b"1"}),
        fingerprint([files[0]._replace(mtime_ns=-1)], {}),
        fingerprint([files[0]._replace(mode="100755")], {}),
    }
    assert len(prints) == 7
