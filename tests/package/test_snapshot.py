"""Taking a trainer package: the same folder gives the same hash, and only whole packages exist (P11, P18)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter import paths
from paijupyter.errors import PaiJupyterError, UsageProblem
from paijupyter.package import SMALL, LocalStore, Manifest, Missing, Snapshot, snapshot
from paijupyter.package import reading as reading_module


def unpack(store: LocalStore, sha256: str) -> dict[str, tuple[str, bytes]]:
    """Read a package as the boot file does: with the standard library, offsets implied by sizes."""
    folder = store.folder(sha256)
    rows = json.loads((folder / "manifest.json").read_bytes())["files"]
    pack = (folder / "pack").read_bytes()
    files, offset = {}, 0
    for path, mode, size, digest in rows:
        if size < 262144:
            content, offset = pack[offset : offset + size], offset + size
        else:
            content = (store.blobs / digest[:2] / digest).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest and len(content) == size
        files[path] = (mode, content)
    assert offset == len(pack)
    return files


def test_all_kinds_of_files_arrive(write, root: Path, store: LocalStore) -> None:
    write({"train.py": "print()", "run.sh": "#!", "empty": "", "é ü/x": "y", "big": b"x" * SMALL})
    write({"exact": b"y" * (SMALL - 1), 'quote"\\\n': "q"})
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("é ü/x")
    taken = snapshot(root, store)
    assert not taken.problems
    assert unpack(store, taken.sha256) == {
        "train.py": ("100644", b"print()"),
        "run.sh": ("100755", b"#!"),
        "empty": ("100644", b""),
        "é ü/x": ("100644", b"y"),
        "big": ("100644", b"x" * SMALL),
        "exact": ("100644", b"y" * (SMALL - 1)),
        'quote"\\\n': ("100644", b"q"),
        "link": ("120000", "é ü/x".encode()),
    }
    assert taken.files == 8
    assert taken.bytes == sum(entry.size for entry in taken.manifest.entries)
    assert not store.verify(taken.sha256)


def test_an_empty_folder_is_a_package(root: Path, store: LocalStore) -> None:
    taken = snapshot(root, store)
    assert taken.files == 0 and taken.sha256 in store


def test_the_same_folder_gives_the_same_hash(
    write, root: Path, store: LocalStore, isolated_home: Path
) -> None:
    """Whatever the times, owners, permissions, place and order of creation."""
    write({"b": "2", "a/c": "3", "a.txt": "1"})
    first = snapshot(root, store).sha256
    other = isolated_home / "elsewhere"
    shutil.copytree(root, other)
    for path in other.rglob("*"):
        os.utime(path, (1, 1))
        if path.is_file():
            path.chmod(0o606)
    (other / "empty folder").mkdir()
    assert snapshot(other, store).sha256 == first
    link = isolated_home / "link"
    link.symlink_to(root)
    assert snapshot(link, store).sha256 == first


contents = st.dictionaries(
    st.sampled_from(["a", "b", "c/d", "c/e", "z.ipynb"]), st.binary(max_size=30), min_size=1, max_size=5
)


@settings(max_examples=40, deadline=None)
@given(one=contents, two=contents)
def test_hashes_are_equal_exactly_if_the_contents_are(
    tmp_path_factory: pytest.TempPathFactory, one: dict[str, bytes], two: dict[str, bytes]
) -> None:
    base = tmp_path_factory.mktemp("hash")
    store = LocalStore(base / "data")
    hashes = []
    for name, files in (("one", one), ("two", two)):
        for path, content in files.items():
            (base / name / path).parent.mkdir(parents=True, exist_ok=True)
            (base / name / path).write_bytes(content)
        hashes.append(snapshot(base / name, store).sha256)
    assert (hashes[0] == hashes[1]) == (one == two)
    assert {path: content for path, (_, content) in unpack(store, hashes[0]).items()} == one


def test_running_a_cell_changes_no_hash(write, root: Path, store: LocalStore) -> None:
    cell = {"cell_type": "code", "source": "1", "metadata": {}, "outputs": [], "execution_count": None}
    write({"n.ipynb": json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4})})
    before = snapshot(root, store)
    ran = cell | {"outputs": [{"text": "x" * SMALL}], "execution_count": 3}
    write({"n.ipynb": json.dumps({"cells": [ran], "metadata": {}, "nbformat": 4})})
    assert snapshot(root, store).sha256 == before.sha256


def test_a_large_notebook_travels_normalised(write, root: Path, store: LocalStore) -> None:
    cell = {"cell_type": "code", "source": "x" * SMALL, "metadata": {}, "outputs": ["secret"]}
    write({"n.ipynb": json.dumps({"cells": [cell]}), "other": "1"})
    for _ in range(2):
        taken = snapshot(root, store)
        assert b"secret" not in unpack(store, taken.sha256)["n.ipynb"][1]
        shutil.rmtree(store.blobs)  # the second time it has to be read again for the store


def test_a_broken_notebook_travels_as_it_is(write, root: Path, store: LocalStore) -> None:
    write({"n.ipynb": "<<<<<<< HEAD"})
    taken = snapshot(root, store)
    assert [(problem.severity, problem.file) for problem in taken.problems] == [("warning", "n.ipynb")]
    assert unpack(store, taken.sha256)["n.ipynb"] == ("100644", b"<<<<<<< HEAD")


def test_generated_files_override(write, root: Path, store: LocalStore) -> None:
    write({"a": "disk", ".gitignore": ".paijob/\n"})
    (root / "link").symlink_to("a")
    extra = {"a": b"generated", ".paijob/cell.py": b"print()", "link": b"file", "big": b"x" * SMALL}
    taken = snapshot(root, store, extra_files=extra)
    files = unpack(store, taken.sha256)
    assert files.pop(".gitignore")
    assert files == {path: ("100644", content) for path, content in extra.items()}
    assert snapshot(root, store, extra_files=extra).sha256 == taken.sha256
    assert snapshot(root, store, extra_files=extra | {"a": b"other"}).sha256 != taken.sha256


@pytest.mark.parametrize("path", ["../x", "/x", "", "a/", "a/b", "c", "new/x"])
def test_a_generated_file_has_to_fit(write, root: Path, store: LocalStore, path: str) -> None:
    write({"a": "", "c/d": ""})
    with pytest.raises(UsageProblem, match="Generated file"):
        snapshot(root, store, extra_files={path: b"", "new": b""})


def test_a_package_that_is_too_large_is_not_stored(write, root: Path, store: LocalStore) -> None:
    from paijupyter.package import Limits

    write({"a": "12345"})
    taken = snapshot(root, store, limits=Limits(bytes=4))
    assert taken.sha256 == "" and taken.files == 0
    assert [problem.code for problem in taken.problems] == ["package-too-large"]
    assert not store.packages.exists()


def test_our_own_secrets_and_records_never_travel(write, root: Path, isolated_home: Path) -> None:
    """Decision 8: the one 0600 file in the runtime folder rests nowhere else, wherever that folder lies."""
    store = LocalStore(isolated_home / "data")
    write({"../data/jobs/x/job.json": "{}", "../work/a": "1"})
    secret = paths.runtime_dir() / "secrets" / "job.json"
    secret.parent.mkdir()
    secret.write_text("canary")
    other = paths.runtime_dir().parent / "other" / "secrets.json"
    other.parent.mkdir()
    other.write_text("canary")
    taken = snapshot(isolated_home, store)
    assert unpack(store, taken.sha256).keys() == {"work/a"}


class Files:
    """Stands before ``os.read`` and lets something happen to a file while it is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.original = os.read
        self.times = 0
        self.path = root / "a"
        monkeypatch.setattr(reading_module.os, "read", self.read)

    def read(self, number: int, size: int) -> bytes:
        data = self.original(number, size)
        if self.times and os.path.samestat(os.fstat(number), self.path.stat()):
            self.times -= 1
            with self.path.open("a") as file:
                file.write("more")
        return data


