"""Ignore files mean what git means by them (architecture, "Who packages"), asked of the real git."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paijupyter.package import select
from paijupyter.package.ignore_patterns import parse

FOLDERS = ("", "a/", "a/b/", "a/b/.c/", "b/", "b/a b/", ".c/")
NAMES = ("a", "b.txt", "ab", ".c.txt", "a b", "bé", "x[a]", "-", "aab.py")
FILES = [folder + name for folder in FOLDERS for name in NAMES if folder + name + "/" not in FOLDERS]

# fmt: off
PIECES = (
    "a", "b", "c", ".txt", ".", "*", "**", "?", "/", "[ab]", "[!a]", "[^b-]", "[a-c]",
    "[[:alpha:]]", "[]a]", "[", "]", r"\*", "\\", "é", "x", "-", "[[:x:]]", "[[:punct:]a]", r"[\a]",
    r"[a\-c]", " ", r"\ ",
)
PLAUSIBLE = (
    "a", "/a", "a/", "!a", "!a/", "*.txt", "!*.txt", "b*", "!b*", "a/b", "!a/b", "/*", "!/a",
    "**/b", "a/**", "!a/b/.c/", ".*", "!.c", "*", "!*/", "!*.py", "a/*", "!a/b.txt", "**/a b/",
    "# no", "", "a/**/b.txt",
)
# fmt: on
piece = st.sampled_from(PIECES)
pattern = st.builds(
    lambda sign, slash, pieces, end: sign + slash + "".join(pieces) + end,
    st.sampled_from(["", "", "", "!", "\\!", "#"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.lists(piece, min_size=1, max_size=5),
    st.sampled_from(["", "", "/", "/**", " ", "\r", "/*"]),
)
plausible = st.sampled_from(PLAUSIBLE)
ignore_file = st.lists(st.one_of(plausible, plausible, pattern), max_size=6).map("\n".join)


@pytest.fixture(scope="module")
def repository() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="pj"))
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    yield root
    shutil.rmtree(root)


def not_ignored_by_git(root: Path, below: str = "") -> set[str]:
    command = ["git", "ls-files", "--others", "--exclude-per-directory=.gitignore", "-z"]
    output = subprocess.run(command, cwd=root / below, check=True, capture_output=True).stdout
    return {os.fsdecode(name) for name in output.split(b"\0") if name}


def ours(root: Path) -> set[str]:
    return {file.path for file in select(root).files}


def put_ignore_files(root: Path, files: dict[str, str], name: str = ".gitignore") -> None:
    for folder in FOLDERS:
        path = root / folder / name
        path.unlink(missing_ok=True)
        if folder in files:
            path.write_bytes(files[folder].encode())


@settings(max_examples=100, deadline=None)
@given(line=pattern)
def test_one_pattern_as_git(repository: Path, line: str) -> None:
    put_ignore_files(repository, {"": line})
    assert ours(repository) == not_ignored_by_git(repository)


@settings(max_examples=100, deadline=None)
@given(files=st.dictionaries(st.sampled_from(FOLDERS), ignore_file))
def test_nested_files_and_negations_as_git(repository: Path, files: dict[str, str]) -> None:
    put_ignore_files(repository, files)
    assert ours(repository) == not_ignored_by_git(repository)


@settings(max_examples=30, deadline=None)
@given(
    files=st.dictionaries(st.sampled_from(FOLDERS), ignore_file),
    root=st.sampled_from(["a", "a/b", "b/a b"]),
)
def test_files_from_the_git_root_down(repository: Path, files: dict[str, str], root: str) -> None:
    """A root below the git root is asked for by name, so only what lies in it is decided."""
    put_ignore_files(repository, files)
    everything = not_ignored_by_git(repository)
    selected = ours(repository / root)
    if any(name.startswith(f"{root}/") for name in everything):
        assert selected == {
            name.removeprefix(f"{root}/") for name in everything if name.startswith(f"{root}/")
        }


@settings(max_examples=40, deadline=None)
@given(
    git=st.dictionaries(st.sampled_from(FOLDERS), ignore_file),
    ours_=st.dictionaries(st.sampled_from(FOLDERS), ignore_file),
)
def test_paiignore_comes_after_gitignore_of_the_same_folder(
    repository: Path, git: dict[str, str], ours_: dict[str, str]
) -> None:
    merged = {folder: "\n".join((git.get(folder, ""), ours_.get(folder, ""))) for folder in FOLDERS}
    put_ignore_files(repository, merged)
    expected = not_ignored_by_git(repository) - {f"{folder}.gitignore" for folder in FOLDERS}
    put_ignore_files(repository, git)
    put_ignore_files(repository, ours_, ".paiignore")
    try:
        found = {name for name in ours(repository) if not name.endswith((".gitignore", ".paiignore"))}
    finally:
        put_ignore_files(repository, {}, ".paiignore")
    assert found == expected


def test_an_ignored_folder_is_not_looked_into(write, root: Path) -> None:
    write({".gitignore": "data/\n!data/keep.txt\n", "data/keep.txt": "x", "data/.gitignore": "!*"})
    assert ours(root) == {".gitignore"}


def test_a_negation_of_a_folder_does_not_free_what_is_ignored_in_it(write, root: Path) -> None:
    """The case where a matcher without the walk differs from git."""
    write({".gitignore": "*.txt\n", "foo/.gitignore": "!bar\n", "foo/bar/x.txt": "", "foo/bar/y.py": ""})
    assert ours(root) == {".gitignore", "foo/.gitignore", "foo/bar/y.py"}


def test_reason_names_the_ignore_file(write, root: Path) -> None:
    write({"../.gitignore": "*.log\n", "../.git/HEAD": "", ".paiignore": "big/\n", "big/x": "12345"})
    write({"sub/.gitignore": "z*\n", "sub/z1": "1", "sub/z2": "22", "a.log": "123"})
    excluded = {row.path: row for row in select(root).excluded}
    assert excluded["a.log"].reason == "../.gitignore"
    assert (excluded["big/"].reason, excluded["big/"].size) == (".paiignore", 5)
    folded = excluded["sub/*"]
    assert (folded.reason, folded.size, folded.count) == ("sub/.gitignore", 3, 2)


@pytest.mark.parametrize("kind", ["link", "folder", "unreadable", "pipe"])
def test_an_ignore_file_that_is_none_says_nothing(write, root: Path, kind: str) -> None:
    write({"a.txt": "", "rules": "*"})
    place = root / ".gitignore"
    if kind == "link":
        place.symlink_to("rules")
    elif kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.write_text("*")
        place.chmod(0)
        if os.access(place, os.R_OK):
            pytest.skip("root may read everything")
    assert {"a.txt", "rules"} <= ours(root)


def test_byte_order_mark_and_line_ends() -> None:
    found = parse(b"\xef\xbb\xbfa\r\n# c\nb  \n\\ \n")
    assert [(p.literal, p.regex) for p in found] == [("a", ""), ("b", ""), (None, "\\ ")]
