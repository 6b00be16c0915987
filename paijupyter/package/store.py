"""The seam of package stores: what a snapshot needs of the place it is stored in.

:class:`~paijupyter.package.local_store.LocalStore` keeps packages on this host; the client has one that sends
them to the engine. A snapshot asks what is missing, puts that, and commits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from paijupyter.package.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Missing:
    """What a store still needs for a package.

    Attributes:
        pack: whether the pack is missing.
        blobs: hashes of the missing large files.
    """

    pack: bool
    blobs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.pack or bool(self.blobs)


class Store(Protocol):
    """A place that keeps trainer packages. Every method may be called again with the same arguments."""

    def missing(self, manifest: Manifest) -> Missing:
        """Say what has to be put before :meth:`commit`; what is there already is kept for a while."""

    def put_pack(self, manifest: Manifest, chunks: Iterable[bytes]) -> None:
        """Take the pack of a package.

        Raises:
            PaiJupyterError: ``package-mismatch`` if the bytes are not those of the manifest.
        """

    def put_blob(self, sha256: str, chunks: Iterable[bytes]) -> None:
        """Take one large file.

        Raises:
            PaiJupyterError: ``package-mismatch`` if the bytes have another hash.
        """

    def commit(self, manifest: Manifest) -> None:
        """Make the package exist.

        Raises:
            PaiJupyterError: ``package-incomplete`` if anything is missing; then nothing exists.
        """


@runtime_checkable
class AdoptingStore(Protocol):
    """A store on this host that takes over whole files instead of reading their bytes again."""

    @property
    def staging(self) -> Path:
        """A private folder on the store's file system for files to be adopted."""

    def adopt_pack(self, manifest: Manifest, file: Path) -> None:
        """Take over a file below :attr:`staging` whose bytes the caller has hashed already."""

    def adopt_blob(self, sha256: str, file: Path) -> None:
        """Take over a large file below :attr:`staging` whose bytes the caller has hashed already."""
