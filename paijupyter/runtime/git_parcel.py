"""A package that comes from a commit of a git repository, made into manifest, pack and blobs.

A parcel of the way ``git`` has, beside ``sha256`` and ``target``:

- ``urlFile``: a file with the JSON object ``{uri, secret}``; the log shows nothing of it
- ``commit`` and ``ref``: a branch that has it, for servers that give no commit by its hash
- ``subfolder``: the package's folder in the repository, or ""
- ``leftOut``: what the commit has and the package has not; a folder ends with ``/``
- ``beside``: what the package has and the commit has not: ``path``, ``mode`` and a ``file`` of ``folder``

Contents are read as git keeps them: no checkout, so that no filter and no line end changes one.
"""

import json
import os
import subprocess
import tempfile

from .failure import Failure
from .fetch import Unfetched
from .git_source import Git
from .unpack import PACK_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, Iterator, List, Tuple

    from .watch import Watch

_CHUNK = 1 << 20
_LINK = b"120000"
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds before a fetch is tried again


def gather(parcel: "Dict[str, Any]", folder: str, watch: "Watch") -> None:
    """Write ``manifest.json``, ``pack`` and ``blobs`` of a parcel into a folder.

    Raises:
        Failure: ``package`` if the commit cannot be had, or is not what the package was made of.
    """
    with open(parcel["urlFile"]) as stream:
        place = json.loads(stream.read())
    git = Git(place["uri"], place.get("secret") or "")
    repository = os.path.join(folder, "repository")
    try:
        _fetch(git, parcel, repository, watch)
        rows = _write(parcel, _entries(git, parcel, repository), git, repository, folder, watch)
    except Unfetched as error:
        why = str(error).replace(place["uri"], "its address")
        raise Failure("package", "The package cannot be fetched from git: %s." % why) from None
    data = json.dumps({"schema": 1, "files": rows}, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    if _digest(data).hexdigest() != parcel["sha256"]:
        raise Failure(
            "package", "The package is damaged: what commit %s has is something else." % parcel["commit"][:12]
        )
    with open(os.path.join(folder, "manifest.json"), "wb") as stream_out:
        stream_out.write(data)


def _fetch(git: Git, parcel: "Dict[str, Any]", repository: str, watch: "Watch") -> None:
    """Have the commit, by its hash or by a branch that has it."""
    _run(git, ["init", "--quiet", "--bare", "--", repository], watch)
    fetch = ["--git-dir", repository, "fetch", "--quiet", "--no-tags"]
    ways = [[*fetch, "--depth", "1", "--", git.uri, parcel["commit"]], [*fetch, "--", git.uri, parcel["ref"]]]
    for pause in (*_PAUSES, None):
        for way in ways:
            try:
                _run(git, way, watch)
                _run(git, ["--git-dir", repository, "cat-file", "-e", parcel["commit"]], watch)
                return
            except Unfetched:
                if way is ways[-1] and pause is None:
                    raise
        watch.sleep(pause or 0)


def _entries(git: Git, parcel: "Dict[str, Any]", repository: str) -> "List[Tuple[str, bytes, str]]":
    """Return path, mode and the object or file of each entry of the package, sorted."""
    tree = "%s:%s" % (parcel["commit"], parcel["subfolder"])
    listed = git.output(["--git-dir", repository, "ls-tree", "-r", "-z", "--full-tree", tree])
    left_out = frozenset(name for name in parcel["leftOut"] if not name.endswith("/"))
    folders = tuple(name for name in parcel["leftOut"] if name.endswith("/"))
    found = {}
    for line in listed.split(b"\0"):
        facts, _, name = line.partition(b"\t")
        path = name.decode("utf-8", "surrogateescape")
        if facts.split()[1:2] == [b"blob"] and path not in left_out and not path.startswith(folders or "\0"):
            mode = facts.split()[0]
            found[path] = (b"100644" if mode == b"100664" else mode, facts.split()[2].decode("ascii"))
    for each in parcel["beside"]:
        found[each["path"]] = (each["mode"].encode("ascii"), os.path.join(parcel["folder"], each["file"]))
    return [(path, mode, where) for path, (mode, where) in sorted(found.items())]


def _write(
    parcel: "Dict[str, Any]",
    entries: "List[Tuple[str, bytes, str]]",
    git: Git,
    repository: str,
    folder: str,
    watch: "Watch",
) -> "List[List[Any]]":
    """Write pack and blobs; return the rows of the manifest."""
    rows: "List[List[Any]]" = []
    beside = frozenset(each["path"] for each in parcel["beside"])
    objects = _Objects(git, repository)
    try:
        with open(os.path.join(folder, "pack"), "wb") as pack:
            for path, mode, where in entries:
                watch.check()
                size, chunks = _read(where) if path in beside else objects.read(where)
                in_pack = size < PACK_LIMIT or mode == _LINK
                digest = _copy(chunks, pack) if in_pack else _blob(chunks, os.path.join(folder, "blobs"))
                rows.append([path, mode.decode("ascii"), size, digest])
    finally:
        objects.close()
    return rows


def _blob(chunks: "Iterator[bytes]", blobs: str) -> str:
    os.makedirs(blobs, exist_ok=True)
    draft = os.path.join(blobs, "draft")
    with open(draft, "wb") as file:
        digest = _copy(chunks, file)
    os.makedirs(os.path.join(blobs, digest[:2]), exist_ok=True)
    os.rename(draft, os.path.join(blobs, digest[:2], digest))
    return digest


def _copy(chunks: "Iterator[bytes]", file: "IO[bytes]") -> str:
    digest = _digest(b"")
    for chunk in chunks:
        digest.update(chunk)
        file.write(chunk)
    return str(digest.hexdigest())


def _read(path: str) -> "Tuple[int, Iterator[bytes]]":
    with open(path, "rb") as file:
        data = file.read()
    return len(data), iter((data,))


class _Objects:
    """Contents by their hashes, from one process."""

    def __init__(self, git: Git, repository: str) -> None:
        self._process = subprocess.Popen(
            ["git", "--git-dir", repository, "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=git.environment,
        )

    def read(self, name: str) -> "Tuple[int, Iterator[bytes]]":
        """Return size and content, which is to be read before the next one is asked for.

        Raises:
            Unfetched: it is not there.
        """
        asked, given = self._process.stdin, self._process.stdout
        assert asked is not None and given is not None
        asked.write(name.encode("ascii") + b"\n")
        asked.flush()
        words = given.readline().split()
        if len(words) != 3:
            raise Unfetched("the repository has not all of the commit")
        return int(words[2]), self._content(int(words[2]))

    def _content(self, left: int) -> "Iterator[bytes]":
        given = self._process.stdout
        assert given is not None
        while left:
            chunk = given.read(min(left, _CHUNK))
            if not chunk:
                raise Unfetched("git ended early")
            left -= len(chunk)
            yield chunk
        given.read(1)

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _run(git: Git, arguments: "List[str]", watch: "Watch") -> None:
    """Run git, and end it where the task is to end."""
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                ["git", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                env=git.environment,
            )
        except FileNotFoundError:
            raise Unfetched("git is not installed where the task runs") from None
        try:
            while process.poll() is None:
                watch.check()
                watch.sleep(0.1)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said.seek(0)
        if process.returncode:
            raise Unfetched(git.reason(said.read()))


def _digest(data: bytes) -> "Any":
    from hashlib import sha256

    return sha256(data)
