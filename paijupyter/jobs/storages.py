"""Storages of the profiles: list, look into, put, remove. Only what lies in a folder of this host."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paijupyter.backends.base import HasStorages
from paijupyter.data import storages as data
from paijupyter.data.storages import Storage
from paijupyter.errors import Conflict, NotFound, PaiJupyterError
from paijupyter.jobs.profiles import ProfileFiles
from paijupyter.jobs.watchers import Backends

_CHUNK = 1 << 20


class Storages:
    """What ``paijob data`` does, on this side.

    Args:
        backends: who knows storages.
        profiles: the profile files, for the default profile.
    """

    def __init__(self, backends: Backends, profiles: ProfileFiles) -> None:
        self._backends = backends
        self._profiles = profiles

    async def list(self, profile: str | None = None) -> dict[str, Any]:
        """Return ``{profile, storages}`` of a profile, by default of the default one."""
        name, found = await self._of(profile)
        return {"profile": name, "storages": [found[each].to_json() for each in sorted(found)]}

    async def entries(self, storage: str, path: str = "", profile: str | None = None) -> dict[str, Any]:
        """Return ``{entries}``: what lies directly in a folder, or the one file.

        Raises:
            NotFound: there is no such storage or path.
        """
        found = await self._one(storage, profile)
        return {"entries": await asyncio.to_thread(data.listed, found, path)}

    async def remove(
        self, storage: str, path: str, *, recursive: bool = False, profile: str | None = None
    ) -> None:
        """Remove a file, or with ``recursive`` a folder and all in it.

        Raises:
            NotFound: there is nothing.
            PaiJupyterError: ``read-only``, ``is-folder``, ``invalid-path``.
        """
        found = await self._one(storage, profile)
        await asyncio.to_thread(data.removed, found, path, recursive=recursive)

    async def begin(
        self, storage: str, path: str, size: int, sha256: str, profile: str | None = None
    ) -> dict[str, Any]:
        """Say how much of a file is there already: ``{offset, done}``.

        Raises:
            Conflict: ``is-folder`` if a folder has that path.
            PaiJupyterError: ``read-only``, ``invalid-path``.
        """
        found = await self._one(storage, profile)
        return await asyncio.to_thread(_begin, found, path, size, sha256)

    async def receive(
        self,
        storage: str,
        path: str,
        sha256: str,
        offset: int,
        size: int,
        chunks: Iterable[bytes],
        profile: str | None = None,
    ) -> dict[str, Any]:
        """Take bytes of a file from an offset on; the last one makes it appear. ``{offset, done}``.

        Raises:
            Conflict: ``upload-offset`` if it is not where the bytes that are there end.
            PaiJupyterError: ``upload-mismatch`` if the whole has another hash.
        """
        found = await self._one(storage, profile)
        return await asyncio.to_thread(_receive, found, path, sha256, offset, size, chunks)

    async def _of(self, profile: str | None) -> tuple[str, Mapping[str, Storage]]:
        name = self._profiles.read().get(profile).name
        backend = await self._backends.of(name)
        return name, backend.storages() if isinstance(backend, HasStorages) else {}

    async def _one(self, storage: str, profile: str | None) -> Storage:
        name, found = await self._of(profile)
        if storage not in found:
            known = ", ".join(sorted(found)) or "none"
            raise NotFound("Storage", storage, f"Profile `{name}` has: {known}.")
        return found[storage]


def _begin(storage: Storage, path: str, size: int, sha256: str) -> dict[str, Any]:
    data.writable(storage)
    target, draft = _places(storage, path, sha256)
    if target.is_dir():
        raise Conflict("is-folder", f"`{storage.name}:{path}` is a folder.", "Name the file in it.")
    if target.is_file() and target.stat().st_size == size and _hash(target) == sha256:
        return {"offset": size, "done": True}
    there = draft.stat().st_size if draft.is_file() else 0
    if there > size:
        draft.unlink()
        there = 0
    return {"offset": there, "done": False}


def _receive(
    storage: Storage, path: str, sha256: str, offset: int, size: int, chunks: Iterable[bytes]
) -> dict[str, Any]:
    data.writable(storage)
    target, draft = _places(storage, path, sha256)
    target.parent.mkdir(parents=True, exist_ok=True)
    data.inside(storage, path)  # once more, now that the folders are there
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(draft, flags, 0o666), "ab") as file:
        # An upload that broke off may not have been noticed yet: its last bytes come first.
        fcntl.flock(file, fcntl.LOCK_EX)
        there = os.fstat(file.fileno()).st_size
        if there != offset:
            raise Conflict(
                "upload-offset", f"`{path}` is there up to byte {there}, not {offset}.", "Ask again."
            )
        for chunk in chunks:
            there += len(chunk)
            if there > size:
                raise _mismatch(draft, path, "it is longer than was said")
            file.write(chunk)
            file.flush()  # what has come stays, if the rest never does
        os.fsync(file.fileno())
    if there < size:
        return {"offset": there, "done": False}
    if _hash(draft) != sha256:
        raise _mismatch(draft, path, "its bytes have another hash")
    try:
        draft.replace(target)
    except OSError as error:
        raise Conflict(
            "is-folder", f"`{storage.name}:{path}` cannot be written: {error.strerror}."
        ) from error
    return {"offset": there, "done": True}


def _places(storage: Storage, path: str, sha256: str) -> tuple[Path, Path]:
    target = data.inside(storage, path)
    if target == data.inside(storage, "") or path.endswith("/"):
        raise PaiJupyterError("invalid-path", f"`{storage.name}:{path}` names no file.", "Add its name.")
    return target, target.with_name(f".{target.name}.{sha256}.upload")


def _mismatch(draft: Path, path: str, why: str) -> PaiJupyterError:
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()
    return PaiJupyterError("upload-mismatch", f"`{path}` did not arrive: {why}.", "Send it again.", 422)


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
