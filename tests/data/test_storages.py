"""O16, P35, P37: storages; nothing outside their folder is reached, uploads resume, tasks find them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paijupyter.client.client import JobsClient
from paijupyter.client.storages import split
from paijupyter.data.storages import Storage, existing, inside, listed, removed, storages_of, used_by
from paijupyter.errors import PaiJupyterError, UsageProblem
from paijupyter.protocol import read
from tests.home import until

_PART = st.one_of(
    st.sampled_from(["..", ".", "", "in", "out", "up", "file", "a b", "...", "..a"]), st.text(max_size=6)
)
_PATH = st.lists(_PART, max_size=5).map("/".join)


@pytest.fixture
def team(tmp_path: Path) -> Storage:
    """A storage with links that lead out of it, beside a file that must stay."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("secret")
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (root / "in" / "file").write_text("mine")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    return Storage("team", root)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(path=_PATH)
def test_no_path_leaves_the_storage(team: Storage, path: str) -> None:
    assert team.folder is not None
    root = team.folder.resolve()
    with contextlib.suppress(PaiJupyterError, ValueError):
        place = inside(team, path)
        assert place == root or root in place.parents
        assert place.parent.resolve() == root.parent or root in [
            place.parent.resolve(),
            *place.parent.resolve().parents,
        ]
    with contextlib.suppress(PaiJupyterError, ValueError):
        real = existing(team, path)
        assert real == root or root in real.parents
    with contextlib.suppress(PaiJupyterError, ValueError):
        for entry in listed(team, path):
            assert "secret" not in str(entry)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(path=_PATH)
def test_no_removal_reaches_outside(team: Storage, path: str) -> None:
    assert team.folder is not None
    with contextlib.suppress(PaiJupyterError, OSError, ValueError):
        removed(team, path, recursive=True)
    assert (team.folder.parent / "secret" / "file").read_text() == "secret"
    assert team.folder.is_dir()
    (team.folder / "in").mkdir(exist_ok=True)
    for name, target in (("out", team.folder.parent / "secret"), ("up", Path(".."))):
        if not os.path.lexists(team.folder / name):
            (team.folder / name).symlink_to(target)


@pytest.mark.parametrize(
    "path", ["../secret/file", "/etc/passwd", "in/../../secret", "out/file", "up/secret/file", "a\0b"]
)
def test_ways_out_are_refused(team: Storage, path: str) -> None:
    with pytest.raises(PaiJupyterError) as refused:
        existing(team, path)
    assert refused.value.code in ("invalid-path", "not-found")


def test_a_link_is_removed_and_not_what_it_leads_to(team: Storage) -> None:
    removed(team, "out", recursive=True)
    assert team.folder is not None
    assert (team.folder.parent / "secret" / "file").exists()
    assert not os.path.lexists(team.folder / "out")


def test_what_may_not_be_removed(team: Storage) -> None:
    for storage, path, code in (
        (team, "", "invalid-path"),
        (team, "in", "is-folder"),
        (team, "none", "not-found"),
        (Storage("team", team.folder, read_only=True), "in/file", "read-only"),
        (Storage("team", Path("/nowhere")), "x", "storage-unusable"),
    ):
        with pytest.raises(PaiJupyterError) as refused:
            removed(storage, path, recursive=False)
        assert refused.value.code == code
        assert refused.value.hint


@pytest.mark.parametrize(
    "settings_of",
    [
        [],
        {"a b": {"path": "/x"}},
        {"a": {}},
        {"a": {"path": "rel"}},
        {"a": {"path": "/x", "rw": 1}},
        {"a": {"path": "/x", "mount": "m"}},
    ],
)
def test_settings_that_make_no_sense_are_named(settings_of: Any) -> None:
    with pytest.raises(PaiJupyterError) as refused:
        storages_of({"storages": settings_of or ["x"]})
    assert refused.value.code == "bad-storage"


