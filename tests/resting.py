"""What rests in files: where planted secrets are searched for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def contents(*places: str | Path) -> Iterator[tuple[Path, bytes]]:
    """Yield every file, itself given or below a folder, and what is in it; links are not followed.

    Engines and kernels make files and remove them meanwhile: one that has just gone is passed by.
    """
    for place in map(Path, places):
        for path in place.rglob("*") if place.is_dir() else [place]:
            try:
                data = path.read_bytes() if path.is_file() and not path.is_symlink() else None
            except FileNotFoundError:
                continue
            if data is not None:
                yield path, data


def holders(text: str, *places: str | Path) -> list[Path]:
    """Return the files, given or below a folder, that hold a text."""
    return [path for path, data in contents(*places) if text.encode() in data]
