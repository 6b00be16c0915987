"""Outputs on their way out of a task that nobody can enter: one archive, put where the engine fetches it.

Where, stands in a file of the task, a JSON object: the address is ``before``, the task, ``after``, and of a
bucket the task's own of ``signatures``. Whoever knows it may write there, so no message repeats it.
"""

import errno
import json
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, Iterator, Tuple

_SILENCE = 60.0  # seconds without an answer
_PAUSES = (0.5, 2.0, 8.0)  # seconds before it is tried again
_REDIRECTS = (301, 302, 307)


def send(folder: str, task: str, place_file: str, draft: str) -> str:
    """Put all files of a folder there; return a sentence on what came of it, "" if there is nothing.

    Args:
        folder: of the outputs.
        task: ``<role>-<index>``.
        place_file: says where.
        draft: file for the archive on its way.
    """
    files = list(_files(folder))
    if not files:
        return ""
    from http.client import HTTPException

    try:
        with open(place_file) as stream:
            place = json.loads(stream.read())
        with open(draft, "w+b") as archive:
            _pack(files, archive)
            _put(place, task, archive)
        os.unlink(draft)
    except (OSError, HTTPException, ValueError, KeyError) as error:
        return "Outputs did not get out of the task: %s." % _reason(error)
    return "Outputs are on their way: %d files." % len(files)


def _files(folder: str) -> "Iterator[Tuple[str, str]]":
    """Yield path and name of every regular file."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path, os.path.relpath(path, folder)


def _pack(files: "Any", archive: "IO[bytes]") -> None:
    import tarfile

    with tarfile.open(
        fileobj=archive, mode="w:gz", format=tarfile.GNU_FORMAT, errors="surrogateescape", compresslevel=1
    ) as members:
        for path, name in files:
            members.add(path, name, recursive=False)


def _put(place: "Dict[str, Any]", task: str, archive: "IO[bytes]") -> None:
    from http.client import HTTPException

    address = place["before"] + task + place["after"]
    if place.get("signatures"):
        address += place["signatures"][task]
    for pause in (*_PAUSES, None):
        try:
            _request(_named(address) if place["way"] == "webhdfs" else address, archive).close()
            return
        except (OSError, HTTPException) as error:
            code = getattr(error, "code", 500)
            if pause is None or (code < 500 and code not in (408, 429)):
                raise
        time.sleep(pause)


def _named(address: str) -> str:
    """Ask the name node of a Hadoop file system which data node takes the content."""
    from urllib.error import HTTPError

    try:
        with _request(address, None) as answer:
            return str(json.loads(answer.read(10000).decode("utf-8")).get("Location") or "")
    except HTTPError as error:  # an old one knows no `noredirect`
        with error:
            if error.code not in _REDIRECTS:
                raise
            return error.headers.get("location") or ""


def _request(address: str, archive: "Any") -> "Any":
    import urllib.request

    if not address.startswith(("http://", "https://")):
        raise OSError(errno.EDESTADDRREQ, "nobody says where they are to go")
    headers = {"Content-Type": "application/octet-stream", "Content-Length": "0"}
    if archive is not None:
        archive.seek(0, os.SEEK_END)
        headers["Content-Length"] = str(archive.tell())
        archive.seek(0)
    request = urllib.request.Request(address, archive or b"", headers, method="PUT")
    return urllib.request.urlopen(request, timeout=_SILENCE)


def _reason(error: Exception) -> str:
    code = getattr(error, "code", None)
    if code is not None:
        return "the server answered %s" % code
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None)
    return str(reason or type(error).__name__)
