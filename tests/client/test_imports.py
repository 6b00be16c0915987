"""Imports that no requirement covers, and a Python that differs, are in the plan (P13, issue 4)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paijupyter import paths
from paijupyter.client import environments, imports, submission
from paijupyter.client.environments import Environment
from paijupyter.client.imports import imported
from paijupyter.client.options import parse_verb
from paijupyter.client.sources import Origin
from paijupyter.package import LocalStore, snapshot
from paijupyter.protocol import read

HAS = Environment(
    "3.11.7",
    frozenset({"os", "sys", "json"}),
    {
        "numpy": ["numpy"],
        "sklearn": ["scikit-learn"],
        "yaml": ["pyyaml"],
        "scipy": ["scipy"],
        "ns": ["a", "b"],
    },
    {
        "numpy": ("numpy", "2.1.0"),
        "scikit-learn": ("scikit-learn", "1.5"),
        "pyyaml": ("PyYAML", "6.0"),
        "scipy": ("scipy", "1.14"),
        "a": ("a", "1"),
        "b": ("b", "2"),
    },
    {"scikit-learn": ["scipy", "joblib"], "scipy": ["numpy"]},
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a, b.c as d\nfrom e.f import g", {"a": True, "b": True, "e": True}),
        ("from . import a\nfrom .b import c\nfrom .. import d", {}),
        ("def f():\n    import a\nclass C:\n    from b import c", {"a": False, "b": False}),
        (
            "try:\n    import a\nexcept ImportError:\n    import b\nelse:\n    import c",
            {"a": False, "c": True},
        ),
        (
            "import typing as t\nif t.TYPE_CHECKING:\n    import a\nelse:\n    import b",
            {"typing": True, "b": True},
        ),
        ("if x:\n    import a\nimport a", {"a": True}),
        ("with x:\n    import a\nfor i in x:\n    import b", {"a": True, "b": False}),
        ("not python at all", {}),
        ("x = '\\d'", {}),
    ],
)
def test_imports_of_a_file(text: str, found: dict[str, bool]) -> None:
    assert imported(text.encode()) == found


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_file_ends_in_a_traceback(source: bytes) -> None:
    imported(source)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(
        "import os, numpy, sklearn.svm, helper, yaml, nowhere\nfrom ns.x import y\n"
    )
    (root / "helper.py").write_text("def f():\n    import perhaps\n")
    return root


def look(root: Path, file: str | None = None, **generated: bytes) -> dict[str, imports.Uncovered]:
    extra = {f"{name}.py": text for name, text in generated.items()}
    found = snapshot(root, LocalStore(paths.data_dir()), extra_files=extra)
    return {each.module: each for each in imports.look(root, found.manifest, extra, file, HAS)}


def test_what_no_requirement_covers_comes_with_its_distribution(package: Path) -> None:
    found = look(package)
    assert list(found) == ["nowhere", "ns", "numpy", "perhaps", "sklearn", "yaml"]
    assert (found["yaml"].distribution, found["yaml"].version) == ("PyYAML", "6.0")
    assert (found["nowhere"].distribution, found["nowhere"].needed) == ("", True)
    assert (found["perhaps"].file, found["perhaps"].needed) == ("helper.py", False)
    hint, warning = imports.problems(list(found.values()))
    assert (hint.severity, hint.code) == ("hint", "import-without-requirement")
    assert hint.hint == "Add to requirements.txt: a numpy scikit-learn PyYAML"
    assert "`sklearn` (scikit-learn 1.5)" in hint.message
    assert (warning.severity, warning.message) == (
        "warning",
        "Imports that this Python does not have, and no requirement: `nowhere` (train.py).",
    )


def test_requirements_cover_what_they_require_themselves(package: Path) -> None:
    """scikit-learn brings scipy, which brings numpy; names are compared as pip does."""
    (package / "requirements.txt").write_text("Scikit_Learn>=1.0  # svm\n-r more.txt\n--no-binary :all:\n")
    (package / "more.txt").write_text(
        "pyyaml\n-r requirements.txt\nnowhere @ https://example.org/x.whl\nb[x]==1\n"
    )
    assert list(look(package)) == ["perhaps"]
    (package / "few.txt").write_text("pyyaml\n")
    assert "numpy" in look(package, "few.txt")


def test_generated_files_count_and_modules_of_the_package_do_not(package: Path) -> None:
    (package / "lib").mkdir()
    (package / "lib" / "mine.py").write_text("")
    found = look(package, cell=b"import mine, lib, scipy, pai_tasks, paijupyter.tasks")
    assert found["scipy"].file == "cell.py"
    assert not {"mine", "lib", "pai_tasks", "paijupyter"} & found.keys()


def test_only_changed_files_are_parsed(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look(package)
    parsed: list[bytes] = []
    monkeypatch.setattr(imports, "imported", lambda source: parsed.append(source) or {})
    look(package)
    assert parsed == []
    (package / "helper.py").write_text("import scipy")
    look(package)
    assert parsed == [b"import scipy"]


def test_an_interpreter_is_asked_once_until_something_is_installed(tmp_path: Path) -> None:
    """Its own modules, its own version, in a process of its own; a change of its folders asks again."""
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = str(environment / "bin" / "python")
    assert environments.known(python) is None
    first = environments.ask(python)
    assert first is not None
    assert first.version == "{}.{}.{}".format(*sys.version_info[:3])
    assert {"os", "json", "tomllib"} - {"tomllib"} <= first.standard
    assert "odd" not in first.modules
    assert environments.known(python) == first
    [site] = environment.glob("lib/python*/site-packages")
    info = site / "Odd_Name-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Name: Odd_Name\nVersion: 1.0\nRequires-Dist: b>=1\nRequires-Dist: c; extra == 'x'\n"
    )
    (info / "RECORD").write_text(
        "odd/__init__.py,,\nodd_single.py,,\nOdd_Name-1.0.dist-info/METADATA,,\n../../bin/odd,,\n"
    )
    assert environments.known(python) is None
    again = environments.ask(python)
    assert again is not None
    assert (again.modules["odd"], again.modules["odd_single"]) == (["odd-name"], ["odd-name"])
    assert "bin" not in again.modules
    assert again.versions["odd-name"] == ("Odd_Name", "1.0")
    assert again.requires["odd-name"] == ["b"]


@pytest.mark.parametrize("text", ["", "{}", '{"format": 1}', "[]", '{"format": 0, "places": {}}'])
def test_a_broken_answer_is_none(text: str) -> None:
    file = environments._file(sys.executable)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert environments.known(sys.executable) is None


def test_an_interpreter_that_does_not_answer_is_no_error(tmp_path: Path) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexit 1\n")
    silent.chmod(0o755)
    assert environments.ask(str(silent)) is None
    assert environments.ask(str(tmp_path / "none")) is None


class Client:
    """Plans as the engine does, on this machine or on a cluster."""

    def __init__(self, kind: str = "process") -> None:
        self.kind = kind

    def plan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        objects = [{"kind": self.kind, "name": "worker-0"}]
        return {
            "ok": True,
            "name": "x",
            "problems": [],
            "objects": objects,
            "submittedDocument": request["document"],
        }

    def submit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"id": "1", "name": "x", "state": "waiting"}

    list = stop = None


def prepared(root: Path, *words: str, body: str | None = None) -> submission.Submission:
    surface = "cli" if body is None else "magic"
    origin = Origin(surface, root, sys.executable)
    return submission.prepare(parse_verb("plan", words, surface), origin, body)


def codes(plan: Mapping[str, Any]) -> set[str]:
    return {each["code"] for each in plan["problems"]}


def test_a_plan_lists_them_for_one_click(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import hypothesis, does_not_exist_anywhere\n")
    plan = submission.plan(Client(), prepared(tmp_path, "train.py"))  # type: ignore[arg-type]
    assert [(each["module"], each["distribution"]) for each in plan["imports"]] == [
        ("does_not_exist_anywhere", ""),
        ("hypothesis", "hypothesis"),
    ]
    assert codes(plan) == {"import-without-requirement", "import-not-found"}
    assert plan["ok"]
    assert json.dumps(plan)


def test_a_cell_is_looked_at_as_a_file_is(tmp_path: Path) -> None:
    plan = submission.plan(Client(), prepared(tmp_path, body="import hypothesis\n"))  # type: ignore[arg-type]
    assert [each["file"] for each in plan["imports"]] == [".paijob/cell.py"]


def test_a_submission_on_this_machine_says_only_what_will_fail(tmp_path: Path) -> None:
    """Its tasks run with the very Python that has them."""
    (tmp_path / "train.py").write_text("import hypothesis, does_not_exist_anywhere\n")
    submission.plan(Client(), prepared(tmp_path, "train.py"))  # type: ignore[arg-type]
    found = prepared(tmp_path, "train.py")
    assert found.beside is not None
    found.beside._thread.join()
    done = submission.submit(Client(), found)  # type: ignore[arg-type]
    assert codes(done.plan) == {"import-not-found"}


def test_a_submission_does_not_wait_for_an_interpreter_that_thinks(
    tmp_path: Path, until: Any, isolated_home: Path
) -> None:
    """The answer is there for the next one."""
    (tmp_path / "train.py").write_text("import does_not_exist_anywhere\n")
    gate = isolated_home / "gate"
    slow = isolated_home / "slow"
    slow.write_text(f'#!/bin/sh\nuntil test -e {gate}; do sleep 0.02; done\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    origin = Origin("cli", tmp_path, str(slow))
    found = submission.prepare(parse_verb("submit", ["train.py"], "cli"), origin)
    assert codes(submission.submit(Client(), found).plan) == set()  # type: ignore[arg-type]
    gate.touch()
    until(lambda: environments.known(str(slow)))


def test_a_python_that_differs_is_said(tmp_path: Path) -> None:
    """Only where the image is used: a local job runs with the kernel's own interpreter."""
    (tmp_path / "train.py").write_text("pass\n")
    ours = "{}.{}".format(*sys.version_info[:2])
    other = f"3.{sys.version_info[1] + 1}"
    for kind, image, said in (
        ("Job", f"python:{other}-slim", True),
        ("Job", f"registry.example.org/python:{other}", True),
        ("Job", f"python:{ours}-slim", False),
        ("Job", "tensorflow:2", False),
        ("process", f"python:{other}-slim", False),
    ):
        found = prepared(tmp_path, "--image", image, "train.py")
        plan = submission.plan(Client(kind), found)  # type: ignore[arg-type]
        assert codes(plan) == ({"python-differs"} if said else set()), image
    message = next(each.message for each in _of(tmp_path, other))
    assert message == f"Image `python:{other}-slim` has Python {other}, and the code was written with {ours}."


