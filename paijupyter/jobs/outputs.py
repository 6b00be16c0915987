"""Outputs of a job: the regular files below its ``output/`` folder, and nothing that is not below it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paijupyter.errors import NotFound, PaiJupyterError

LISTED = 10_000


def list_outputs(job: Path, limit: int = LISTED) -> list[dict[str, Any]]:
    """Return ``{path, size}`` of up to ``limit`` files, in order; links that lead out are left out."""
    root = job / "output"
    found: list[dict[str, Any]] = []
    for path in _walk(root):
        if len(found) == limit:
            break
        inside = _inside(root, path)
        if inside is not None:
            found.append({"path": path.relative_to(root).as_posix(), "size": inside.stat().st_size})
    return found


def output_file(job: Path, path: str) -> Path:
    """Return where an output lies.

    Raises:
        NotFound: if it is no output, or its path leads out of the folder.
        PaiJupyterError: ``invalid-path`` if it is no relative path.
    """
    parts = path.split("/")
    if "\0" in path or path.startswith("/") or ".." in parts:
        raise PaiJupyterError("invalid-path", "Path of an output must be relative and without `..`.")
    inside = _inside(job / "output", job / "output" / path)
    if inside is None:
        raise NotFound("Output", path, "List what there is with: files.")
    return inside


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            yield Path(folder, name)


def _inside(root: Path, path: Path) -> Path | None:
    """Follow all links; return the real file if it is a regular one below the real root."""
    try:
        real, top = path.resolve(strict=True), root.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # gone, or a loop of links
        return None
    return real if real.is_relative_to(top) and real.is_file() else None