@pytest.mark.parametrize("size", [3, SMALL + 3])
def test_a_file_that_changes_once_is_read_again(
    write, root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    write({"a": "x" * size})
    Files(monkeypatch, root).times = 1
    taken = snapshot(root, store)
    assert not taken.problems
    assert unpack(store, taken.sha256)["a"][1] == b"x" * size + b"more"


@pytest.mark.parametrize("size", [3, SMALL + 3])
def test_a_file_that_changes_all_the_time_is_a_problem(
    write, root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    write({"a": "x" * size, "b": "1"})
    Files(monkeypatch, root).times = 1000
    taken = snapshot(root, store)
    assert [(problem.code, problem.file) for problem in taken.problems] == [("file-changing", "a")]
    assert taken.sha256 == "" and not list(store)
    assert not list(store.staging.iterdir())


def test_a_large_file_that_shrinks_goes_into_the_pack(
    write, root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"a": "x" * SMALL, "b": "1"})
    original = os.read

    def shrink(number: int, size: int) -> bytes:
        data = original(number, size)
        if os.fstat(number).st_size == SMALL:
            os.truncate(root / "a", 3)
        return data

    monkeypatch.setattr(reading_module.os, "read", shrink)
    taken = snapshot(root, store)
    assert unpack(store, taken.sha256)["a"][1] == b"xxx"
    assert not taken.problems


def test_a_file_that_vanishes_does_not_belong(
    write, root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"a": "1", "b": "2", "c": b"3" * SMALL})
    original = os.open

    def vanish(path, flags, *args, **options):
        if isinstance(path, str) and path.endswith(("/project/a", "/project/c")):
            Path(path).unlink(missing_ok=True)
        return original(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", vanish)
    taken = snapshot(root, store)
    assert not taken.problems
    assert unpack(store, taken.sha256).keys() == {"b"}


@pytest.mark.parametrize("size", [1, SMALL])
def test_a_file_that_cannot_be_read_is_a_problem(
    write, root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    write({"a": "x" * size, "b": "2"})
    original = os.open

    def refuse(path, flags, *args, **options):
        if isinstance(path, str) and path.endswith("/project/a"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return original(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    taken = snapshot(root, store)
    assert [(problem.code, problem.file) for problem in taken.problems] == [("file-unreadable", "a")]
    assert "Permission denied" in taken.problems[0].message
    assert not list(store)


def test_a_name_that_became_a_link_is_not_followed(
    write, root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"a": "1", "../secret": "s"})
    original = os.open

    def swap(path, flags, *args, **options):
        if isinstance(path, str) and path.endswith("/project/a"):
            Path(path).unlink(missing_ok=True)
            Path(path).symlink_to("../secret")
        return original(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", swap)
    taken = snapshot(root, store)
    assert [problem.code for problem in taken.problems] == ["file-unreadable"]


def test_a_file_that_changes_between_hash_and_pack_is_looked_at_again(
    write, root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paijupyter.package import stat_cache

    monkeypatch.setattr(stat_cache, "RACY_NS", -(10**12))
    write({f"f{n}": "x" * 100 for n in range(9)})
    snapshot(root, store)
    write({"f1": "new"})
    missing = LocalStore.missing

    def change_first(self: LocalStore, manifest: Manifest) -> Missing:
        if (root / "f1").read_text() == "new":
            write({"f1": "newer"})
        return missing(self, manifest)

    monkeypatch.setattr(LocalStore, "missing", change_first)
    taken = snapshot(root, store)
    assert unpack(store, taken.sha256)["f1"][1] == b"newer"
    assert not store.verify(taken.sha256)


def test_progress_ends_with_all_done(write, root: Path, store: LocalStore) -> None:
    write({f"f{n}": "x" * 1000 for n in range(200)} | {"large": b"x" * 2_000_000})
    seen: list[tuple[int, int]] = []
    snapshot(root, store, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2_200_000, 2_200_000)
    assert all(done <= total for done, total in seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 2


def test_an_interrupt_leaves_nothing_half_done(write, root: Path, store: LocalStore) -> None:
    write({f"f{n}": "x" * 1000 for n in range(300)})

    def interrupt(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        snapshot(root, store, progress=interrupt)
    assert not list(store) and not list(store.staging.iterdir())
    assert snapshot(root, store).sha256 in store


def test_a_full_disk_is_said(write, root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"a": "1"})

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PaiJupyterError, match="No space left on device") as error:
        snapshot(root, store)
    assert (error.value.code, error.value.status) == ("package-store", 507)
    assert not list(store) and not list(store.staging.iterdir())


class RemoteLike:
    """A store that only has the protocol, as the one that sends to an engine."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self.calls: list[str] = []

    def missing(self, manifest: Manifest) -> Missing:
        self.calls.append("missing")
        return self.store.missing(Manifest.from_json(json.loads(json.dumps(manifest.to_json()))))

    def put_pack(self, manifest: Manifest, chunks: Iterable[bytes]) -> None:
        self.calls.append("pack")
        self.store.put_pack(manifest, chunks)

    def put_blob(self, sha256: str, chunks: Iterable[bytes]) -> None:
        self.calls.append("blob")
        self.store.put_blob(sha256, chunks)

    def commit(self, manifest: Manifest) -> None:
        self.calls.append("commit")
        self.store.commit(manifest)


def test_a_store_elsewhere_is_sent_only_what_it_lacks(write, root: Path, store: LocalStore) -> None:
    write(
        {
            "a": "1",
            "big": b"x" * SMALL,
            "same": b"x" * SMALL,
            "n.ipynb": json.dumps({"cells": [], "x": "y" * SMALL}),
        }
    )
    remote = RemoteLike(store)
    seen: list[tuple[int, int]] = []
    first = snapshot(root, remote, progress=lambda *numbers: seen.append(numbers))
    assert remote.calls == ["missing", "pack", "blob", "blob", "commit"]
    assert seen[-1][0] == seen[-1][1]
    assert not store.verify(first.sha256)
    remote.calls.clear()
    write({"a": "2"})
    second = snapshot(root, remote)
    assert remote.calls == ["missing", "pack", "commit"]
    assert not store.verify(second.sha256)
    remote.calls.clear()
    snapshot(root, remote)
    assert remote.calls == ["missing", "commit"]


def test_a_large_file_that_changes_on_its_way_is_sent_again(write, root: Path, store: LocalStore) -> None:
    write({"big": b"x" * SMALL})

    class Changing(RemoteLike):
        def put_blob(self, sha256: str, chunks: Iterable[bytes]) -> None:
            if self.calls.count("blob") == 0:
                write({"big": b"y" * SMALL})
            super().put_blob(sha256, chunks)

    taken = snapshot(root, Changing(store))
    assert unpack(store, taken.sha256)["big"][1] == b"y" * SMALL


def test_importing_the_room_is_light() -> None:
    """Decision 12: no cluster client, no pydantic, no IPython; parts are loaded on first use."""
    code = (
        "import sys, paijupyter.package as p; early = set(sys.modules); p.snapshot, p.LocalStore, p.select;"
        "print(sorted(m for m in early if m.startswith('paijupyter.package.')));"
        "print([m for m in ('pydantic', 'IPython', 'pathspec', 'asyncio', 'nbformat') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output == "[]\n[]\n"


def test_the_function_is_not_shadowed_by_its_module() -> None:
    assert isinstance(Snapshot, type) and callable(snapshot)
    with pytest.raises(AttributeError, match="nonsense"):
        import paijupyter.package

        paijupyter.package.nonsense  # noqa: B018
