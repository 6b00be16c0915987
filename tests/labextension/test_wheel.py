"""The wheel as a user gets it: built, installed into an environment without Node, listed and served."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# As it was when the tests were collected: each test has a home of its own.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paijupyter-tests"
NOT_COPIED = (
    *(".git", ".venv*", "node_modules", "lib", "_build", "screenshots", "__pycache__"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"),
)
TOOLS = ("bash", "env", "grep", "cat", "uname")
TOKEN = "a-token-for-tests"

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


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return an environment with the wheel and JupyterLab, and variables that lead to no Node.

    What the wheel needs is installed once, outside of the tree; the wheel itself each time.
    """
    folder = CACHE / f"wheel-py{sys.version_info[0]}.{sys.version_info[1]}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        wanted = f"{wheel}[lab,forms]"
        done = subprocess.run([python, "-m", "pip", "install", "-q", wanted], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"JupyterLab cannot be installed: {done.stderr.strip()[-200:]}")
        (folder / "done").touch()
    again = [python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", wheel]
    subprocess.run(again, check=True, capture_output=True)
    tools = tmp_path_factory.mktemp("tools")
    for name in TOOLS:
        (tools / name).symlink_to(str(shutil.which(name)))
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TZ")}
    environment = {**kept, "PATH": os.pathsep.join([str(folder / "bin"), str(tools)])}
    assert shutil.which("node", path=environment["PATH"]) is None
    return folder, environment


def settled(environment: dict[str, str]) -> dict[str, str]:
    """Add the places of this test's own home."""
    own = (
        "HOME",
        "PAIJUPYTER_DATA_DIR",
        "PAIJUPYTER_RUNTIME_DIR",
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_RUNTIME_DIR",
    )
    return {**environment, **{name: os.environ[name] for name in own}}


def test_it_is_small_and_has_no_sources_of_the_front_end(wheel: Path) -> None:
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        size = sum(each.file_size for each in archive.infolist())
    assert any("data/share/jupyter/labextensions/paijupyter/package.json" in name for name in names)
    assert any("etc/jupyter/jupyter_server_config.d" in name for name in names)
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".tsx"))]
    assert size < 15_000_000


def test_it_is_listed_without_node_and_the_binder_accepts_it(place: Any) -> None:
    folder, environment = place
    done = subprocess.run(
        [folder / "bin" / "jupyter", "labextension", "list"],
        env=settled(environment), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.search(r"paijupyter v\S+ .*enabled.*OK", done.stdout + done.stderr)
    script = ROOT / "binder" / "postBuild"
    done = subprocess.run(["bash", script], env=settled(environment), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def server(place: Any, isolated_home: Path, until: Callable[..., object]) -> Iterator[str]:
    """Start JupyterLab from the environment of the wheel."""
    folder, environment = place
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        *(folder / "bin" / "python", "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
        *(f"--port={port}", "--ServerApp.port_retries=0", "--LabApp.extension_manager=readonly"),
    ]
    with (isolated_home / "lab.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=isolated_home, stdout=log, stderr=log,
            env={**settled(environment), "JUPYTER_TOKEN": TOKEN},
        )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"

        def answers() -> bool:
            assert process.poll() is None, (isolated_home / "lab.log").read_text()[-2000:]
            try:
                return bool(read(f"{address}/api/status"))
            except OSError:
                return False

        until(answers, seconds=120, why="JupyterLab to answer")
        yield address
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def read(url: str) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"token {TOKEN}"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return str(answer.read(), "utf-8")


def test_its_page_loads_the_extension_and_its_job_server_answers(server: str) -> None:
    page = read(f"{server}/lab")
    settings = json.loads(re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    (ours,) = [each for each in settings["federated_extensions"] if each["name"] == "paijupyter"]
    entry = read(f"{server}/lab/extensions/paijupyter/{ours['load']}")
    assert "paijupyter" in entry and ours["extension"]
    assert json.loads(read(f"{server}/paijupyter/v1/version"))["api"] == 1
    assert json.loads(read(f"{server}/paijupyter/v1/schema"))["fields"]
