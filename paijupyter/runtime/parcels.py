"""Packages as they reach a pod, made into what :mod:`.unpack` reads.

A parcel has ``way``, ``target`` and, unless it is a folder or a commit, ``archive`` (``sha256 bytes parts``):

- ``folder``: manifest, pack and blobs lie in ``folder``
- ``parts``: the files ``part-0000``, ``part-0001``, … of ``folder`` joined are a tar.gz archive of the three
- ``url``: so is what an URL gives, which stands in ``urlFile``: whoever knows it may read
- ``git``: a commit of a repository has them (see :mod:`.git_parcel`)
"""

import os
import re

from .failure import Failure
from .files import remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, Iterator

    from .unpack import State
    from .watch import Watch

_CHUNK = 1 << 20
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds before a download is tried again
_FILES = {"manifest": "manifest.json", "pack": "pack", "blobs": "blobs"}
_MEMBER = re.compile(r"manifest\.json|pack|blobs(/[0-9a-f]{2}(/[0-9a-f]{64})?)?")


def unpack_parcel(parcel: "Dict[str, Any]", target: str, watch: "Watch") -> "Dict[bytes, State]":
    """Unpack a parcel below the target folder; returns and raises what :func:`.unpack.unpack` does."""
    from .unpack import unpack

    folder = parcel["folder"] if parcel["way"] == "folder" else parcel["target"]
    if parcel["way"] != "folder":
        _open(parcel, folder, watch)
    places = {name: os.path.join(folder, file) for name, file in _FILES.items()}
    try:
        return unpack(places, target, watch)
    finally:
        if parcel["way"] != "folder":
            remove_tree(folder)  # its files have been copied


def _open(parcel: "Dict[str, Any]", folder: str, watch: "Watch") -> None:
    remove_tree(folder)
    os.makedirs(folder, mode=0o700)
    archive = os.path.join(folder, "package.tar.gz")
    try:
        if parcel["way"] == "git":
            from .git_parcel import gather

            gather(parcel, folder, watch)
            return
        with open(archive, "wb") as file:
            if parcel["way"] == "url":
                _download(parcel, file, watch)
            else:
                _join(parcel, file, watch)
        _unpack(archive, folder, watch)
        os.unlink(archive)
    except OSError as error:
        raise Failure(
            "package", "The package could not be brought here (%s)." % (error.strerror or error)
        ) from error


def _join(parcel: "Dict[str, Any]", file: "IO[bytes]", watch: "Watch") -> None:
    """Put the parts together.

    Raises:
        Failure: ``package`` if one is missing or the whole is not what it should be.
    """
    digest = _digest()
    for number in range(int(parcel["archive"]["parts"])):
        name = "part-%04d" % number
        try:
            with open(os.path.join(parcel["folder"], name), "rb") as part:
                for chunk in _chunks(part, watch):
                    digest.update(chunk)
                    file.write(chunk)
        except FileNotFoundError:
            raise Failure("package", "The package is not complete: `%s` is missing." % name) from None
    _check(parcel, digest)


def _download(parcel: "Dict[str, Any]", file: "IO[bytes]", watch: "Watch") -> None:
    """Fetch it; a lost connection is tried again from the beginning.

    Raises:
        Failure: ``package`` if it cannot be had. The URL is never in the message.
    """
    from .fetch import Unfetched
    from .http_source import Lost

    with open(parcel["urlFile"]) as stream:
        url = stream.read().strip()
    for pause in (*_PAUSES, None):
        try:
            _check(parcel, _fetch(url, int(parcel["archive"]["bytes"]), file, watch))
            return
        except (Unfetched, Lost) as error:
            if pause is None or isinstance(error, Unfetched):
                why = str(error).replace(url, "its URL")
                raise Failure("package", "The package cannot be fetched: %s." % why) from None
        watch.sleep(pause)


def _fetch(url: str, size: int, file: "IO[bytes]", watch: "Watch") -> "Any":
    """Read it once; return its digest."""
    from http.client import HTTPException

    from .http_source import Lost, open_uri

    file.seek(0)
    file.truncate()
    digest = _digest()
    answer = open_uri({"uri": url}, "", {})
    try:
        for chunk in _chunks(answer, watch):
            digest.update(chunk)
            file.write(chunk)
    except HTTPException as error:
        raise Lost("the connection failed (%s)" % type(error).__name__) from error
    finally:
        answer.close()
    if file.tell() < size:
        raise Lost("the connection ended early")
    return digest


def _unpack(archive: str, folder: str, watch: "Watch") -> None:
    import tarfile

    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                if not _MEMBER.fullmatch(member.name.rstrip("/")) or not (member.isfile() or member.isdir()):
                    raise Failure("package", "The package has the unknown part `%s`." % member.name)
                if member.isdir():
                    continue
                target = os.path.join(folder, member.name)
                os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
                source = members.extractfile(member)
                with open(target, "wb") as file:
                    for chunk in _chunks(source, watch):
                        file.write(chunk)
    except (tarfile.TarError, EOFError) as error:
        raise Failure("package", "The package cannot be opened (%s)." % error) from error


def _chunks(stream: "Any", watch: "Watch") -> "Iterator[bytes]":
    while True:
        watch.check()
        chunk = stream.read(_CHUNK)
        if not chunk:
            return
        yield chunk


def _digest() -> "Any":
    from hashlib import sha256

    return sha256()


def _check(parcel: "Dict[str, Any]", digest: "Any") -> None:
    if digest.hexdigest() != parcel["archive"]["sha256"]:
        raise Failure("package", "The package is damaged: what came has another checksum.")
