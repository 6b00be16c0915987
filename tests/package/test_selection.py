"""What belongs to a package, what is left out and why (P11; peers: "ship my files, and the right ones")."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from paijupyter.errors import PaiJupyterError
from paijupyter.package import Limits, select

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n"


def names(root: Path) -> set[str]:
    return {file.path for file in select(root).files}


def reasons(root: Path) -> dict[str, str]:
    return {row.path: row.reason for row in select(root).excluded}


def test_files_dot_files_and_the_executable_bit(write, root: Path) -> None:
    write({"train.py": "x", "run.sh": "#!", ".config/a.yaml": "", "a/b/c.txt": "1"})
    (root / "run.sh").chmod(0o750)
    (root / "empty").mkdir()
    found = {file.path: file.mode for file in select(root).files}
    assert found == {
        "train.py": "100644",
        "run.sh": "100755",
        ".config/a.yaml": "100644",
        "a/b/c.txt": "100644",
    }


def test_sorted_by_the_bytes_of_paths(write, root: Path) -> None:
    write({"a/b": "", "a.txt": "", "a0": "", "é": "", "z": "", "\U00010000": "", "\uffff": "", "A": ""})
    found = [file.path for file in select(root).files]
    assert found == sorted(found, key=str.encode)
    assert found[:3] == ["A", "a.txt", "a/b"]


@pytest.mark.parametrize(
    "path",
    [
        ".git/HEAD",
        "sub/.git",  # of a worktree or a submodule
        "__pycache__/a.cpython-311.pyc",
        "a/__pycache__/b.pyc",
        "old.pyc",
        ".ipynb_checkpoints/a-checkpoint.ipynb",
        "web/node_modules/x/index.js",
        ".mypy_cache/a",
        ".pytest_cache/a",
        ".DS_Store",
    ],
)
def test_caches_are_never_taken(write, root: Path, path: str) -> None:
    write({path: "x", "keep.py": "", ".paiignore": f"!/{path}\n!*/\n!*\n"})
    assert names(root) == {"keep.py", ".paiignore"}
    assert len(select(root).excluded) == 1


def test_environments_are_never_taken(write, root: Path) -> None:
    write(
        {
            "venv/pyvenv.cfg": "",
            "venv/lib/x.py": "x",
            "my env/conda-meta/history": "",
            "my env/bin/python": "",
        }
    )
    write({"tagged/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n", "tagged/x": ""})
    write({"not/CACHEDIR.TAG": "something else", "env/train.py": "", ".paiignore": "!*\n"})
    assert names(root) == {"not/CACHEDIR.TAG", "env/train.py", ".paiignore"}
    assert reasons(root) == {
        "venv/": "virtual environment",
        "my env/": "virtual environment",
        "tagged/": "cache",
    }


def test_the_root_itself_may_be_an_environment(write, root: Path) -> None:
    write({"pyvenv.cfg": "", "lib/python3.11/site-packages/x.py": "", "bin/python": "", "train.py": ""})
    assert names(root) == {"pyvenv.cfg", "train.py"}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("id_rsa", KEY),
        ("keys/id_ed25519", KEY),
        ("server.pem", KEY),
        ("tls.key", "-----BEGIN PRIVATE KEY-----"),
        (".netrc", ""),
        (".pypirc", ""),
        (".env", "A=b"),
        (".env.local", "A=b"),
        ("kubeconfig", ""),
        ("my-kube.yaml", "current-context: x"),
        ("prod.kubeconfig", ""),
        ("service-account.json", '{"type": "service_account"}'),
        ("project-0123456789ab.json", '{"private_key": "-----BEGIN PRIVATE KEY-----"}'),
        (".docker/config.json", '{"auths": {"x": {}}}'),
        (".aws/credentials", ""),
        ("credentials.json", ""),
        ("store.p12", ""),
        (".npmrc", "//r/:_authToken=x"),
    ],
)
def test_credentials_are_left_out_unless_insisted_on(write, root: Path, path: str, content: str) -> None:
    write({path: content, ".gitignore": "!*"})
    assert names(root) == {".gitignore"}, "a negation in .gitignore is not meant for packages"
    row = select(root).excluded[0]
    assert row.reason == "looks like a credential"
    assert ".paiignore" in row.hint and f"!/{row.path}" in row.hint
    write({".paiignore": f"!/{row.path}\n"})
    assert names(root) == {path, ".paiignore", ".gitignore"}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("ca.pem", "-----BEGIN CERTIFICATE-----"),
        (".env.example", "A="),
        ("config.json", "{}"),
        ("tokenizer.json", '{"tokens": []}'),
        ("keys.yaml", "a: b"),
        ("id_rsa.pub", "ssh-rsa x"),
        ("environment.yml", ""),
    ],
)
def test_what_only_sounds_like_a_credential_is_taken(write, root: Path, path: str, content: str) -> None:
    write({path: content})
    assert names(root) == {path}


def test_checkpoints_are_left_out_unless_insisted_on_or_source(write, root: Path) -> None:
    write({"checkpoints/1/m.pt": "12345", "checkpoint-500/w": "", "last.ckpt": "1", "wandb/x": ""})
    write({"lib/checkpoints/__init__.py": "", "lib/checkpoints/x.json": ""})
    assert names(root) == {"lib/checkpoints/__init__.py", "lib/checkpoints/x.json"}
    excluded = {row.path: row for row in select(root).excluded}
    assert excluded.keys() == {"checkpoints/", "checkpoint-500/", "last.ckpt", "wandb/"}
    assert excluded["checkpoints/"].size == 5
    write({".paiignore": "!/checkpoints/\n!last.ckpt\n"})
    assert {"checkpoints/1/m.pt", "last.ckpt"} <= names(root)


def test_links_inside_travel_and_others_do_not(write, root: Path) -> None:
    write({"a/data.txt": "x", "../outside.txt": "secret"})
    (root / "good").symlink_to("a/data.txt")
    (root / "a/up").symlink_to("../good")
    (root / "dangling").symlink_to("nowhere")
    (root / "folder").symlink_to("a")
    (root / "loop").symlink_to("loop")
    (root / "absolute").symlink_to(root / "a/data.txt")
    (root / "out").symlink_to("../outside.txt")
    (root / "via").symlink_to("out")
    (root / "a/tricky").symlink_to("../folder/../../outside.txt")
    found = select(root)
    assert {f.path for f in found.files if f.mode == "120000"} == {
        "good",
        "a/up",
        "dangling",
        "folder",
        "loop",
    }
    assert found.links["a/up"] == "../good"
    assert {f.path for f in found.files if f.mode != "120000"} == {"a/data.txt"}
    assert {row.path for row in found.excluded} == {"absolute", "out", "via", "a/tricky"}
    assert [problem.code for problem in found.problems] == ["link-outside"] * 4
    assert {problem.severity for problem in found.problems} == {"warning"}


def test_special_files_are_left_out(write, root: Path) -> None:
    write({"a": ""})
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        found = select(root)
    assert [file.path for file in found.files] == ["a"]
    assert [(row.path, row.reason, row.count) for row in found.excluded] == [("*", "not a regular file", 2)]


def test_names_that_are_not_utf8_are_problems(write, root: Path) -> None:
    write({"a": ""})
    (root / os.fsdecode(b"b\xff.txt")).write_text("")
    (root / os.fsdecode(b"d\xff")).mkdir()
    found = select(root)
    assert [file.path for file in found.files] == ["a"]
    assert [(problem.severity, problem.code) for problem in found.problems] == [("error", "file-name")] * 2
    assert {problem.file for problem in found.problems} == {"b\\udcff.txt", "d\\udcff/"}
    assert all(str(problem).encode() for problem in found.problems)
    write({".paiignore": "b*.txt\nd?/\n"})
    assert not select(root).problems


def test_unreadable_folder_is_a_problem(write, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"a": "", "shut/b": "", "gone/c": ""})
    scandir = os.scandir

    def refusing(path: str):
        if path.endswith("/shut"):
            raise PermissionError(13, "Permission denied", path)
        if path.endswith("/gone"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing)
        found = select(root)
    assert [file.path for file in found.files] == ["a"]
    assert [(problem.code, problem.file) for problem in found.problems] == [("file-unreadable", "shut/")]


def test_a_root_that_is_none(root: Path) -> None:
    with pytest.raises(PaiJupyterError, match="No such file") as error:
        select(root / "nowhere")
    assert error.value.code == "package-folder"


def test_our_own_data_folder_is_never_taken(write, root: Path) -> None:
    write({"a": "", "mine/jobs/x": ""})
    assert {f.path for f in select(root, never=frozenset({root / "mine"})).files} == {"a"}


def test_settings_in_the_home_folder_are_left_out(write, isolated_home: Path) -> None:
    """A notebook directly in the home folder, as on a hub, must not send the home's settings along."""
    write({"../n.ipynb": "{}", "../.bash_history": "secret", "../.config/x": "", "../.gitignore": ""})
    write({"../.local/share/x": "", "sub/.config/y": "", "../.paiignore": "!.local/\ndata/\nrun/\n"})
    assert names(isolated_home) == {
        "n.ipynb",
        ".gitignore",
        ".paiignore",
        ".local/share/x",
        "project/sub/.config/y",
    }
    assert {row.path for row in select(isolated_home).excluded if row.reason.startswith("setting")} == {
        ".bash_history",
        ".config/",
    }


