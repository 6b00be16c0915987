"""A Jupyter server with the extension, in front of an engine with a fake service."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paijupyter import paths
from paijupyter.client import start

FAKE = Path(__file__).parents[1] / "engine" / "fake_engine.py"


@pytest.fixture
def jp_server_config() -> dict[str, Any]:
    """Enable the extension."""
    return {"ServerApp": {"jpserver_extensions": {"paijupyter": True}}}


@pytest.fixture(autouse=True)
def fake_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever starts an engine start the fake one."""
    monkeypatch.setattr(start, "COMMAND", (str(FAKE), "--detach"))


@pytest.fixture
def put_job() -> Callable[..., dict[str, Any]]:
    """Write a job of the fake service."""

    def put(ident: str = "job0", state: str = "running", **facts: Any) -> dict[str, Any]:
        folder = paths.data_dir() / "fake"
        (folder / ident).mkdir(parents=True, exist_ok=True)
        view = {
            "id": ident,
            "name": ident,
            "profile": "local",
            "kind": "local",
            "state": state,
            "context": {},
            **facts,
        }
        fresh = folder / f"{ident}.new"
        fresh.write_text(json.dumps(view))
        fresh.replace(folder / f"{ident}.json")
        return view

    return put
