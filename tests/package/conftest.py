"""A folder to package, a store to put it into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from paijupyter.package import LocalStore

Write = Callable[[Mapping[str, "str | bytes"]], Path]


@pytest.fixture
def root(isolated_home: Path) -> Path:
    folder = isolated_home / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def write(root: Path) -> Write:
    """Write files below the root by their relative paths."""

    def write(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return root

    return write


@pytest.fixture
def data(isolated_home: Path) -> Path:
    return isolated_home / "data"


@pytest.fixture
def store(data: Path) -> LocalStore:
    return LocalStore(data)