def test_too_many_files_name_the_largest_folder(write, root: Path) -> None:
    write({f"data/images/{n}.png": "" for n in range(12)} | {"train.py": "", "src/a.py": "", "src/b.py": ""})
    (problem,) = select(root, limits=Limits(files=10)).problems
    assert (problem.severity, problem.code) == ("error", "package-too-large")
    assert "15 files" in problem.message
    assert "`data/images/` (12 files)" in problem.hint and ".paiignore" in problem.hint
    assert not select(root, limits=Limits(files=15)).problems


def test_too_many_bytes_name_the_largest_file(write, root: Path) -> None:
    write({"w/model.bin": "x" * 3000, "w/a": "x", "train.py": "x" * 10})
    (problem,) = select(root, limits=Limits(bytes=3000)).problems
    assert "3.01 kB" in problem.message
    assert "`w/model.bin` (3 kB)" in problem.hint


def test_the_walk_is_given_up_far_beyond_the_limit(write, root: Path) -> None:
    write({f"{folder}/{n}": "" for folder in range(30) for n in range(10)})
    found = select(root, limits=Limits(files=10))
    assert len(found.files) < 60
    assert "more than" in found.problems[0].message


def test_excluded_is_folded(write, root: Path) -> None:
    write({f"logs/{n}.log": "12" for n in range(500)} | {".gitignore": "*.log\nd[0-9]*/\n"})
    write({f"d{n}/x": "1" for n in range(300)} | {f"p{n}/__pycache__/x.pyc": "1" for n in range(40)})
    rows = select(root).excluded
    assert len(rows) == 100
    assert (rows[0].path, rows[0].size, rows[0].count) == ("logs/*", 1000, 500)
    assert rows[-1].path == "…"
    assert sum(row.count for row in rows) == 500 + 300 + 40
    assert [row.size for row in rows[:-1]] == sorted((row.size for row in rows[:-1]), reverse=True)


def test_huge_excluded_folders_are_not_measured_to_the_end(
    write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paijupyter.package.excluded._MEASURED_IN_ONE", 10)
    write({f"data/{n}": "1" for n in range(50)} | {".paiignore": "data/\nfew/\n", "few/a": "1"})
    rows = {row.path: row for row in select(root).excluded}
    assert (rows["data/"].size, rows["data/"].at_least) == (10, True)
    assert (rows["few/"].size, rows["few/"].at_least) == (1, False)


def test_many_problems_of_a_kind_are_folded(root: Path) -> None:
    for number in range(30):
        (root / f"l{number}").symlink_to("/etc/passwd")
    problems = select(root).problems
    assert len(problems) == 21
    assert "10 more" in problems[-1].message
