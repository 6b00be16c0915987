"""Declared outputs come back, and nothing else does (P7, O15)."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paijupyter.runtime.outputs import glob_expression


def below(folder) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("end", ["exit 0", "exit 3"])
def test_globs_are_collected_also_after_a_failure(task, end):
    task.spec["outputs"] = ["model.npz", "checkpoints/**", "*.csv", "plots"]
    task.package({"in.csv": "1", "keep.csv": "1"})
    task.run(
        "echo m > model.npz; mkdir -p checkpoints/a/b plots/x\n"
        "echo 1 > checkpoints/1; echo 2 > checkpoints/a/b/2\n"
        "echo p > plots/x/p.png; echo new > out.csv; echo 2 > keep.csv; echo other > other.txt\n" + end
    )
    assert below(task.output) == [
        "checkpoints/1",
        "checkpoints/a/b/2",
        "keep.csv",
        "model.npz",
        "out.csv",
        "plots/x/p.png",
    ], "in.csv came with the package and was not touched"
    assert task.log == ""


def test_what_the_task_put_there_itself_is_not_missed(task):
    """Declared, and written to ``$PAI_OUTPUT_DIR``: it comes home, so nothing is to be said."""
    task.spec["outputs"] = ["model.npz", "plots", "other"]
    task.run('cd "$PAI_OUTPUT_DIR"; mkdir plots; echo m > model.npz; echo > plots/a')
    assert below(task.output) == ["model.npz", "plots/a"]
    assert task.log == "[paijupyter] The output `other` matched no file.\n"


def test_what_is_not_there_is_said(task):
    task.spec["outputs"] = ["model.npz"]
    record = task.run("true")
    assert (record["reason"], record["lastLines"]) == ("", []), "the last words are the command's"
    assert task.log == "[paijupyter] The output `model.npz` matched no file.\n"


def test_no_link_leads_out(task):
    secret = task.home / "secret"
    secret.write_text("secret")
    (task.home / "folder").mkdir()
    (task.home / "folder" / "x").write_text("x")
    task.spec["outputs"] = ["**"]
    task.run(
        f"ln -s {secret} out.txt; ln -s {task.home}/folder out; mkdir step-1; echo w > step-1/w\n"
        "ln -s step-1 latest; ln -s step-1/w weights; mkfifo pipe"
    )
    assert below(task.output) == ["step-1/w", "weights"]
    assert os.readlink(task.output / "latest") == "step-1"
    assert not (task.output / "weights").is_symlink()
    assert (task.output / "weights").read_text() == "w\n"
    assert "The output `out.txt` is a link that leads out of the package folder; it is left out." in task.log
    assert "The output `out` is a link that leads out of the package folder; it is left out." in task.log
    assert "The output `pipe` is not a file; it is left out." in task.log
    assert secret.read_text() == "secret"


def test_a_link_in_the_output_folder_is_not_followed(task):
    outside = task.home / "outside"
    outside.mkdir()
    task.spec["outputs"] = ["a/x"]
    task.run(f'mkdir a; echo x > a/x; ln -s {outside} "$PAI_OUTPUT_DIR/a"')
    assert os.listdir(outside) == []
    assert "The output `a/x` would leave the output folder; it is left out." in task.log


def test_what_the_task_wrote_there_itself_stays(task):
    task.spec["outputs"] = ["model"]
    task.run('echo collected > model; echo mine > "$PAI_OUTPUT_DIR/mine"')
    assert below(task.output) == ["mine", "model"]


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("model.npz", ["model.npz", "model.npz/part"], ["amodel.npz", "a/model.npz", "model_npz"]),
        ("./out/", ["out/a", "out/a/b", "out"], ["output", "x/out/a"]),
        ("*.pt", ["a.pt", ".pt"], ["a/b.pt", "a.ptx"]),
        ("**/*.pt", ["a.pt", "a/b.pt", "a/b/c.pt"], ["a.px"]),
        ("ck/**", ["ck/a", "ck/a/b"], ["ckx/a"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["az", "a/b"]),
        ("step-?", ["step-1", "step-1/w"], ["step-10", "step-/"]),
        ("[ab]*.t", ["a.t", "bc.t"], ["c.t", "[ab].t"]),
        ("[!a].t", ["b.t"], ["a.t", "/.t"]),
        ("[x", ["[x"], ["x"]),
        ("[a-c].t", ["b.t"], ["d.t", "-.t"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("[c-a]x", [], ["bx", "c", "x", "-x"]),
        ("[!c-a]x", ["bx"], ["x", "/x"]),
        ("[[-?]", [], ["[", "-", "?"]),
        ("[\\]", ["\\"], ["a"]),
        ("a+b(c)", ["a+b(c)"], ["aab(c)"]),
        ("**", ["a", "a/b"], []),
    ],
)
def test_globs(pattern, matching, other):
    expression = glob_expression(pattern)
    assert [name for name in matching if not expression.match(name.encode())] == []
    assert [name for name in other if expression.match(name.encode())] == []


@example("[[-?]", "a")
@given(st.text("ab*?[]!^-\\/.", max_size=12), st.text("ab/", max_size=8))
def test_any_pattern_compiles(pattern, name):
    glob_expression(pattern).match(name.encode())
