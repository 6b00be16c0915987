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
_DENIED = ("AccessControlException", "SecurityException")


class Refused(OSError):
    """The server answered that it does not take them.

    Attributes:
        code: of HTTP.
        word: a Hadoop file system's own for it, "" where there is none.
    """

    def __init__(self, code: int, word: str) -> None:
        super().__init__("the server answered %s%s" % (code, word and " (%s)" % word))
        self.code = code
        self.word = word

    @property
    def is_passing(self) -> bool:
        """Whether it may take them soon; safe mode, or no data node, is a 403 too."""
        hadoop = self.code == 403 and self.word and self.word not in _DENIED
        return bool(hadoop) or self.code >= 500 or self.code in (408, 429)


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
            if pause is None or (isinstance(error, Refused) and not error.is_passing):
                raise
        time.sleep(pause)


def _named(address: str) -> str:
    """Ask the name node of a Hadoop file system which data node takes the content."""
    import string
    from urllib.error import HTTPError
    from urllib.parse import quote

    try:
        with _request(address, None) as answer:
            place = str(json.loads(answer.read(10000).decode("utf-8")).get("Location") or "")
    except HTTPError as error:  # an old one knows no `noredirect`
        with error:
            place = error.headers.get("location") or ""
    return quote(place, safe=string.punctuation)  # in JSON it has the letters of a path as they are


def _request(address: str, archive: "Any") -> "Any":
    """Send it; return the answer.

    Raises:
        Refused: the server does not take it.
        OSError: there is no answer; ``HTTPError`` where it sends us to another place.
    """
    import urllib.error
    import urllib.request

    if not address.startswith(("http://", "https://")):
        raise OSError(errno.EDESTADDRREQ, "nobody says where they are to go")
    headers = {"Content-Type": "application/octet-stream", "Content-Length": "0"}
    if archive is not None:
        archive.seek(0, os.SEEK_END)
        headers["Content-Length"] = str(archive.tell())
        archive.seek(0)
    request = urllib.request.Request(address, archive or b"", headers, method="PUT")
    try:
        return urllib.request.build_opener(_handler()).open(request, timeout=_SILENCE)
    except urllib.error.HTTPError as error:
        if error.code in _REDIRECTS:
            raise
        with error:
            raise Refused(error.code, _word(error)) from None


def _handler() -> "Any":
    """Return what opens connections that read the answer also where not all was taken.

    Who refuses closes at once, and why would be lost in a broken pipe.
    """
    import urllib.request
    from http.client import HTTPConnection

    class Connection(HTTPConnection):
        closed = False

        def send(self, data: "Any") -> None:
            if self.closed:
                return
            try:
                super().send(data)
            except (BrokenPipeError, ConnectionResetError):
                self.closed = True

    class Handler(urllib.request.HTTPHandler):
        def http_open(self, req: "urllib.request.Request") -> "Any":
            return self.do_open(Connection, req)

    return Handler


def _word(error: "Any") -> str:
    """Return what a Hadoop file system calls its refusal; its message names users and paths."""
    from http.client import HTTPException

    try:
        word = json.loads(error.read(1 << 20).decode("utf-8"))["RemoteException"]["exception"]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return ""
    return word if isinstance(word, str) and word.isidentifier() else ""


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None)
    if isinstance(error, Refused):
        reason = error
    return str(reason or type(error).__name__)
