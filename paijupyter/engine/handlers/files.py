"""Output files of a job: whole, by range, copied into a folder, shown by TensorBoard."""

from __future__ import annotations

import asyncio
import mimetypes
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from paijupyter.engine.call import Call
from paijupyter.engine.route import BYTES, Reply
from paijupyter.errors import NotFound, PaiJupyterError

_CHUNK = 256 * 1024
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# What a browser would run is never named so: these files come from the user's job, not from us.
_ACTIVE = {"text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/xml"}


async def list_files(call: Call) -> Reply:
    """List the outputs."""
    return Reply({"files": list(call.service.outputs.list(call.path["ref"]))})


async def get_file(call: Call) -> Reply | None:
    """Send one output, or a range of it."""
    path = call.service.outputs.file(call.path["ref"], call.path["path"])
    stream = await asyncio.to_thread(_open, path, call.path["path"])
    with stream:
        size, etag = _facts(stream)
        span = _span(call.headers.get("Range", ""), size)
        if span is not None and call.headers.get("If-Range", etag) != etag:
            span = None  # the file has changed: the whole of it
        start, end = span or (0, size)
        headers = {
            "Accept-Ranges": "bytes",
            "Content-Length": str(end - start),
            "ETag": etag,
            "X-Content-Type-Options": "nosniff",
        }
        if span is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        await call.sender.raw(_read(stream, start, end), _media(path), headers, 206 if span else 200)
    return None


async def pull(call: Call) -> None:
    """Copy outputs into a folder and say how far it is."""
    body = call.body
    steps = call.service.outputs.pull(
        call.path["ref"], Path(body["folder"]), body.get("paths"), body.get("replace", False)
    )
    await call.sender.lines(steps)


async def tensorboard(call: Call) -> Reply:
    """Start TensorBoard on the outputs, or find it."""
    return Reply(await call.service.outputs.tensorboard(call.path["ref"], call.body.get("python")))


def _open(path: Path, name: str) -> BinaryIO:
    try:
        return path.open("rb")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise NotFound("File", name, "GET …/files lists the outputs.") from None


def _facts(stream: BinaryIO) -> tuple[int, str]:
    import os

    found = os.fstat(stream.fileno())
    return found.st_size, f'"{found.st_mtime_ns:x}-{found.st_size:x}"'


def _span(text: str, size: int) -> tuple[int, int] | None:
    """Read a Range header: start and end (exclusive); None for a header to ignore (RFC 9110, 14.2)."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or (not match[1] and not match[2]):
        return None
    if not match[1]:
        start, end = max(0, size - int(match[2])), size
    else:
        start, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
        if match[2] and int(match[2]) < start:
            return None
    if start >= size or start >= end:
        raise PaiJupyterError(
            "range", f"The range {text} is outside of the file's {size} bytes.", "Ask for less.", 416
        )
    return start, end


async def _read(stream: BinaryIO, start: int, end: int) -> AsyncIterator[bytes]:
    stream.seek(start)
    while start < end:
        chunk = await asyncio.to_thread(stream.read, min(_CHUNK, end - start))
        if not chunk:
            raise EOFError("the file became shorter while it was read")
        start += len(chunk)
        yield chunk


def _media(path: Path) -> str:
    guess, encoding = mimetypes.guess_type(path.name)
    if guess is None or encoding is not None or guess in _ACTIVE:
        return BYTES
    return guess
