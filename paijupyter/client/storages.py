"""Files into the storages of a profile: what is there already is not sent again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paijupyter.client.transport import Unreachable, quoted
from paijupyter.errors import PaiJupyterError, UsageProblem

if TYPE_CHECKING:
    from paijupyter.client.client import JobsClient

Progress = Callable[[int, int], None]
_TRIES = 5
_CHUNK = 1 << 18


class StoragesClient:
    """The storages of the job server.

    Args:
        client: speaks to it.
        profile: name of a profile; None for the default one.
    """

    def __init__(self, client: JobsClient, profile: str | None = None) -> None:
        self._client = client
        self._profile = profile

    def all(self) -> dict[str, Any]:
        """Return ``{profile, storages}``."""
        return dict(self._client.ask("GET", "/v1/storages", {"profile": self._profile}))

    def entries(self, storage: str, path: str = "") -> list[dict[str, Any]]:
        """Return what lies in a folder, or the one file: ``{name, path, folder, size, modified}`` each."""
        query = {"profile": self._profile, "path": path}
        return list(self._client.ask("GET", quoted("storages", storage, "files"), query)["entries"])

    def remove(self, storage: str, path: str, *, recursive: bool = False) -> None:
        """Remove a file, or with ``recursive`` a folder and all in it."""
        query = {"profile": self._profile, "recursive": int(recursive)}
        self._client.ask("DELETE", quoted("storages", storage, "files", path), query)

    def put(self, source: Path, storage: str, path: str, progress: Progress | None = None) -> int:
        """Send a file, or a folder with all in it; return how many files are there then.

        A file appears when it is whole. Asked again after an interrupt, it goes on where it was.

        Args:
            source: the file or folder.
            storage: name of the storage.
            path: where it goes; below it, under its own name, if that is a folder or ends with ``/``.
            progress: called with bytes done and bytes in all.

        Raises:
            UsageProblem: the source does not exist, or has something that is no file.
            PaiJupyterError: what the server says.
        """
        target = self._target(source, storage, path)
        files = list(_files(source, target))
        total = sum(place.stat().st_size for place, _ in files)
        meter = _Meter(progress, total)
        for place, name in files:
            self._file(place, storage, name, meter)
        return len(files)

    def _target(self, source: Path, storage: str, path: str) -> str:
        clean = path.strip("/")
        if not clean or path.endswith("/"):
            return f"{clean}/{source.name}".lstrip("/")
        try:
            entries = self.entries(storage, clean)
        except PaiJupyterError as error:
            if error.status != 404:
                raise
            return clean
        is_file = len(entries) == 1 and entries[0]["path"] == clean and not entries[0]["folder"]
        return clean if is_file else f"{clean}/{source.name}"

    def _file(self, place: Path, storage: str, path: str, meter: _Meter) -> None:
        size, sha256 = place.stat().st_size, _hash(place)
        query = {"profile": self._profile, "path": path, "size": size}
        failed = 0
        while True:
            body = {"path": path, "size": size, "sha256": sha256}
            there = self._client.ask(
                "POST", quoted("storages", storage, "uploads"), {"profile": self._profile}, body
            )
            before = meter.done
            meter.advance(there["offset"])
            if there["done"]:
                return
            try:
                url = quoted("storages", storage, "uploads", sha256)
                chunks = _chunks(place, there["offset"], meter)
                with self._client.open("PUT", url, {**query, "offset": there["offset"]}, chunks) as answer:
                    answer.read()
                return
            except PaiJupyterError as error:
                # An upload of before that broke off may have grown since it was asked for.
                grown = error.code == "upload-offset"
                meter.done = before
                if not (grown or isinstance(error, Unreachable)) or failed >= _TRIES:
                    raise
                if not grown:
                    self._client.again(failed)
                failed += 1


class _Meter:
    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self.done = 0

    def advance(self, count: int) -> None:
        self.done += count
        if self._progress:
            self._progress(min(self.done, self._total), self._total)


def split(text: str) -> tuple[str, str]:
    """Take ``STORAGE:path`` apart.

    Raises:
        UsageProblem: it has no storage.
    """
    storage, colon, path = text.partition(":")
    if not storage or "/" in storage:
        raise UsageProblem(
            f"Place `{text[:60]}` names no storage.", "Write STORAGE:path; `data ls` lists them."
        )
    return storage, path if colon else ""


def _files(source: Path, target: str) -> Iterator[tuple[Path, str]]:
    if source.is_file():
        yield source, target
        return
    if not source.is_dir():
        raise UsageProblem(f"Path `{source}` does not exist.", "Name a file or a folder of this machine.")
    for folder, folders, names in os.walk(source):
        folders.sort()
        for name in sorted(names):
            place = Path(folder, name)
            if not place.is_file():
                raise UsageProblem(f"Path `{place}` is no regular file.", "Leave it out.")
            yield place, f"{target}/{place.relative_to(source).as_posix()}"


def _hash(place: Path) -> str:
    digest = hashlib.sha256()
    with place.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _chunks(place: Path, offset: int, meter: _Meter) -> Iterator[bytes]:
    with place.open("rb") as file:
        file.seek(offset)
        while chunk := file.read(_CHUNK):
            yield chunk
            meter.advance(len(chunk))
