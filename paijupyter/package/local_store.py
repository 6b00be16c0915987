"""Trainer packages on this host: ``packages/<sha256>/{manifest.json,pack}`` and ``blobs/<aa>/<sha256>``.

A package exists once its ``manifest.json`` does, and that is written last. Every file comes by way of the
staging folder: written, checked against its hash, fsynced, renamed. So a process that is killed at any moment
leaves nothing half done, and processes that store the same thing at once do no harm to each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import BinaryIO

from paijupyter.errors import NotFound, PaiJupyterError, Problem
from paijupyter.package.manifest import LINK, SMALL, Entry, Manifest
from paijupyter.package.store import Missing

_CHUNK = 1 << 20
_LONGEST_SNAPSHOT = 24 * 3600.0
_STAT_CACHE = 30 * 24 * 3600.0
RECENT = 3600.0
"""Seconds in which whatever was stored or asked for is not swept: a submission may be about to use it."""


class LocalStore:
    """A :class:`~paijupyter.package.store.Store` below the data folder of this host."""

    def __init__(self, data: Path) -> None:
        self.packages = data / "packages"
        self.blobs = data / "blobs"
        self._staging = data / "staging"
        self._stat_cache = data / "stat-cache"

    # -- the Store protocol ---------------------------------------------------------------------------

    def missing(self, manifest: Manifest) -> Missing:
        """Say what has to be put before :meth:`commit`; what is there already is kept for an hour."""
        pack = not _has(self.folder(manifest.sha256) / "pack", manifest.pack_size)
        blobs = [sha for sha, size in manifest.blobs.items() if not _has(self._blob(sha), size)]
        return Missing(pack, tuple(blobs))

    def put_pack(self, manifest: Manifest, chunks: Iterable[bytes]) -> None:
        """Take the pack of a package; each of its files is checked as it comes.

        Raises:
            PaiJupyterError: ``package-mismatch`` if the bytes are not those of the manifest.
        """
        with self._staged() as (file, path):
            check = _PackCheck(manifest.pack)
            for chunk in chunks:
                check.feed(chunk)
                file.write(chunk)
            wrong = check.wrong()
            if wrong:
                raise _mismatch(f"the pack's bytes of `{wrong}` are not those of the manifest")
            file.flush()
            self.adopt_pack(manifest, path)

    def put_blob(self, sha256: str, chunks: Iterable[bytes]) -> None:
        """Take one large file.

        Raises:
            PaiJupyterError: ``package-mismatch`` if the bytes have another hash.
        """
        with self._staged() as (file, path):
            digest = hashlib.sha256()
            for chunk in chunks:
                digest.update(chunk)
                file.write(chunk)
            if digest.hexdigest() != sha256:
                raise _mismatch(f"the bytes of blob {sha256[:12]} have another hash")
            file.flush()
            self.adopt_blob(sha256, path)

    def commit(self, manifest: Manifest) -> None:
        """Make the package exist; committing it again does nothing.

        Raises:
            PaiJupyterError: ``package-incomplete`` if anything is missing; then nothing exists.
        """
        missing = self.missing(manifest)
        if missing:
            what = ["its pack"] if missing.pack else []
            what += [f"{len(missing.blobs)} large files"] if missing.blobs else []
            raise PaiJupyterError(
                "package-incomplete",
                f"Package {manifest.sha256[:12]} is not complete: {' and '.join(what)} did not arrive.",
                "Submit again; only what is missing travels.",
                409,
            )
        target = self.folder(manifest.sha256) / "manifest.json"
        if _has(target, len(manifest.data)):
            return
        with self._staged() as (file, path):
            file.write(manifest.data)
            file.flush()
            _settle(path, target)
        _sync(target.parent)
        _sync(self.packages)

    # -- the AdoptingStore protocol -------------------------------------------------------------------

    @property
    def staging(self) -> Path:
        """A private folder on the store's file system for files to be adopted."""
        _make_private(self._staging)
        return self._staging

    def adopt_pack(self, manifest: Manifest, file: Path) -> None:
        """Take over a file below :attr:`staging` whose bytes the caller has hashed already."""
        if file.stat().st_size != manifest.pack_size:
            raise _mismatch("the pack's size is not that of the manifest")
        _settle(file, self.folder(manifest.sha256) / "pack")

    def adopt_blob(self, sha256: str, file: Path) -> None:
        """Take over a large file below :attr:`staging` whose bytes the caller has hashed already."""
        target = self._blob(sha256)
        _settle(file, target)
        _sync(target.parent)

    # -- what is there --------------------------------------------------------------------------------

    def folder(self, sha256: str) -> Path:
        """Return where a package's ``manifest.json`` and ``pack`` lie, whether or not it exists.

        Raises:
            NotFound: if this is no sha256.
        """
        if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise NotFound("Package", sha256)
        return self.packages / sha256

    def __contains__(self, sha256: object) -> bool:
        return isinstance(sha256, str) and (self.folder(sha256) / "manifest.json").is_file()

    def __iter__(self) -> Iterator[str]:
        """Yield the hash of every package that exists."""
        if self.packages.is_dir():
            yield from sorted(path.parent.name for path in self.packages.glob("*/manifest.json"))

    def manifest(self, sha256: str) -> Manifest:
        """Return the manifest of a package.

        Raises:
            NotFound: if it does not exist.
            PaiJupyterError: ``package-damaged`` if the file has another hash than its name.
        """
        try:
            data = (self.folder(sha256) / "manifest.json").read_bytes()
        except FileNotFoundError:
            raise NotFound("Package", sha256, "Submit the folder again to store it.") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise _damaged(sha256, "its manifest has another hash", self.folder(sha256))
        return Manifest.from_bytes(data)

    def content(self, sha256: str, path: str) -> bytes:
        """Return the bytes of one file of a package.

        Raises:
            NotFound: if there is no such package or file.
            PaiJupyterError: ``package-damaged`` if its bytes are not those of the manifest.
        """
        manifest = self.manifest(sha256)
        offset = 0
        for entry in manifest.entries:
            in_pack = entry.size < SMALL or entry.mode == LINK
            if entry.path == path:
                place = self.folder(sha256) / "pack" if in_pack else self._blob(entry.sha256)
                return _part(sha256, place, entry, offset if in_pack else 0)
            offset += entry.size if in_pack else 0
        raise NotFound("File", path, f"Package {sha256[:12]} has no such file.")

    def verify(self, sha256: str) -> list[Problem]:
        """Read a whole package again and return everything that is damaged, each with its file.

        Raises:
            NotFound: if it does not exist.
        """
        try:
            manifest = self.manifest(sha256)
        except NotFound:
            raise
        except PaiJupyterError as damage:
            return [Problem("error", damage.code, damage.message, hint=damage.hint)]
        pack = self.folder(sha256) / "pack"
        places = dict.fromkeys(_damaged_in_pack(pack, manifest.pack), pack)
        bad_blobs = {blob for blob in manifest.blobs if _hash(self._blob(blob)) != blob}
        places |= {e.path: self._blob(e.sha256) for e in manifest.entries if e.sha256 in bad_blobs}
        found = []
        for path, place in places.items():
            error = _damaged(sha256, f"the stored bytes of `{path}` have another hash", place)
            found.append(Problem("error", error.code, error.message, file=path, hint=error.hint))
        return found

    def sweep(self, keep: Set[str], older_than: float = RECENT) -> int:
        """Remove packages that nobody needs, blobs of no package, and what killed processes left.

        Args:
            keep: hashes of the packages to keep.
            older_than: seconds; whatever was stored or asked for since then stays.

        Returns:
            The bytes that were freed.
        """
        before = time.time() - older_than
        freed = 0
        needed: set[str] = set()
        for folder in _children(self.packages):
            if folder.name not in keep and _newest(folder) < before:
                freed += _remove(folder)
                continue
            # A package whose manifest cannot be read keeps no blob alive; verify() tells about it.
            with contextlib.suppress(PaiJupyterError):
                needed |= self.manifest(folder.name).blobs.keys()
        for file in (file for shelf in _children(self.blobs) for file in _children(shelf)):
            if file.name not in needed and _newest(file) < before:
                freed += _remove(file)
        for folder, age in ((self._staging, _LONGEST_SNAPSHOT), (self._stat_cache, _STAT_CACHE)):
            for file in _children(folder):
                if _newest(file) < before - age:
                    freed += _remove(file)
        return freed

    def _blob(self, sha256: str) -> Path:
        return self.blobs / sha256[:2] / sha256

    @contextlib.contextmanager
    def _staged(self) -> Iterator[tuple[BinaryIO, Path]]:
        """Open a new private file that is gone afterwards unless it was renamed."""
        number, name = tempfile.mkstemp(dir=self.staging)
        path = Path(name)
        try:
            with open(number, "wb") as file:
                yield file, path
        finally:
            path.unlink(missing_ok=True)


