"""A private folder for the files of one snapshot until the store has them; it is gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from paijupyter.package.manifest import Manifest
from paijupyter.package.progress import Meter
from paijupyter.package.reading import chunks
from paijupyter.package.store import AdoptingStore, Store


class Staging:
    """Files for a store: it adopts them if it is on this host, else it is sent their bytes."""

    def __init__(self, store: Store, meter: Meter) -> None:
        self._store = store
        self._meter = meter
        self._adopts = store if isinstance(store, AdoptingStore) else None
        self._numbers = count()

    def __enter__(self) -> Staging:
        self._folder = Path(tempfile.mkdtemp(dir=self._adopts.staging if self._adopts else None))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def copies_large(self) -> bool:
        """Whether a large file is best copied here while it is hashed, so that it is read once."""
        return self._adopts is not None

    def file(self) -> tuple[BinaryIO, Path]:
        """Open a new file of this folder for writing."""
        path = self._folder / str(next(self._numbers))
        return path.open("wb", buffering=1 << 20), path

    def hand_over_pack(self, manifest: Manifest, file: Path) -> None:
        """Give the store a pack."""
        if self._adopts:
            self._adopts.adopt_pack(manifest, file)
        else:
            self._meter.expect(manifest.pack_size)
            self._store.put_pack(manifest, self._meter.passing(chunks(file)))

    def hand_over_blob(self, sha256: str, file: Path) -> None:
        """Give the store a large file of this folder."""
        if self._adopts:
            self._adopts.adopt_blob(sha256, file)
        else:
            self._meter.expect(file.stat().st_size)
            self._store.put_blob(sha256, self._meter.passing(chunks(file)))
