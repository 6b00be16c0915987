"""An engine with a fake service, and raw access to its socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paijupyter import paths
from paijupyter.client import start
from paijupyter.client.client import JobsClient

FAKE = Path(__file__).with_name("fake_engine.py")


@pytest.fixture
def fake_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever starts an engine start the fake one."""
    monkeypatch.setattr(start, "COMMAND", (str(FAKE), "--detach"))


@pytest.fixture
def client(fake_engine: None) -> JobsClient:
    """Return a client of a fresh engine."""
    return JobsClient.connect()


@pytest.fixture
def put_job() -> Callable[..., dict[str, Any]]:
    """Write a job of the fake service."""

    def put(ident: str = "job0", state: str = "running", **facts: Any) -> dict[str, Any]:
        folder = paths.data_dir() / "fake"
        (folder / ident / "out").mkdir(parents=True, exist_ok=True)
        view = {
            "id": ident,
            "name": ident,
            "profile": "local",
            "kind": "local",
            "state": state,
            "context": {},
        }
        fresh = folder / f"{ident}.new"
        fresh.write_text(json.dumps({**view, **facts}))
        fresh.replace(folder / f"{ident}.json")
        return {**view, **facts}

    return put
