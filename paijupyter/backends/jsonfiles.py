"""JSON objects on disk, written whole or not at all, for nobody else to read."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def read_json(path: Path) -> dict[str, Any] | None:
    """Return a JSON object, or None if the file is not there or is not one."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_json(path: Path, data: Any) -> None:
    """Write a 0600 file atomically."""
    os.replace(_beside(path, data), path)


def write_json_durably(path: Path, data: Any) -> None:
    """Write a 0600 file atomically, so that it survives a power cut too."""
    temporary = _beside(path, data)
    _sync(temporary)
    os.replace(temporary, path)
    _sync(path.parent)


def write_json_once(path: Path, data: Any) -> bool:
    """Write a file atomically unless it exists; say whether this call wrote it."""
    temporary = _beside(path, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def _beside(path: Path, data: Any) -> str:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(data, out, ensure_ascii=False, separators=(",", ":"))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return name


def _sync(path: str | Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
