"""A scripted OpenPAI server, and one that runs what it is given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.openpai.server import OpenPai

if str(Path(__file__).parent) not in sys.path:
    sys.path.insert(0, str(Path(__file__).parent))

from hdfs import Hdfs
from running import Cluster


@pytest.fixture
def openpai() -> Iterator[OpenPai]:
    """A scripted server, started; a test says what becomes of its jobs."""
    with OpenPai() as server:
        server.limits.list = server.limits.submit = server.limits.all = 1_000_000
        yield server


@pytest.fixture
def cluster(openpai: OpenPai, tmp_path: Path) -> Iterator[Cluster]:
    """The server of ``openpai``, which runs the commands of its jobs in bash."""
    with Cluster(openpai, tmp_path / "nodes") as cluster:
        yield cluster


@pytest.fixture
def hdfs() -> Iterator[Hdfs]:
    """A file system with WebHDFS."""
    with Hdfs() as hdfs:
        yield hdfs
