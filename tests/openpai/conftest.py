"""A scripted OpenPAI server for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.openpai.server import OpenPai


@pytest.fixture
def openpai() -> Iterator[OpenPai]:
    """A scripted server, started; see its class for what a test can say."""
    with OpenPai() as server:
        yield server
