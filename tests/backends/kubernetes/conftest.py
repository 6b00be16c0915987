"""The scripted API server, importable and as a fixture, and the way to it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from paijupyter.backends.kubernetes.transport import KubeTransport

pytest.register_assert_rewrite("api_server")
if str(Path(__file__).parent) not in sys.path:
    sys.path.insert(0, str(Path(__file__).parent))

from api_server import ApiServer, kubeconfig, serving  # noqa: E402 - found by the line above


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ApiServer]:
    """Give a server that knows nothing yet."""
    async with serving({}) as found:
        yield found


@pytest_asyncio.fixture
async def transport(server: ApiServer, tmp_path: Path) -> AsyncIterator[KubeTransport]:
    """Give the way to it."""
    found = KubeTransport(kubeconfig=kubeconfig(tmp_path, server.url))
    yield found
    await found.close()
