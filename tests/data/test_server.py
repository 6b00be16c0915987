"""P35, P29: storages by REST through the Jupyter server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

V1 = ("paijupyter", "v1")


@pytest.fixture
def jp_server_config() -> dict[str, Any]:
    """Enable the extension."""
    return {"ServerApp": {"jpserver_extensions": {"paijupyter": True}}}


async def test_put_list_and_remove(jp_fetch: Any, profile: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    profile(storages={"team": {"path": str(tmp_path / "root"), "default": True}})
    listed = json.loads((await jp_fetch(*V1, "storages")).body)
    assert [(each["name"], each["usable"], each["mount"]) for each in listed["storages"]] == [
        ("team", True, "/mnt/team")
    ]
    body = b"x" * 2_000_000
    sha256 = hashlib.sha256(body).hexdigest()
    asked = json.dumps({"path": "sets/x", "size": len(body), "sha256": sha256})
    uploads = (*V1, "storages", "team", "uploads")
    there = json.loads((await jp_fetch(*uploads, method="POST", body=asked)).body)
    assert there == {"offset": 0, "done": False}
    for offset in (0, 1_500_000):
        part = body[offset : 1_500_000 if not offset else None]
        params = {"path": "sets/x", "offset": str(offset), "size": str(len(body))}
        there = json.loads((await jp_fetch(*uploads, sha256, method="PUT", body=part, params=params)).body)
    assert there == {"offset": len(body), "done": True}
    assert (tmp_path / "root/sets/x").read_bytes() == body
    params = {"path": "sets"}
    files = json.loads((await jp_fetch(*V1, "storages", "team", "files", params=params)).body)
    assert [(each["path"], each["size"]) for each in files["entries"]] == [("sets/x", len(body))]
    gone = await jp_fetch(*V1, "storages", "team", "files", "sets", "x", method="DELETE")
    assert gone.code == 204
    assert not (tmp_path / "root/sets/x").exists()
