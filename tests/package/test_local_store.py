"""The store of this host: complete or absent, whatever is killed, and however many write at once (D8)."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import NotFound, PaiJupyterError
from paijupyter.package import SMALL, AdoptingStore, Entry, LocalStore, Manifest, Missing, snapshot
from paijupyter.package.local_store import _PackCheck
from paijupyter.package.stat_cache import StatCache


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def entry(path: str, data: bytes) -> Entry:
    return Entry(path, "100644", len(data), sha(data))


LARGE = b"L" * SMALL
FILES = {"a": b"first", "b": b"", "c": b"third", "d": LARGE}
MANIFEST = Manifest(entry(path, data) for path, data in FILES.items())
PACK = b"firstthird"


def put(store: LocalStore) -> None:
    store.put_pack(MANIFEST, [PACK])
    store.put_blob(sha(LARGE), [LARGE])
    store.commit(MANIFEST)


def test_missing_put_commit(store: LocalStore, data: Path) -> None:
    assert isinstance(store, AdoptingStore)
    assert store.missing(MANIFEST) == Missing(True, (sha(LARGE),))
    store.put_pack(MANIFEST, [PACK])
    assert store.missing(MANIFEST) == Missing(False, (sha(LARGE),))
    assert MANIFEST.sha256 not in store
    store.put_blob(sha(LARGE), [LARGE[:10], LARGE[10:]])
    assert not store.missing(MANIFEST)
    store.commit(MANIFEST)
    store.commit(MANIFEST)
    assert MANIFEST.sha256 in store and list(store) == [MANIFEST.sha256]
    folder = data / "packages" / MANIFEST.sha256
    assert store.folder(MANIFEST.sha256) == folder
    assert sorted(os.listdir(folder)) == ["manifest.json", "pack"]
    assert (folder / "pack").read_bytes() == PACK
    assert (folder / "manifest.json").read_bytes() == MANIFEST.data
    assert (data / "blobs" / sha(LARGE)[:2] / sha(LARGE)).read_bytes() == LARGE
    assert store.manifest(MANIFEST.sha256) == MANIFEST
    assert store.verify(MANIFEST.sha256) == []
    assert not list(store.staging.iterdir())


def test_nothing_of_it_is_for_others(store: LocalStore, data: Path) -> None:
    put(store)
    for path in data.rglob("*"):
        assert not path.stat().st_mode & 0o077, path


@pytest.mark.parametrize("putting", [["pack"], ["blob"], []])
def test_commit_refuses_what_is_incomplete(store: LocalStore, putting: list[str]) -> None:
    if "pack" in putting:
        store.put_pack(MANIFEST, [PACK])
    if "blob" in putting:
        store.put_blob(sha(LARGE), [LARGE])
    with pytest.raises(PaiJupyterError, match="not complete") as error:
        store.commit(MANIFEST)
    assert error.value.code == "package-incomplete"
    assert MANIFEST.sha256 not in store
    with pytest.raises(NotFound):
        store.manifest(MANIFEST.sha256)


@pytest.mark.parametrize("pack", [b"", b"first", b"firsttHird", PACK + b"x", b"fIrstthird", PACK[::-1]])
def test_a_pack_of_other_bytes_is_refused(store: LocalStore, pack: bytes) -> None:
    with pytest.raises(PaiJupyterError) as error:
        store.put_pack(MANIFEST, [pack])
    assert error.value.code == "package-mismatch"
    assert store.missing(MANIFEST).pack
    assert not list(store.staging.iterdir())


def test_a_blob_of_other_bytes_is_refused(store: LocalStore) -> None:
    with pytest.raises(PaiJupyterError) as error:
        store.put_blob(sha(LARGE), [LARGE, b"x"])
    assert error.value.code == "package-mismatch"
    assert not list(store.blobs.glob("*/*"))


def test_an_interrupted_stream_leaves_nothing(store: LocalStore) -> None:
    def broken() -> Iterator[bytes]:
        yield PACK[:4]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.put_pack(MANIFEST, broken())
    assert store.missing(MANIFEST).pack
    assert not list(store.staging.iterdir())


@given(
    files=st.lists(st.binary(max_size=20), max_size=8),
    cuts=st.lists(st.integers(1, 9), max_size=20),
    flip=st.integers(0, 200),
)
def test_the_pack_is_checked_in_chunks_of_any_size(files: list[bytes], cuts: list[int], flip: int) -> None:
    entries = [entry(str(number), data) for number, data in enumerate(files)]
    pack = b"".join(files)

    def wrong(data: bytes) -> str | None:
        check = _PackCheck(entries)
        sizes = iter(cuts)
        while data:
            size = next(sizes, 3)
            check.feed(data[:size])
            data = data[size:]
        return check.wrong()

    assert wrong(pack) is None
    assert wrong(pack + b"x") is not None
    if pack:
        place = flip % len(pack)
        assert wrong(pack[:place] + bytes([pack[place] ^ 1]) + pack[place + 1 :]) is not None
        assert wrong(pack[:-1]) is not None


@pytest.mark.parametrize("name", ["../../etc", "", "a" * 63, "A" * 64, "g" * 64, "a" * 65])
def test_a_name_that_is_no_hash(store: LocalStore, name: str) -> None:
    with pytest.raises(NotFound):
        store.folder(name)


@pytest.mark.parametrize("place", ["manifest.json", "pack", "blob", "no pack", "no blob"])
def test_verify_finds_damage(store: LocalStore, place: str) -> None:
    put(store)
    folder = store.folder(MANIFEST.sha256)
    blob = store.blobs / sha(LARGE)[:2] / sha(LARGE)
    if place.startswith("no "):
        (blob if place == "no blob" else folder / "pack").unlink()
    else:
        path = blob if place == "blob" else folder / place
        damaged = bytearray(path.read_bytes())
        damaged[-3] ^= 1
        path.write_bytes(damaged)
    problems = store.verify(MANIFEST.sha256)
    assert {problem.code for problem in problems} == {"package-damaged"}
    files = {
        "manifest.json": {None},
        "pack": {"c"},
        "blob": {"d"},
        "no pack": {"a", "b", "c"},
        "no blob": {"d"},
    }
    assert {problem.file for problem in problems} == files[place]
    assert all(str(store.packages.parent) in problem.hint for problem in problems)


def test_a_truncated_pack_is_stored_again(store: LocalStore) -> None:
    put(store)
    (store.folder(MANIFEST.sha256) / "pack").write_bytes(PACK[:3])
    assert store.missing(MANIFEST) == Missing(True)
    put(store)
    assert not store.verify(MANIFEST.sha256)


def age(store: LocalStore, seconds: float = 100_000) -> None:
    then = time.time() - seconds
    for folder in (store.packages, store.blobs, store.staging):
        for path in folder.rglob("*"):
            os.utime(path, (then, then))


def test_sweep_keeps_what_is_wanted_and_what_is_recent(store: LocalStore) -> None:
    put(store)
    other = Manifest([entry("x", b"12345678")])
    store.put_pack(other, [b"12345678"])
    store.commit(other)
    assert store.sweep(set()) == 0, "everything is recent"
    age(store)
    assert store.sweep({MANIFEST.sha256}) > 8
    assert list(store) == [MANIFEST.sha256]
    assert not store.verify(MANIFEST.sha256)
    assert store.sweep(set()) >= len(LARGE) + len(PACK)
    assert not list(store) and not list(store.blobs.glob("*/*"))


def test_asking_for_a_package_keeps_it_from_the_sweep(store: LocalStore) -> None:
    """Between ``missing`` and the submission of the job there is no record yet that would keep it."""
    put(store)
    age(store)
    assert not store.missing(MANIFEST)
    store.sweep(set())
    store.commit(MANIFEST)
    assert not store.verify(MANIFEST.sha256)


def test_sweep_removes_what_killed_processes_left(store: LocalStore) -> None:
    (store.staging / "left").mkdir()
    (store.staging / "left" / "0").write_bytes(b"x" * 1000)
    (store.staging / "file").write_bytes(b"x")
    store.put_pack(MANIFEST, [PACK])  # never committed
    store.sweep(set())
    assert len(list(store.staging.iterdir())) == 2
    age(store, 7200)
    assert store.sweep(set()) == len(PACK)
    assert len(list(store.staging.iterdir())) == 2, "a snapshot of gigabytes may take hours"
    age(store)
    assert store.sweep(set()) >= 1001
    assert not list(store.staging.iterdir()) and not list(store.packages.iterdir())


def test_sweep_removes_stat_caches_of_folders_long_unused(store: LocalStore, data: Path) -> None:
    caches = data / "stat-cache"
    StatCache(caches, "/old").save({})
    StatCache(caches, "/new").save({})
    then = time.time() - 40 * 24 * 3600
    (old,) = caches.glob(f"{sha(b'/old')[:32]}*")
    os.utime(old, (then, then))
    store.sweep(set())
    assert len(list(caches.iterdir())) == 1 and not old.exists()


SUBMIT = """
import sys
from pathlib import Path
from paijupyter.package import LocalStore, snapshot
store = LocalStore(Path(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
print(snapshot(Path(sys.argv[1]), store).sha256, flush=True)
"""


def submitter(root: Path, data: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SUBMIT, str(root), str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def heavy(write, root: Path) -> Path:
    source = random.Random(1)
    write({f"s{n}/f{m}": source.randbytes(20_000) for n in range(10) for m in range(20)})
    write({f"large{n}": source.randbytes(2_000_000) for n in range(3)})
    return root


@pytest.mark.slow
def test_kill_at_any_moment_leaves_a_whole_store(heavy: Path, store: LocalStore, data: Path) -> None:
    """kill -9 while a package is stored: nothing half done is seen, and the next try succeeds."""
    source = random.Random(2)
    started = time.monotonic()
    whole = submitter(heavy, data / "reference").communicate("\n")[0].strip()
    longest = time.monotonic() - started
    for _ in range(8):
        process = submitter(heavy, data)
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        try:
            process.wait(source.random() * longest)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        for package in store:
            assert package == whole
            assert not store.verify(package)
    assert snapshot(heavy, store).sha256 == whole
    assert not store.verify(whole)
    age(store)
    store.sweep({whole})
    assert not list(store.staging.iterdir()), "what the killed ones left is swept"


def test_several_processes_at_once(heavy: Path, store: LocalStore, data: Path) -> None:
    processes = [submitter(heavy, data) for _ in range(4)]
    for process in processes:
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    found = {process.communicate()[0].strip() for process in processes}
    assert all(process.returncode == 0 for process in processes)
    assert found == set(store)
    assert not store.verify(found.pop())
    assert not list(store.staging.iterdir())


def test_one_file_is_read_and_checked(store: LocalStore, write: Callable[..., Path]) -> None:
    large = bytes(SMALL)
    root = write({"a.txt": "first", "b/large.bin": large, "c.txt": "third"})
    sha256 = snapshot(root, store).sha256
    assert [store.content(sha256, path) for path in ("a.txt", "b/large.bin", "c.txt")] == [
        b"first",
        large,
        b"third",
    ]
    with pytest.raises(NotFound):
        store.content(sha256, "absent")
    (store.folder(sha256) / "pack").write_bytes(b"first" + b"THIRD")
    assert store.content(sha256, "a.txt") == b"first"
    with pytest.raises(PaiJupyterError, match=r"`c\.txt` have another hash"):
        store.content(sha256, "c.txt")
