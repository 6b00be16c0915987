"""``binder/`` by repo2docker's rules, as far as they can be held without building an image."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[2]
BINDER = ROOT / "binder"
# What repo2docker 2025 understands; a file of another name would be passed over without a word.
KNOWN = {
    *("Dockerfile", "Pipfile", "Pipfile.lock", "Project.toml", "REQUIRE", "apt.txt", "default.nix"),
    *("environment.yml", "install.R", "postBuild", "requirements.txt", "runtime.txt", "start"),
}
DEFAULT_PYTHON = Version("3.10")  # where no runtime.txt names another


def test_every_file_is_one_that_repo2docker_reads() -> None:
    assert {path.name for path in BINDER.iterdir()} - {"README.md"} <= KNOWN
    # A folder `binder` hides the files of these names at the root, so none may be there.
    assert not [name for name in KNOWN if (ROOT / name).exists()]
    assert not (ROOT / ".binder").exists()


def test_requirements_are_read_and_name_extras_that_exist() -> None:
    """They are installed from the root of the repository, by its default Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line.split("#")[0].strip() for line in (BINDER / "requirements.txt").read_text().splitlines()]
    for line in filter(None, lines):
        match = re.fullmatch(r"-e \.\[(?P<extras>[a-z0-9,]+)\]", line)
        if match is None:
            Requirement(line)
        else:
            assert set(match["extras"].split(",")) <= set(project["optional-dependencies"])
    assert any(line.startswith("-e .") for line in lines)
    assert "lab" in lines[0] and "examples" in lines[0]
    assert Requirement(f"python{project['requires-python']}").specifier.contains(DEFAULT_PYTHON)


def test_post_build_can_be_run_and_finds_both_parts() -> None:
    script = BINDER / "postBuild"
    assert script.stat().st_mode & stat.S_IXUSR
    assert script.read_text().startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_the_notebooks_it_opens_are_there() -> None:
    assert "notebooks/" in (BINDER / "README.md").read_text()
    assert (ROOT / "notebooks" / "quickstart.ipynb").exists() and os.access(ROOT / "notebooks", os.R_OK)
