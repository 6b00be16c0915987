"""The second half of a snapshot: give the store what it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from paijupyter.errors import PaiJupyterError
from paijupyter.package.identify import Contents, Moved
from paijupyter.package.manifest import Entry, Manifest
from paijupyter.package.progress import Meter
from paijupyter.package.reading import NOTEBOOK, FileChanging, Reading, chunks, read_whole
from paijupyter.package.staging import Staging
from paijupyter.package.store import Store


class Delivery:
    """Delivers one package.

    Args:
        contents: all of it identified.
        manifest: what was found.
        pool: threads to read with.
        staging: has what was copied in passing.
        meter: is told.
    """

    def __init__(
        self,
        contents: Contents,
        manifest: Manifest,
        pool: ThreadPoolExecutor,
        staging: Staging,
        meter: Meter,
    ) -> None:
        self._contents = contents
        self._manifest = manifest
        self._pool = pool
        self._staging = staging
        self._meter = meter

    def run(self, store: Store) -> None:
        """Put what is missing, and commit.

        Raises:
            Moved: if a file that has to be read again is not what it was.
        """
        missing = store.missing(self._manifest)
        if missing.pack:
            self._staging.hand_over_pack(self._manifest, self._contents.pack or self._read_pack())
        entries = {entry.sha256: entry for entry in self._manifest.entries} if missing.blobs else {}
        for sha256 in missing.blobs:
            copied = self._contents.blobs.get(sha256)
            if copied:
                self._staging.hand_over_blob(sha256, copied)
            else:
                self._put_again(store, entries[sha256])
        store.commit(self._manifest)

    def _read_pack(self) -> Path:
        """Read all small files (most were only looked at so far) into a staged pack."""
        expected = {entry.path: entry.sha256 for entry in self._manifest.entries}
        files = [file for file in self._contents.small if file.path in expected]
        self._meter.expect(sum(file.size for file in files))
        pack, path = self._staging.file()
        with pack:
            for file, outcome in zip(files, self._contents.read_small(self._pool, files), strict=True):
                if not isinstance(outcome, Reading) or outcome.digest.hex() != expected[file.path]:
                    raise Moved(file.path)
                if outcome.is_small:
                    pack.write(outcome.data)
                self._meter.advance(file.size)
        return path

    def _put_again(self, store: Store, entry: Entry) -> None:
        """Read a large file for the store, which checks its hash."""
        self._meter.expect(entry.size)
        try:
            store.put_blob(entry.sha256, self._meter.passing(self._bytes(entry.path)))
        except PaiJupyterError as error:
            if error.code == "package-mismatch":
                raise Moved(entry.path) from error
            raise

    def _bytes(self, path: str) -> Iterator[bytes]:
        contents = self._contents
        given = contents.given.get(path)
        try:
            if given:
                yield given.data
            elif path.endswith(NOTEBOOK):
                file = next(file for file in (*contents.small, *contents.large) if file.path == path)
                yield read_whole(contents.root, file).data
            else:
                yield from chunks(f"{contents.root}/{path}")
        except (FileChanging, OSError) as error:
            raise Moved(path) from error
