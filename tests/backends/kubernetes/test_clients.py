"""The transport does the same with every version of the client library that people have installed.

Between versions 31 and 37 the client lost log lines, sent requests without credentials and refused unknown
fields; of it only the loaders of its configuration are used. Each version has an environment of its own, made
once outside of the tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# As it was when the tests were collected: each test has a home of its own.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paijupyter-tests"
VERSIONS = ("31.0.0", "35.0.0", "36.0.3", "37.0.2")

pytestmark = [pytest.mark.services, pytest.mark.timeout(600)]


def environment(version: str) -> Path:
    """Return the interpreter of an environment with a version of the client."""
    folder = CACHE / f"kubernetes-{version}-py{sys.version_info[0]}.{sys.version_info[1]}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        wanted = [f"kubernetes=={version}", "pytest>=8", "pytest-asyncio>=0.24"]
        done = subprocess.run([python, "-m", "pip", "install", "-q", *wanted], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"kubernetes {version} cannot be installed: {done.stderr.strip()[-200:]}")
        (folder / "done").touch()
    return python


@pytest.mark.parametrize("version", VERSIONS)
def test_the_transport_works_with(version: str) -> None:
    command = [environment(version), "-m", "pytest", "-q", "--noconftest", "-p", "pytest_asyncio.plugin"]
    command += ["-o", "addopts=--import-mode=importlib", HERE / "test_transport.py"]
    settings = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
    }
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
