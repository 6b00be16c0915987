"""Every test has its own home: no test sees the user's jobs, and no engine outlives its test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import services
from tests.hadoop_server import Hadoop
from tests.home import end_engines, places, until

_RINGS = Path(__file__).parent / "rings"

# How long an example takes says more of the machine than of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

pytest_plugins = ["pytest_jupyter.jupyter_server"]


@pytest.fixture(autouse=True)
def isolated_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test a home of its own below a short path (a socket's path may have 107 bytes)."""
    home = Path(tempfile.mkdtemp(prefix="pj"))
    for name, value in places(home).items():
        monkeypatch.setenv(name, value)
    yield home
    end_engines(home)
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., object]:
    """Hand :func:`until` to tests."""
    return until


@pytest.fixture(scope="session")
def hadoop(
    tmp_path_factory: pytest.TempPathFactory, unused_tcp_port_factory: Callable[[], int]
) -> Iterator[Hadoop]:
    """Start a real Hadoop file system, one for all tests; each has a folder of its own there."""
    java, jars = services.java(), services.hadoop()
    if java is None or jars is None:
        pytest.skip("there is no Java from 11 to 22, or Maven has not fetched Hadoop: make test-services")
    ports = unused_tcp_port_factory(), unused_tcp_port_factory()
    server = Hadoop(java, jars, tmp_path_factory.mktemp("hadoop"), ports)
    try:
        server.start(until)
        yield server
    finally:
        server.stop()


@pytest.fixture
def ring(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this process and those that it starts a real keyring; return the file of its entries."""
    file = tmp_path_factory.mktemp("ring") / "ring.json"
    path = [str(_RINGS), os.environ.get("PYTHONPATH")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_ring.Ring")
    monkeypatch.setenv("TEST_RING", str(file))
    return file
