"""Writing files so that a crash leaves either the old or the new state, and reading them back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_synced(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Create a file with its content on the disk; it must not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_all_synced(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Create the files of a new folder, all of them and their names on the disk when this returns.

    All are written before the first is waited for: the disk then takes them in one go.
    """
    descriptors = []
    try:
        for name, content in contents.items():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptors.append(os.open(folder / name, flags, 0o600))
            with os.fdopen(descriptors[-1], "wb", closefd=False) as file:
                file.write(content)
        for descriptor in descriptors:
            os.fsync(descriptor)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    sync_folder(folder)


def replace_synced(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Put a whole file in the place of another one, in one step."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    write_synced(draft, content, mode)
    draft.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def to_json(value: Any) -> bytes:
    """Write compact JSON; text stays readable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
