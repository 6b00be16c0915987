"""The wheel as a user gets it, built from a copy of the sources."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_COPIED = (
    *(".git", ".venv*", "node_modules", "lib", "_build", "screenshots", "__pycache__"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"),
)

pytestmark = [pytest.mark.services, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of a copy of the sources; the front end is built with it unless it is there already."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "sources"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = folder.glob("*.whl")
    return found


def test_it_is_small_and_has_no_sources_of_the_front_end(wheel: Path) -> None:
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        size = sum(each.file_size for each in archive.infolist())
    assert any("data/share/jupyter/labextensions/paijupyter/package.json" in name for name in names)
    assert any("etc/jupyter/jupyter_server_config.d" in name for name in names)
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".tsx"))]
    assert size < 15_000_000
