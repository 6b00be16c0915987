"""The wheel as a user gets it, built from a copy of the sources, and at work where there is no Node."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.lab import Lab, Server, page_on, started_browser
from tests.bundle import entry_files, gzipped
from tests.home import places

ROOT = Path(__file__).parents[2]
# As it was when the tests were collected: each test has a home of its own.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paijupyter-tests"
TOOLS = ("bash", "env", "grep", "cat", "uname", "sh")
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


def test_a_start_waits_for_little_and_the_rest_comes_later(wheel: Path, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (file,) = tmp_path.glob("*.data/data/share/jupyter/labextensions/paijupyter/package.json")
    every = [each for each in (file.parent / "static").glob("*.js") if "third-party" not in each.name]
    assert gzipped(entry_files(file.parent)) < 10_000
    assert 20_000 < gzipped(every) < 120_000


@pytest.fixture
def jp_asyncio_loop() -> None:
    """Leave the loop alone: the browser's driver runs one in this thread, and this fixture would close it."""


@pytest.fixture
def jp_server_cleanup() -> None:
    """Nothing to clean up: the server is a process of its own."""


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """Return the interpreter of an environment with the wheel and JupyterLab.

    What the wheel needs is installed once, outside of the tree; the wheel itself each time.
    """
    folder = CACHE / f"wheel-py{sys.version_info[0]}.{sys.version_info[1]}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        wanted = [python, "-m", "pip", "install", "-q", f"{wheel}[lab]"]
        done = subprocess.run(wanted, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"JupyterLab cannot be installed: {done.stderr.strip()[-200:]}")
        (folder / "done").touch()
    again = [python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", wheel]
    subprocess.run(again, check=True, capture_output=True)
    return python


@pytest.fixture
def environment(python: Path, isolated_home: Path) -> dict[str, str]:
    """Return variables that lead to no Node and to none of the packages of the tests."""
    tools = isolated_home / "tools"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(str(shutil.which(name)))
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TZ")}
    path = os.pathsep.join([str(python.parent), str(tools)])
    assert shutil.which("node", path=path) is None
    return {**kept, **places(isolated_home), "PATH": path}


def test_it_is_listed_and_the_binder_accepts_it(python: Path, environment: dict[str, str]) -> None:
    listing = [python.parent / "jupyter", "labextension", "list"]
    done = subprocess.run(listing, env=environment, capture_output=True, text=True, check=True)
    assert re.search(r"paijupyter v\S+ .*enabled.*OK", done.stdout + done.stderr)
    script = ["bash", ROOT / "binder" / "postBuild"]
    done = subprocess.run(script, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def lab(python: Path, environment: dict[str, str], isolated_home: Path) -> Iterator[Lab]:
    """Start JupyterLab from the environment of the wheel, and a page of a browser on it."""
    server = Server(isolated_home, environment, python)
    with started_browser() as browser:
        server.start()
        try:
            with page_on(browser, server) as lab:
                yield lab
        finally:
            server.stop()


def test_a_cell_becomes_a_job_with_a_live_card(lab: Lab) -> None:
    """`pip install` is all: page, server part and magic of the wheel work together."""
    lab.notebook("first.ipynb", "%load_ext paijupyter", "%%paijob --name first\nprint('of the wheel')")
    lab.open("first.ipynb")
    lab.select_first_cell()
    lab.run_cells(2)
    lab.wait_state(lab.card(), "succeeded", seconds=120)
    lab.card().get_by_role("button", name="Logs", exact=True).click()
    lab.page.locator(".jp-PaiLog-row", has_text="of the wheel").first.wait_for()
    lab.shoot("wheel-light")
