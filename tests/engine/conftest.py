"""An engine with a fake service, and raw access to its socket."""

from __future__ import annotations

from pathlib import Path

import pytest

from paijupyter.client import start
from paijupyter.client.client import JobsClient

FAKE = Path(__file__).with_name("fake_engine.py")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> JobsClient:
    """Return a client of a fresh engine."""
    monkeypatch.setattr(start, "COMMAND", (str(FAKE), "--detach"))
    return JobsClient.connect()