class _PackCheck:
    """Checks a pack against its manifest while its bytes pass by in chunks of any size."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = iter(entries)
        self._digest = hashlib.sha256()
        self._entry: Entry | None = None
        self._left = 0
        self._wrong: str | None = None
        self._next()

    def feed(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view and self._entry is not None:
            part = view[: self._left]
            self._digest.update(part)
            self._left -= len(part)
            view = view[len(part) :]
            if not self._left:
                self._next()
        if view:
            self._wrong = self._wrong or "what comes after the last file"

    def wrong(self) -> str | None:
        """Return the first file whose bytes are wrong or missing, or None."""
        return self._wrong or (self._entry.path if self._entry else None)

    def _next(self) -> None:
        """Close the entry whose bytes are complete, and any empty ones after it."""
        while True:
            if self._entry and self._digest.hexdigest() != self._entry.sha256:
                self._wrong = self._wrong or self._entry.path
            self._entry = next(self._entries, None)
            self._digest = hashlib.sha256()
            if self._entry is None or self._entry.size:
                self._left = self._entry.size if self._entry else 0
                return


def _part(sha256: str, place: Path, entry: Entry, offset: int) -> bytes:
    try:
        with place.open("rb") as file:
            file.seek(offset)
            data = file.read(entry.size)
    except OSError as error:
        raise _damaged(sha256, f"`{entry.path}` cannot be read", place) from error
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise _damaged(sha256, f"the stored bytes of `{entry.path}` have another hash", place)
    return data


def _damaged_in_pack(pack: Path, entries: Iterable[Entry]) -> Iterator[str]:
    try:
        file = pack.open("rb")
    except OSError:
        yield from (entry.path for entry in entries)
        return
    with file:
        for entry in entries:
            if hashlib.sha256(file.read(entry.size)).hexdigest() != entry.sha256:
                yield entry.path


def _hash(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
            return digest.hexdigest()
    except OSError:
        return None


def _has(path: Path, size: int) -> bool:
    """Say whether a stored file is there in full, and mark it as wanted so that no sweep takes it."""
    try:
        if path.stat().st_size != size:
            return False
        os.utime(path)
    except OSError:
        return False
    return True


def _settle(file: Path, target: Path) -> None:
    """Move a finished file to its place, replacing one that may be damaged; its bytes survive a power cut."""
    _sync(file)
    file.chmod(0o600)
    _make_private(target.parent)
    file.replace(target)


def _make_private(folder: Path) -> None:
    """Make a folder and those above it that are not there, all of them for the user alone."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _newest(path: Path) -> float:
    """Return when a file or anything in a package's folder was last stored or asked for."""
    times = [time.time()]
    with contextlib.suppress(FileNotFoundError):
        times = [path.stat().st_mtime, *(child.stat().st_mtime for child in _children(path))]
    return max(times)


def _remove(path: Path) -> int:
    size = 0
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir():
            size = sum(child.stat().st_size for child in _children(path))
            # The manifest goes first: from then on the package does not exist.
            (path / "manifest.json").unlink(missing_ok=True)
            shutil.rmtree(path)
        else:
            size = path.stat().st_size
            path.unlink()
    return size


def _mismatch(why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "package-mismatch",
        f"Package was not stored: {why}.",
        "A file changed on the way; submit again.",
        422,
    )


def _damaged(sha256: str, why: str, place: Path) -> PaiJupyterError:
    return PaiJupyterError(
        "package-damaged",
        f"Package {sha256[:12]} is damaged: {why}.",
        f"Remove `{place}`, then submit the folder again to store it anew.",
        500,
    )