def _of(folder: Path, version: str) -> list[Any]:
    from paijupyter.errors import Problem

    found = prepared(folder, "--image", f"python:{version}-slim", "train.py")
    return [Problem.from_json(each) for each in submission.plan(Client("Job"), found)["problems"]]  # type: ignore[arg-type]


def test_src_beside_notebooks_travels_with_the_folder_above(tmp_path: Path) -> None:
    """`--package ..`: the package is the project, and the cell finds its modules there."""
    notebooks, src = tmp_path / "notebooks", tmp_path / "src"
    notebooks.mkdir()
    src.mkdir()
    (src / "model.py").write_text("def build(): return 42\n")
    (notebooks / "train.ipynb").write_text(
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    origin = Origin("magic", notebooks, sys.executable, notebooks / "train.ipynb")
    words = ["--package", "..", "--env", "PYTHONPATH=src"]
    body = "import model\nfrom src.model import build\nprint(build())\n"
    found = submission.prepare(parse_verb("submit", words, "magic"), origin, body)
    manifest = LocalStore(paths.data_dir()).manifest(str(found.request["package"]))
    assert {"src/model.py", "notebooks/train.ipynb", ".paijob/cell.py"} <= {
        each.path for each in manifest.entries
    }
    extras = read(found.request["document"]).data["extras"]["paijupyter"]
    assert extras["notebook"]["path"] == "notebooks/train.ipynb"
    plan = submission.plan(Client(), found)  # type: ignore[arg-type]
    assert (plan["imports"], codes(plan)) == ([], set())
