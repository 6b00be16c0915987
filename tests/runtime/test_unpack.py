"""Packages arrive as they were packed, or not at all (P11; defects D8, D9)."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.package import LocalStore, snapshot
from paijupyter.runtime import unpack as module
from paijupyter.runtime.failure import Failure
from paijupyter.runtime.unpack import unpack


class Quiet:
    """A watch that never stops anything."""

    def check(self) -> None:
        return


class StopAfter:
    """A watch that stops the third look."""

    looks = 0

    def check(self) -> None:
        self.looks += 1
        if self.looks == 3:
            raise Failure("stopped", "The task was stopped on request.")


_NAME = st.text("abcXYZ-_ é.", min_size=1, max_size=8).filter(
    lambda name: name.strip(". ") and name[0] != "."
)
_FILES = st.dictionaries(_NAME, st.binary(max_size=2000), max_size=6)


@settings(max_examples=25, deadline=None)
@given(files=_FILES, large=st.integers(262_143, 262_146), executable=st.booleans())
def test_round_trip(tmp_path_factory, files, large, executable):
    """What `package` snapshots, the task gets: names, contents, execute bits, links."""
    root = tmp_path_factory.mktemp("root")
    for name, content in files.items():
        (root / "sub").mkdir(exist_ok=True)
        (root / "sub" / name).write_bytes(content)
    (root / "large").write_bytes(os.urandom(large))
    (root / "large").chmod(0o755 if executable else 0o644)
    (root / "link").symlink_to("large")
    data = tmp_path_factory.mktemp("data")
    store = LocalStore(data)
    made = snapshot(root, store)
    folder = store.folder(made.sha256)
    target = data / "work"
    package = {
        "manifest": str(folder / "manifest.json"),
        "pack": str(folder / "pack"),
        "blobs": str(store.blobs),
    }
    states = unpack(package, str(target), Quiet())
    assert tree(target) == tree(root)
    assert set(states) == {path for path, found in tree(target).items() if found[0] != "link"}


def tree(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Return kind and content of all below a folder."""
    found = {}
    for path in root.rglob("*"):
        name = os.fsencode(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", os.fsencode(os.readlink(path)))
        elif path.is_file():
            found[name] = ("x" if path.stat().st_mode & stat.S_IXUSR else "-", path.read_bytes())
    return found


def test_a_running_task_cannot_change_the_stored_package(task):
    content = os.urandom(400_000)
    task.package({"large": content})
    assert task.run("echo more >> large; wc -c < large")["code"] == 0
    assert task.log == "400005\n"
    (blob,) = [path for path in (task.data / "blobs").rglob("*") if path.is_file()]
    assert blob.read_bytes() == content


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../b", "a//b", "", ".", "a/./b", "a\0b"])
def test_unsafe_paths_are_refused(task, path):
    task.package({path: "x"})
    with pytest.raises(Failure, match=r"^The package has the unsafe path"):
        unpack(task.spec["package"], str(task.work), Quiet())


def test_nothing_is_written_through_a_link(task):
    outside = task.home / "outside"
    outside.mkdir()
    task.package({"a": ("120000", os.fsencode(outside)), "a/b": "x"})
    with pytest.raises(Failure, match=r"^The package could not be unpacked"):
        unpack(task.spec["package"], str(task.work), Quiet())
    assert os.listdir(outside) == []


def test_a_damaged_pack_is_named(task):
    """D8: a package that is not whole must not run."""
    task.package({"a": "aaaa", "b": "bbbb"})
    pack = Path(task.spec["package"]["pack"])
    pack.write_bytes(pack.read_bytes()[:-1] + b"x")
    record = task.run()
    assert (record["reason"], record["code"]) == ("package", None)
    assert record["message"] == "The package is damaged at `b`."
    assert task.log == "[paijupyter] The package is damaged at `b`.\n"
    assert not task.work.exists()


@pytest.mark.parametrize("change", ["short", "long", "no-pack", "no-blob", "small-blob", "no-json", "mode"])
def test_incomplete_packages_fail(task, change):
    task.package({"a": "aaaa", "large": b"x" * 300_000})
    package = {name: Path(path) for name, path in task.spec["package"].items()}
    (blob,) = [path for path in package["blobs"].rglob("*") if path.is_file()]
    match change:
        case "short":
            package["pack"].write_bytes(b"aaa")
        case "long":
            package["pack"].write_bytes(b"aaaab")
        case "no-pack":
            package["pack"].unlink()
        case "no-blob":
            blob.unlink()
        case "small-blob":
            blob.write_bytes(b"x" * 299_999)
        case "no-json":
            package["manifest"].write_text("{")
        case "mode":
            facts = json.loads(package["manifest"].read_text())
            facts["files"][0][1] = "160000"
            package["manifest"].write_text(json.dumps(facts))
    with pytest.raises(Failure, match=r"^The package ") as caught:
        unpack(task.spec["package"], str(task.work), Quiet())
    assert caught.value.reason == "package"


def test_a_full_disk_is_reported_as_such(task, monkeypatch):
    """D9: full storage was reported as `package not exist`."""

    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "_copy", full)
    task.package({"large": b"x" * 300_000})
    with pytest.raises(Failure, match=r"^The package does not fit on the disk \(No space left on device\)"):
        unpack(task.spec["package"], str(task.work), Quiet())


def test_stopping_is_noticed_between_files(task):
    task.package({name: name for name in "abcdef"})
    with pytest.raises(Failure) as caught:
        unpack(task.spec["package"], str(task.work), StopAfter())
    assert caught.value.reason == "stopped"
    assert len(os.listdir(task.work)) == 2
