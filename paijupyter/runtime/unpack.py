"""Make the package folder from a manifest, its pack of small files, and blobs of large ones."""

import errno
import json
import os
import stat

from .failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, Dict, List, Set, Tuple

    from .watch import Watch

    State = Tuple[int, int, int, int]

PACK_LIMIT = 262144  # bytes; files of this size and more travel as blobs
_SMALL_PACK = 4194304  # bytes
_FICLONE = 0x40049409
_LINK = "120000"
_MODES = {"100644": 0o644, "100755": 0o755, _LINK: 0}


def unpack(package: "Dict[str, Any]", target: str, watch: "Watch") -> "Dict[bytes, State]":
    """Write every file of the package below the target folder, which must not exist.

    Args:
        package: ``manifest``, ``pack`` and ``blobs``: paths; or ``parcel``, see :mod:`.parcels`.
        target: the folder.
        watch: what may end the task early.

    Contents from the pack are held to their sha256. A blob was held to its name when it was stored, so only
    its size is looked at here.

    Returns:
        What each file looked like right after it was written, to tell later which ones the task changed.

    Raises:
        Failure: ``package`` if anything is missing, damaged, unsafe or does not fit on the disk.
    """
    if package.get("parcel"):
        from .parcels import unpack_parcel

        return unpack_parcel(package["parcel"], target, watch)
    place = ""
    try:
        os.mkdir(target)
        with open(package["manifest"], "rb") as stream:
            files = json.loads(stream.read().decode("utf-8"))["files"]
        with open(package["pack"], "rb") as pack:
            writer = _Writer(os.fsencode(target), pack, package["blobs"])
            for path, mode, size, digest in files:
                place = path
                watch.check()
                writer.add(path, mode, size, digest)
            if pack.read(1):
                raise Failure("package", "The package has a pack that is longer than its manifest says.")
        writer.link()
        return writer.states
    except OSError as error:
        raise _explained(error, place) from error
    except (ValueError, KeyError, TypeError) as error:
        raise Failure("package", "The package has a manifest that cannot be read (%s)." % error) from error


def _sha256_for(size: int) -> "Any":
    """Return sha256: hashlib loads OpenSSL, which takes longer than hashing a small package without it."""
    for name in ("_sha2", "_sha256") if size < _SMALL_PACK else ():
        try:
            return __import__(name).sha256
        except (ImportError, AttributeError):
            pass
    from hashlib import sha256

    return sha256


def state_of(found: os.stat_result) -> "State":
    """Return what changes when a file is written again."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Writer:
    def __init__(self, target: bytes, pack: "IO[bytes]", blobs: str) -> None:
        self._sha256 = _sha256_for(os.fstat(pack.fileno()).st_size)
        self._target = target
        self._pack = pack
        self._blobs = blobs
        self._folders: "Set[bytes]" = {target}
        self._links: "List[Tuple[bytes, bytes]]" = []
        self.states: "Dict[bytes, State]" = {}

    def add(self, path: str, mode: str, size: int, digest: str) -> None:
        """Write one file; links wait for :meth:`link`, so that no file is written through one."""
        name = _safe(path)
        if mode not in _MODES:
            raise Failure("package", "The package has the file `%s` with the unknown mode %s." % (path, mode))
        destination = os.path.join(self._target, name)
        self._make_folder(os.path.dirname(destination))
        if size >= PACK_LIMIT and mode != _LINK:
            self._blob(path, destination, mode, size, digest)
            return
        data = self._pack.read(size)
        if len(data) != size or self._sha256(data).hexdigest() != digest:
            raise Failure("package", "The package is damaged at `%s`." % path)
        if mode == _LINK:
            self._links.append((data, destination))
            return
        with self._new(destination, mode) as stream:
            stream.write(data)
            stream.flush()
            self.states[name] = state_of(os.fstat(stream.fileno()))

    def link(self) -> None:
        """Make the links, after all files."""
        for data, destination in self._links:
            os.symlink(data, destination)

    def _blob(self, path: str, destination: bytes, mode: str, size: int, digest: str) -> None:
        with open(os.path.join(self._blobs, digest[:2], digest), "rb") as source:
            if os.fstat(source.fileno()).st_size != size:
                raise Failure("package", "The package is damaged at `%s`." % path)
            with self._new(destination, mode) as stream:
                _copy(source, stream)
                self.states[_safe(path)] = state_of(os.fstat(stream.fileno()))

    def _make_folder(self, folder: bytes) -> None:
        if folder not in self._folders:
            os.makedirs(folder, exist_ok=True)
            self._folders.add(folder)

    def _new(self, destination: bytes, mode: str) -> "IO[bytes]":
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return os.fdopen(os.open(destination, flags, _MODES[mode]), "wb")


def _copy(source: "IO[bytes]", target: "IO[bytes]") -> None:
    """Copy a large file: as a clone that shares its blocks where the file system can, else by the kernel."""
    try:
        import fcntl

        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
        return
    except (ImportError, OSError):
        pass  # no clones here
    import shutil

    shutil.copyfileobj(source, target, 1 << 20)
    target.flush()


def _safe(path: str) -> bytes:
    """Return the path as bytes if it stays below the package folder."""
    if not path or "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise Failure("package", "The package has the unsafe path `%s`." % path)
    return path.encode("utf-8", "surrogateescape")


def _explained(error: OSError, place: str) -> Failure:
    where = " at `%s`" % place if place else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Failure("package", "The package does not fit on the disk (%s)." % error.strerror)
    if error.errno == errno.ENOENT:
        return Failure("package", "The package is not complete%s: `%s` is missing." % (where, error.filename))
    return Failure("package", "The package could not be unpacked%s (%s)." % (where, error.strerror or error))


def remove(target: str) -> None:
    """Remove the package folder."""
    from .files import remove_tree

    if os.path.isdir(target) and not stat.S_ISLNK(os.lstat(target).st_mode):
        remove_tree(os.fsencode(target))
