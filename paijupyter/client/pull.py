"""Bring output files of a job to a folder of this host."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from paijupyter.client.transport import Unreachable, quoted
from paijupyter.errors import PaiJupyterError

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

_TRIES = 5


def pull(client: JobsClient, ref: str, dest: Path, paths: Sequence[str] | None) -> list[Path]:
    """Bring files; see :meth:`JobsClient.pull`."""
    wanted = [str(file["path"]) for file in client.files(ref)] if paths is None else list(paths)
    return [_one(client, ref, path, _target(dest, path)) for path in wanted]


def _target(dest: Path, path: str) -> Path:
    """Return where a file goes, below the folder in any case."""
    pure = PurePosixPath(path)
    target = dest.joinpath(*pure.parts)
    root = dest.resolve()
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or root not in target.resolve().parents:
        raise PaiJupyterError("unsafe-path", f"The file `{path}` would not lie below `{dest}`.", "", 422)
    return target


def _one(client: JobsClient, ref: str, path: str, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with fresh.open("wb") as stream:
            _download(client, quoted("jobs", ref, "files", path), stream)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    return target


def _download(client: JobsClient, url: str, stream: BinaryIO) -> None:
    """Copy a file; after a lost connection go on where it was, if the file is still the same."""
    etag = ""
    failed = 0
    while True:
        headers = {"Range": f"bytes={stream.tell()}-", "If-Range": etag} if stream.tell() else {}
        try:
            with client.open("GET", url, headers=headers) as answer:
                etag = answer.headers.get("ETag", "")
                if answer.status != 206:
                    stream.seek(0)
                    stream.truncate()
                while piece := answer.piece():
                    stream.write(piece)
                    failed = 0
            return
        except Unreachable:
            if failed >= _TRIES:
                raise
            client.again(failed)
            failed += 1
