"""Object stores and WebHDFS, by fsspec (the extra ``data``): fetched on the engine's host, with its settings.

Credentials are a secret of the job, or one that the profile refers to, or come from where the store's own
tools look for them (``~/.aws``, ``FSSPEC_…`` variables, ``~/.config/fsspec``). None of them is in a document.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from paijupyter.data.kinds import Progress, Where
from paijupyter.errors import MissingExtra, NotFound, PaiJupyterError
from paijupyter.protocol.data import DataSource, scheme_of, shown

_CHUNK = 1 << 20
_DRIVERS = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
_OPENING = (
    "See its URI, and what opens the store: secret=NAME with --secret NAME=ask (or keyring:NAME), `stores` "
    "of the profile, or the store's own settings on this machine."
)
_SHORT = 4  # characters; what is shorter would hide half of a message


class ObjectKind:
    """A file or all below a prefix, behind any URI that fsspec knows (``s3://``, ``gs://``, ``abfs://``)."""

    where: ClassVar[Where] = "engine"

    def __init__(self, source: DataSource) -> None:
        self._source = source
        self._opened: tuple[Any, str] | None = None
        self._options: Mapping[str, Any] = {}
        self._credentials: Mapping[str, Any] = {}

    def open_with(self, options: Mapping[str, Any], credentials: str) -> None:
        """Take options of the file system, and ``ID:KEY`` (S3), a token, or a JSON object of options."""
        self._options = options
        self._credentials = _understood(credentials, scheme_of(self._source.uri)) if credentials else {}

    def problems(self) -> Iterable[tuple[str, str]]:
        """Say what has to be installed."""
        if importlib.util.find_spec("fsspec") is None:
            missing = MissingExtra("data", "it")
            yield "needs the extra `data`", missing.hint
            return
        driver = _DRIVERS.get(scheme_of(self._source.uri))
        if driver and importlib.util.find_spec(driver) is None:
            extra = "'paijupyter[s3]'" if driver == "s3fs" else driver
            yield f"needs the package `{driver}`", f"Install it with: pip install {extra}"

    def stamp(self) -> str:
        """Return a digest of names, sizes and what the store says of each file, "" if it says nothing."""
        with self._told():
            system, path = self._open()
            files = sorted((name, _mark(info)) for name, info in self._files(system, path).items())
        if not all(mark for _, mark in files):
            return ""
        # Two stores may have a bucket of the same name.
        return hashlib.sha256(repr((sorted(self._options.items()), files)).encode()).hexdigest()

    def fetch(self, target: Path, progress: Progress) -> None:
        """Copy the file, or everything below the prefix; whole files of an earlier try are kept."""
        with self._told():
            system, path = self._open()
            files = self._files(system, path)
            total = sum(int(info.get("size") or 0) for info in files.values())
            done = 0
            for name, info in sorted(files.items()):
                place = target / name if name else target
                for count in _copy(system, info, place):
                    done += count
                    progress(done, total)

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            if importlib.util.find_spec("fsspec") is None:
                raise MissingExtra("data", f"Data `{self._source.name}`")
            from fsspec.core import url_to_fs

            uri, options = self._url()
            self._opened = url_to_fs(uri, **options, **{**self._options, **self._credentials})
        return self._opened

    def _url(self) -> tuple[str, dict[str, Any]]:
        """Return the URI as fsspec knows it, and options of its file system."""
        return self._source.uri, {}

    def _files(self, system: Any, path: str) -> dict[str, Any]:
        """Return the files by their names below the source; "" for one that is itself a file."""
        info = system.info(path)
        if info["type"] == "file":
            return {"": info}
        root = info["name"].rstrip("/")
        found = system.find(path, detail=True)
        files = {name[len(root) :].lstrip("/"): each for name, each in found.items()}
        for name in files:
            if not name or {"", ".", ".."} & set(name.split("/")):
                raise self._error(f"has a file with the unusable name `{name}`")
        return files

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Make errors of a store errors for people."""
        try:
            yield
        except PaiJupyterError:
            raise
        except FileNotFoundError:
            raise NotFound("Data", shown(self._source.uri), "See its URI.") from None
        except ImportError as error:
            raise self._error(f"needs a package that is not installed: {error}") from error
        except PermissionError as error:
            words = f"is not given to us by its store: {self._said(error)}"
            raise self._error(words, "data-refused") from None
        except Exception as error:  # every store has exceptions of its own
            raise self._error(f"cannot be fetched: {type(error).__name__}: {self._said(error)}") from None

    def _said(self, error: Exception) -> str:
        """Return what a store says, in one line and without what opened it."""
        text = " ".join(str(error).split()).rstrip(".")
        for value in map(str, self._credentials.values()):
            if len(value) >= _SHORT:
                text = text.replace(value, "******")
        return text

    def _error(self, words: str, code: str = "data-store") -> PaiJupyterError:
        return PaiJupyterError(code, f"Data `{self._source.name}` {words}.", _OPENING, 422)


def _understood(credentials: str, scheme: str) -> Mapping[str, Any]:
    """Return options of a file system from the value of a secret."""
    text = credentials.strip()
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            raise _unusable("is no JSON object, though it begins like one") from None
        return dict(found)
    if scheme not in ("s3", "s3a"):
        return {"token": text}
    name, colon, key = text.partition(":")
    if not colon or not name or not key:
        raise _unusable("has not the form ID:KEY")
    return {"key": name, "secret": key}


def _unusable(words: str) -> PaiJupyterError:
    hint = "For S3 it is ID:KEY; for any store a JSON object of options that its fsspec driver knows."
    return PaiJupyterError("data-credentials", f"Secret that opens the store {words}.", hint, 422)


class WebHdfsKind(ObjectKind):
    """A file or folder of an HDFS, over its WebHDFS interface: ``webhdfs://host:9870/path``."""

    def problems(self) -> Iterable[tuple[str, str]]:
        """Say what has to be installed."""
        yield from super().problems()
        if importlib.util.find_spec("requests") is None:
            yield "needs the package `requests`", MissingExtra("data", "it").hint

    def _url(self) -> tuple[str, dict[str, Any]]:
        if scheme_of(self._source.uri) == "swebhdfs":
            return f"webhdfs:{self._source.uri.partition(':')[2]}", {"use_https": True}
        return super()._url()


def _mark(info: dict[str, Any]) -> str:
    """Return what changes with a file's content, as far as its store tells."""
    size = info.get("size")
    for name in ("ETag", "etag", "md5Hash", "crc32c", "LastModified", "modificationTime", "mtime", "created"):
        if info.get(name):
            return f"{size} {info[name]}"
    return ""


def _copy(system: Any, info: dict[str, Any], place: Path) -> Iterator[int]:
    """Copy one file under another name first; a file of the right size is there already."""
    size = info.get("size")
    if place.is_file() and size is not None and place.stat().st_size == size:
        yield int(size)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}.part")
    start = draft.stat().st_size if draft.exists() else 0
    if size is None or start > size:
        draft.unlink(missing_ok=True)
        start = 0
    if start:
        yield start
    with draft.open("ab") as out, system.open(info["name"], "rb") as file:
        if start:
            file.seek(start)
        while chunk := file.read(_CHUNK if size is None else min(_CHUNK, size - start)):
            start += len(chunk)
            # Some file systems take an error's text for content: fewer bytes than there must be are none.
            if size is not None and len(chunk) < _CHUNK and start != size:
                raise OSError(f"`{place.name}` broke off before byte {start} of {size}")
            out.write(chunk)
            yield len(chunk)
        out.flush()
        os.fsync(out.fileno())
    if size is not None and start != size:
        raise OSError(f"`{place.name}` ended after {start} of {size} bytes")
    draft.replace(place)
