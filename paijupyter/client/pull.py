"""Bring output files of a job to a folder of this host."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from paijupyter.client.transport import Unreachable, quoted
from paijupyter.errors import PaiJupyterError

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

_TRIES = 5


def notebook_beside(view: Mapping[str, Any], pulled: Sequence[Path], folder: Path) -> Path | None:
    """Copy a pulled executed notebook beside its source below a folder; never over a file that is there.

    Where the job ran on this host its engine has done so already.

    Args:
        view: the JobView.
        pulled: the files that were brought.
        folder: the folder that the package was made of.

    Returns:
        Where it is, None if nothing was copied.
    """
    from paijupyter.notebook.whole import executed_name

    inside = view.get("runsNotebook")
    source = Path(folder, inside) if inside else None
    found = next((path for path in pulled if source and path.name == source.name), None)
    if source is None or found is None or not source.is_file():
        return None
    target = source.with_name(executed_name(source.name, str(view["name"])))
    try:
        with open(target, "xb") as file:
            file.write(found.read_bytes())
    except FileExistsError:
        return None
    return target


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