def test_which_storages_a_job_gets() -> None:
    """P37, OpenPAI's rule: none named means the default ones; /mnt/<name> unless told otherwise."""
    there = storages_of(
        {
            "storages": {
                "home": {"path": "/h", "default": True},
                "team": {"path": "/t", "mount": "/team"},
                "x": "/x",
            }
        }
    )
    assert list(used_by({}, there)) == [("home", "/mnt/home")]
    assert list(used_by({"extras": {"storages": []}}, there)) == [("home", "/mnt/home")]
    named = {"extras": {"storages": [{"name": "team"}, {"name": "x", "mountPath": "/y"}, {"name": "no"}]}}
    assert list(used_by(named, there)) == [("team", "/team"), ("x", "/y"), ("no", "/mnt/no")]


def test_storage_and_path_of_a_word() -> None:
    assert split("team:a/b:c") == ("team", "a/b:c")
    assert split("team") == ("team", "")
    for text in ("", ":x", "a/b:c", "./x"):
        with pytest.raises(UsageProblem):
            split(text)


# -- in jobs -------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_jobs_read_storages_where_they_are(
    bench: Any, profile: Callable[..., Path], tmp_path: Path
) -> None:
    """O16, O17, P37: by variables, never by text in the command; the plan says what differs."""
    (tmp_path / "t/sets").mkdir(parents=True)
    (tmp_path / "t/sets/one").write_text("kept")
    profile(
        storages={
            "team": {"path": str(tmp_path / "t"), "readOnly": True, "mount": "/mnt/team", "default": True}
        }
    )
    command = 'cat "$PAI_STORAGE_TEAM/sets/one" "$PAI_DATA_S/sets/one"'
    item = {"name": "s", "uri": "storage://team/sets", "path": "/pai_data/mine"}
    plan = await bench.service.plan(bench.request(command, [item]))
    said = {each["code"]: each["message"] + each["hint"] for each in plan["problems"]}
    assert plan["ok"]
    assert "/mnt/team" in said["storage-mount"] and "$PAI_STORAGE_TEAM" in said["storage-mount"]
    assert "/pai_data/mine" in said["data-path"] and "$PAI_DATA_S/sets" in said["data-path"]
    role = read(plan["submittedDocument"]).data["taskRoles"]["worker"]
    assert role["commands"] == [command], "the user's text is not touched"
    view = await bench.final((await bench.submit(command, [item]))["id"])
    assert view["state"] == "succeeded", view
    assert "keptkept" in view["log"]
    assert not Path("/pai_data/mine").exists()


@pytest.mark.asyncio
async def test_storages_that_are_not_there_are_errors_of_the_plan(
    bench: Any, profile: Callable[..., Path], tmp_path: Path
) -> None:
    profile(storages={"gone": {"path": str(tmp_path / "gone")}, "team": {"path": str(tmp_path)}})
    for item, extras, code in (
        ({"name": "s", "uri": "storage://other/x"}, {}, "no-storage"),
        ({"name": "s", "uri": "storage://team/none"}, {}, "data-missing"),
        ({"name": "s", "uri": "storage://team/../x"}, {}, "data-missing"),
        ({"name": "s", "uri": "storage:///x"}, {}, "data"),
        (None, {"storages": [{"name": "other"}]}, "no-storage"),
        (None, {"storages": [{"name": "gone"}]}, "storage-unusable"),
    ):
        plan = await bench.service.plan(bench.request("true", [item] if item else [], extras=extras))
        errors = [each["code"] for each in plan["problems"] if each["severity"] == "error"]
        assert errors[:1] == [code], (item, extras, plan["problems"])
    profile(storages={"bad": 5})
    plan = await bench.service.plan(bench.request("true", []))
    assert [each["code"] for each in plan["problems"] if each["severity"] == "error"] == ["bad-storage"]


# -- over the API --------------------------------------------------------------------------------


