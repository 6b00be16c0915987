"""Outputs of a job copied into a folder of this host, for whoever has no client here: a page's *Pull*.

As with ``pull`` of the command line each file appears when it is whole, and below the folder in any case.
What is there already and says something else is written over only by who has asked for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs.outputs import list_outputs, output_file

_PIECE = 1 << 20
_BETWEEN = 0.1  # seconds between two words on progress
_NAMED = 3  # files that a sentence names


@dataclass(frozen=True)
class Copy:
    """One output and the file it becomes; ``size`` is in bytes."""

    path: str
    source: Path
    target: Path
    size: int


async def pulled(
    job: Path, folder: Path, paths: Sequence[str] | None, replace: bool
) -> AsyncIterator[dict[str, Any]]:
    """Copy outputs and say how far it is.

    Args:
        job: the job's folder.
        folder: where they go; made if absent.
        paths: which ones, as the list of outputs names them; None means all.
        replace: write over files of the folder that say something else.

    Yields:
        ``{done, files, bytes, size}`` now and then; last ``{folder, brought, unchanged, size}``.

    Raises:
        Conflict: ``files-differ``, before anything is written.
        PaiJupyterError: ``unsafe-path`` where a file would leave the folder, ``pull-failed`` where the
            disk or a permission is in the way.
    """
    steps = _steps(job, folder, paths, replace)
    try:
        while True:
            step = asyncio.ensure_future(asyncio.to_thread(next, steps, None))
            try:
                said = await asyncio.shield(step)
            finally:
                await asyncio.wait({step})  # who gives up waits for the piece that is being written
            if said is None:
                return
            yield said
    finally:
        await asyncio.to_thread(steps.close)


def _steps(
    job: Path, folder: Path, paths: Sequence[str] | None, replace: bool
) -> Generator[dict[str, Any], None, None]:
    copies = _copies(job, folder, paths)
    fresh = [each for each in copies if not _is_there(each)]
    others = [each for each in fresh if os.path.lexists(each.target)]
    if others and not replace:
        raise _differ(folder, others)
    size, sent, said = sum(each.size for each in fresh), 0, time.monotonic()
    for done, copy in enumerate(fresh):
        for piece in _bring(folder, copy, replace):
            sent += piece
            if time.monotonic() - said >= _BETWEEN:
                said = time.monotonic()
                yield {"done": done, "files": len(fresh), "bytes": sent, "size": size}
    yield {
        "folder": str(folder),
        "brought": len(fresh),
        "unchanged": len(copies) - len(fresh),
        "size": sent,
    }


def _copies(job: Path, folder: Path, paths: Sequence[str] | None) -> list[Copy]:
    """Return what is to be copied; all places are checked before anything is written."""
    found = []
    root = folder.resolve()
    for path in [str(each["path"]) for each in list_outputs(job)] if paths is None else paths:
        source = output_file(job, path)
        target = folder.joinpath(*PurePosixPath(path).parts)
        parent = target.parent.resolve()
        if parent != root and root not in parent.parents:
            raise PaiJupyterError(
                "unsafe-path", f"The file `{path}` would not lie below `{folder}`: a link leads out.", "", 422
            )
        found.append(Copy(path, source, target, source.stat().st_size))
    return found


def _is_there(copy: Copy) -> bool:
    """Say whether the file is there already, byte for byte."""
    try:
        if copy.target.is_symlink() or copy.target.stat().st_size != copy.size:
            return False
        with copy.source.open("rb") as one, copy.target.open("rb") as other:
            while piece := one.read(_PIECE):
                if piece != other.read(_PIECE):
                    return False
    except OSError:
        return False
    return True


def _differ(folder: Path, others: Sequence[Copy]) -> Conflict:
    named = ", ".join(f"`{each.path}`" for each in others[:_NAMED])
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    return Conflict(
        "files-differ",
        f"Folder `{folder.name}` has other files of these names: {named}{more}.",
        "Move them away, or replace them.",
    )


def _bring(folder: Path, copy: Copy, replace: bool) -> Iterator[int]:
    """Copy one file, yielding how many bytes it has written; it has its name when it is whole."""
    draft = copy.target.with_name(f".paijupyter-{secrets.token_hex(8)}.part")
    try:
        copy.target.parent.mkdir(parents=True, exist_ok=True)
        with _opened(copy) as source, draft.open("xb") as file:
            while piece := source.read(_PIECE):
                file.write(piece)
                yield len(piece)
        if replace:
            draft.replace(copy.target)
        elif not _take_name(draft, copy.target) and not _is_there(copy):
            raise _differ(folder, [copy])
    except OSError as error:
        raise PaiJupyterError(
            "pull-failed",
            f"File `{copy.path}` cannot be written into `{folder}`: {error.strerror or error}.",
            "What was brought before stays; pull again when there is room and permission.",
            409,
        ) from error
    finally:
        with contextlib.suppress(OSError):  # where it could not be made, or has its name
            draft.unlink()


def _take_name(draft: Path, target: Path) -> bool:
    """Give a file its name unless something has it by now; say whether it got it."""
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if os.path.lexists(target):
            return False
        draft.replace(target)
    return True


def _opened(copy: Copy) -> BinaryIO:
    try:
        return copy.source.open("rb")
    except FileNotFoundError:
        raise NotFound("Output", copy.path, "The job was deleted meanwhile.") from None
