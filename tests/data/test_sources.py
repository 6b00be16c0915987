"""Data sources as words and documents: O18's rule of names, and what is refused. Property tests."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.errors import UsageProblem
from paijupyter.protocol import JobOptions, build_document, check, read, write
from paijupyter.protocol.data import (
    DataSource,
    has_password,
    kind_of,
    parse_data,
    place_of,
    shown,
    source_of,
    sources_of,
    wrong,
)

_SEGMENT = st.text(
    st.characters(codec="utf-8", exclude_characters="/\\%?#,"), min_size=1, max_size=20
).filter(
    lambda text: (
        text not in (".", "..") and text.isprintable() and ":" not in text and not text.endswith(".git")
    )
)


@pytest.mark.parametrize(
    ("uri", "kind", "base"),
    [
        ("/foo/bar", "file", "bar"),
        ("/foo/bar/", "file", "bar"),
        ("train.csv", "file", "train.csv"),
        ("file:///foo/a%20b", "file", "a b"),
        (".", "file", "x"),
        ("https://h/d/train.csv?version=2#top", "http", "train.csv"),
        ("http://h", "http", "x"),
        ("http://h/%2e%2e", "http", "x"),
        ("http://h/a%2Fb", "http", "b"),
        ("https://h/team/repo.git", "git", "repo"),
        ("git@host:team/repo.git", "git", "repo"),
        ("git+https://h/repo", "git", "repo"),
        ("s3://bucket/key/part=1", "object", "part=1"),
        ("webhdfs://h:9870/pai/mnist/", "webhdfs", "mnist"),
        ("storage://team/sets/mnist", "storage", "mnist"),
        ("storage://team", "storage", "x"),
        ("zenodo:12345", "zenodo", "12345"),
    ],
)
def test_kind_and_base_name(uri: str, kind: str, base: str) -> None:
    source = source_of({"name": "x", "uri": uri})
    assert source is not None
    assert (source.kind, source.base) == (kind, base)


@given(
    st.lists(_SEGMENT, min_size=1, max_size=5),
    st.sampled_from(["/", "s3://b/", "storage://t/", "webhdfs://h/"]),
)
def test_base_name_is_the_last_name_and_stays_below_its_folder(names: list[str], start: str) -> None:
    """O18: `/foo/bar` copied to `/pai_data/mydata` is read as `/pai_data/mydata/bar`."""
    source = source_of({"name": "mydata", "uri": start + "/".join(names), "path": "/pai_data/mydata"})
    assert source is not None
    assert source.base == names[-1]
    assert (
        posixpath.normpath(posixpath.join("/pai_data/mydata", source.base)) == f"/pai_data/mydata/{names[-1]}"
    )


@given(st.text(max_size=60))
def test_no_uri_gives_a_base_name_that_leads_elsewhere(uri: str) -> None:
    source = source_of({"name": "d", "uri": uri})
    if source is None:
        return
    assert source.base not in ("", ".", "..")
    assert "/" not in source.base and "\0" not in source.base


@given(st.text(max_size=40))
def test_no_accepted_path_leaves_its_root(path: str) -> None:
    source = DataSource("d", "http", "http://h/x", path=path)
    if list(wrong(source)):
        return
    place = posixpath.normpath(place_of(source, "/work", "/own"))
    assert place.startswith(("/work/", "/own/"))


@given(st.text(max_size=60))
def test_any_option_is_a_source_or_a_clean_refusal(text: str) -> None:
    try:
        source = parse_data(text)
    except UsageProblem as problem:
        assert problem.hint
        return
    assert source_of(source.to_json()) == source


def test_option_with_everything() -> None:
    found = parse_data(f"my-set=https://h/a,b?x=1,path=/pai_data/my,sha256={'ab' * 32},secret=TOKEN")
    assert found == DataSource(
        "my-set", "http", "https://h/a,b?x=1", path="/pai_data/my", sha256="ab" * 32, secret="TOKEN"
    )
    assert found.variable == "PAI_DATA_MY_SET"


@pytest.mark.parametrize(
    "uri",
    [
        "https://ann:hunter2@host/x",
        "https://ghp_hunter2@host/x.git",
        "webhdfs://ann:hunter2@host:9870/x",
        "s3://key:hunter2@bucket/x",
        "git+https://u:hunter2@h/x",
        "HTTP://u:hunter2@h/x",
    ],
)
def test_passwords_are_refused_and_never_repeated(uri: str) -> None:
    """O20: a secret stands in no document."""
    with pytest.raises(UsageProblem) as refused:
        parse_data(f"d={uri}")
    assert "hunter2" not in str(refused.value)
    assert "--secret" in refused.value.hint
    assert "hunter2" not in shown(uri)
    problems = check(read(_document([{"name": "d", "uri": uri}])))
    assert [problem.code for problem in problems if problem.severity == "error"] == ["data"]
    assert "hunter2" not in str(problems)


@pytest.mark.parametrize(
    "uri", ["git@host:x.git", "ssh://git@host/x.git", "webhdfs://ann@h:1/x", "http://h/a@b:c"]
)
def test_a_user_without_password_is_fine(uri: str) -> None:
    assert not has_password(uri)


def test_documents_are_checked() -> None:
    items = [
        {"name": "a", "uri": "/foo/bar", "path": "/pai_data/x"},
        {"name": "b", "uri": "http://h/bar", "path": "/pai_data/x/"},
        {"name": "A", "uri": "x"},
        {"name": "g", "uri": "x.git", "kind": "git", "sha256": "ab" * 32},
        {"name": "h", "uri": "http://h/x", "path": "../up"},
        {"name": "i", "uri": "http://h/x", "secret": "NONE"},
        {"name": "j", "uri": "http://h/x", "ref": "main"},
    ]
    found = {(problem.path, problem.line) for problem in check(read(_document(items)))}
    assert {path.removeprefix("/extras/paijupyter/data/") for path, _ in found} == {
        "1/path",  # the slash at the end makes no difference
        "2/name",
        "3/sha256",
        "4/path",
        "5/secret",
        "6/ref",
    }
    assert all(line for _, line in found)


def test_the_model_knows_the_members() -> None:
    for item in (
        {"name": "a b", "uri": "x"},
        {"name": "a"},
        {"name": "a", "uri": "x", "url": "y"},
        {"name": "a", "uri": 5},
    ):
        assert any(each.severity == "error" for each in check(read(_document([item]))))


def test_options_become_the_document() -> None:
    source = parse_data("d=http://h/x")
    document = build_document(JobOptions("j", ["true"], data=[source], storages=[{"name": "team"}]))
    assert document["extras"]["storages"] == [{"name": "team"}]
    assert sources_of(document) == [source]
    assert not [each for each in check(read(write(document))) if each.severity == "error"]
    assert kind_of("x") == "file"


def _document(items: list[dict[str, object]]) -> str:
    document = build_document(JobOptions("j", ["true"]))
    document["extras"]["paijupyter"]["data"] = items
    return write(document)
