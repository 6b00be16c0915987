"""A folder's ``.paijupyter.yaml`` chooses a profile and defaults, never an endpoint or a credential."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter.client.folder import find, read, with_defaults
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.client.submission import prepare
from paijupyter.errors import PaiJupyterError, UsageProblem
from paijupyter.protocol import read as read_document

FILE = """\
profile: team
defaults:
  role: worker:2
  mem: 2Gi
  time-limit: 2h
  param: {epochs: 20, tag: "3"}
  env: [A=1, B=2]
  secret: {HF_TOKEN: "keyring:hf"}
"""


def options(*words: str) -> Namespace:
    return parse_verb("submit", words, "cli")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".paijupyter.yaml").write_text(FILE)
    return tmp_path


def test_defaults_are_taken_where_the_options_say_nothing(folder):
    filled, (hint,) = with_defaults(options("--command", "true"), folder)
    assert filled.profile == "team" and filled.role == ["worker:2"] and filled.mem == "2Gi"
    assert filled.param == ["epochs=20", 'tag="3"'] and filled.secret == ["HF_TOKEN=keyring:hf"]
    assert hint.severity == "hint" and "profile team, --role worker:2" in hint.message


def test_options_go_before_defaults_name_by_name(folder):
    given = options("--profile", "local", "--param", "epochs=1", "-e", "B=9", "--secret", "HF_TOKEN=ask")
    filled, _ = with_defaults(given, folder)
    assert filled.profile == "local" and filled.secret == ["HF_TOKEN=ask"]
    assert filled.param == ['tag="3"', "epochs=1"] and filled.env == ["A=1", "B=9"]
    assert given.env == ["B=9"], "the options themselves do not change"
    filled, _ = with_defaults(options("--role", "a", "--role", "b"), folder)
    assert (filled.role, filled.mem) == (["a", "b"], None), "--mem is for a job of one role"


def test_a_written_document_has_them(folder):
    prepared = prepare(options("--name", "x", "--command", "echo $HF_TOKEN"), Origin("cli", folder))
    document = read_document(prepared.request["document"])
    assert prepared.request["profile"] == "team"
    assert document.data["parameters"] == {"epochs": 20, "tag": "3"}
    assert document.data["taskRoles"]["worker"]["resourcePerInstance"]["memoryMB"] == 2048
    assert [each.text for each in prepared.secrets] == ["keyring:hf"]
    assert "folder-defaults" in [each.code for each in prepared.problems]


def test_a_whole_document_gets_profile_parameters_and_the_secrets_that_it_names(folder):
    text = "protocolVersion: 2\nname: x\ntype: job\ntaskRoles: {}\nsecrets: {OTHER: ''}\n"
    filled, _ = with_defaults(options("-f", "job.yaml"), folder, document=lambda: text)
    assert filled.profile == "team" and filled.secret == [] and filled.role == [] and filled.env == []
    filled, _ = with_defaults(options(), folder, document=lambda: text.replace("OTHER", "HF_TOKEN"))
    assert filled.secret == ["HF_TOKEN=keyring:hf"]


def test_the_nearest_file_counts_up_to_the_root_of_the_repository(tmp_path):
    deep = tmp_path / "repo" / "notebooks" / "a"
    deep.mkdir(parents=True)
    (tmp_path / ".paijupyter.yaml").write_text("profile: outside")
    assert find(deep) is None, "without a repository only the folder itself counts"
    (tmp_path / "repo" / ".git").mkdir()
    assert find(deep) is None
    (tmp_path / "repo" / ".paijupyter.yaml").write_text("profile: root\ndefaults: {package: src}")
    found = find(deep)
    assert found.profile == "root" and found.options["package"] == [str(tmp_path / "repo" / "src")]
    (deep / ".paijupyter.yaml").write_text("profile: near")
    assert find(deep).profile == "near"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("profiles: {x: {kind: local}}", "sets `profiles`, which is not for a folder to say"),
        ("url: https://host", "sets `url`"),
        ("token: hunter2", "sets `token`"),
        ("profile: {kind: local, token: hunter2}", "`profile` to something that is no name"),
        ("defaults: {command: rm}", "sets `command`"),
        ("defaults: {file: other.yaml}", "sets `file`"),
        ("defaults: {secret: {HF: hunter2}}", "needs a reference, not a value"),
        ("defaults: {secret: HF=hunter2}", "needs a reference, not a value"),
        ("defaults: {env: {HF_TOKEN: hunter2}}", "has a credential in `env: HF_TOKEN`"),
        ("defaults: {env: [HF_TOKEN=hunter2]}", "has a credential in `env: HF_TOKEN`"),
        ("defaults: {param: {password: hunter2}}", "has a credential in `param: password`"),
        ("defaults: {image: 'https://me:hunter2@registry/x'}", "has a credential in `image`"),
        ("defaults: {package: /}", "sets `package` to a folder elsewhere"),
        ("defaults: {package: ~/x}", "sets `package` to a folder elsewhere"),
        ("defaults: {role: {a: [1]}}", "neither a text nor a number"),
        ("defaults: 3", "no mapping of options"),
        ("[1]", "is not a mapping"),
        ("profile: [", "is not valid YAML in line 1"),
        ("#" * 70000, "is larger than 64 KiB"),
    ],
)
def test_what_a_folder_may_not_say_is_one_clear_sentence(tmp_path, text, said):
    (tmp_path / ".paijupyter.yaml").write_text(text)
    with pytest.raises(UsageProblem) as refused:
        find(tmp_path)
    assert said in refused.value.message and "hunter2" not in str(refused.value)
    assert refused.value.message.startswith("File `")


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("f") / ".paijupyter.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        read(file)
    except PaiJupyterError as error:
        assert str(file) in error.message