def test_put_list_remove_by_the_command(profile: Callable[..., Path], tmp_path: Path) -> None:
    """P35, with a real engine: a folder in, listed, nothing sent twice, removed."""
    root = tmp_path / "root"
    root.mkdir()
    profile(storages={"team": {"path": str(root)}, "old": {"path": str(root), "readOnly": True}})
    (tmp_path / "here/sets/deep").mkdir(parents=True)
    (tmp_path / "here/sets/deep/a").write_bytes(b"a" * 3_000_000)
    (tmp_path / "here/sets/b").write_text("b")
    run = _Command(tmp_path / "here")
    assert "read-only" in run("data", "ls")
    assert "2 files" in run("data", "put", "sets", "team:in/")
    assert (root / "in/sets/deep/a").stat().st_size == 3_000_000
    assert (root / "in/sets/b").read_text() == "b"
    before = (root / "in/sets/b").stat().st_mtime_ns
    assert "2 files" in run("data", "put", "sets", "team:in"), "below the folder that is there"
    assert (root / "in/sets/b").stat().st_mtime_ns == before
    assert "deep/" in run("data", "ls", "team:in/sets")
    assert "1 file" in run("data", "put", "sets/b", "team:in/sets/c")
    assert (root / "in/sets/c").read_text() == "b"
    for words in (
        ("put", "none", "team:x"),
        ("put", "sets/b", "old:x"),
        ("put", "sets/b", "team:../x"),
        ("put", "sets/b", "nowhere:x"),
        ("put", "sets/b"),
        ("ls", "team:none"),
        ("rm", "team:in"),
        ("rm", "team:"),
        ("ls", "team:in", "more"),
    ):
        assert run("data", *words, code=2).count("\n") <= 1, words
    run("data", "rm", "team:in/sets/c")
    run("data", "rm", "team:in", "--recursive")
    assert os.listdir(root) == []
    assert not (tmp_path / "x").exists()


class _Command:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("paijob")), *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert done.returncode == code, done.stdout
        return done.stdout


def test_an_upload_goes_on_where_it_broke_off(profile: Callable[..., Path], tmp_path: Path) -> None:
    root, source = tmp_path / "root", tmp_path / "big"
    root.mkdir()
    profile(storages={"team": {"path": str(root)}})
    source.write_bytes(os.urandom(4_000_000))
    client = JobsClient.connect()

    def broken(done: int, total: int) -> None:
        if done > 1_500_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.storages().put(source, "team", "sets/big", broken)
    assert not (root / "sets/big").exists()
    assert client.storages().entries("team", "sets") == []
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    whole = {"path": "sets/big", "size": 4_000_000, "sha256": sha256}
    uploads = "/v1/storages/team/uploads"
    until(
        lambda: client.ask("POST", uploads, {"profile": None}, whole)["offset"], why="what was sent to come"
    )
    seen: list[int] = []
    client.storages().put(source, "team", "sets/big", lambda done, total: seen.append(done))
    assert (root / "sets/big").read_bytes() == source.read_bytes()
    assert 0 < seen[0] < 4_000_000, "what had come was not sent again"
    assert os.listdir(root / "sets") == ["big"]


def test_an_upload_that_another_one_overtakes_is_asked_for_again(
    profile: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes of a connection that broke off may arrive after the question how many are there."""
    root, source = tmp_path / "root", tmp_path / "big"
    root.mkdir()
    profile(storages={"team": {"path": str(root)}})
    source.write_bytes(os.urandom(1_000_000))
    client = JobsClient.connect()
    ask, late = client.ask, [source.read_bytes()[:700_000]]

    def overtaken(method: str, path: str, *more: Any) -> Any:
        answer = ask(method, path, *more)
        if path.endswith("/uploads") and late:
            (root / f".big.{more[1]['sha256']}.upload").write_bytes(late.pop())
        return answer

    monkeypatch.setattr(client, "ask", overtaken)
    client.storages().put(source, "team", "big")
    assert (root / "big").read_bytes() == source.read_bytes()


def test_bytes_of_another_file_are_refused(profile: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    profile(storages={"team": {"path": str(tmp_path / "root")}})
    client = JobsClient.connect()
    sha = "0" * 64
    url = f"/v1/storages/team/uploads/{sha}"
    for query, code in (
        ({"path": "x", "offset": 0, "size": 3}, "upload-mismatch"),
        ({"path": "x", "offset": 5, "size": 9}, "upload-offset"),
        ({"path": "x", "offset": 0, "size": 2}, "upload-mismatch"),
        ({"path": "", "offset": 0, "size": 3}, "invalid-path"),
    ):
        with pytest.raises(PaiJupyterError) as refused:
            client.open("PUT", url, query, iter([b"abc"]))
        assert refused.value.code == code
    assert os.listdir(tmp_path / "root") == []
