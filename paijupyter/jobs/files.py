"""Writing files so that a crash leaves either the old or the new state, and reading them back."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_FEW, _SYNCS = 20, 8


def write(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Create a file; it must not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def write_synced(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Create a file with its content on the disk; it must not exist yet."""
    write(path, content, mode)
    sync(path)


def replace_synced(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Put a whole file in the place of another one, in one step."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    write_synced(draft, content, mode)
    draft.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Put a file's content, or the names in a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(paths: Collection[Path]) -> None:
    """Do :func:`sync` for each; of many some at a time, for each may be a way over a network."""
    if len(paths) <= _FEW:
        for path in paths:
            sync(path)
        return
    with ThreadPoolExecutor(_SYNCS) as pool:
        for _ in pool.map(sync, paths):
            pass


def to_json(value: Any) -> bytes:
    """Write compact JSON; text stays readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
