"""Packages in a Hadoop file system, by its HTTP interface (WebHDFS), which tasks read with no client.

``<path>/<sha256>.tar.gz`` is the archive of a package, ``<path>/<sha256>.json`` its facts, written last:
where it is, the archive is whole. Outputs come back by it, too, as files that the caller names.
"""

from __future__ import annotations

import json
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlencode

from paijupyter.backends.base import Package
from paijupyter.backends.delivery import archive
from paijupyter.backends.delivery.archive import Archive
from paijupyter.backends.openpai.settings import WebHdfs
from paijupyter.errors import PaiJupyterError

_SECONDS = 600.0


def put(package: Package, store: WebHdfs, staging: Path) -> tuple[Archive, str]:
    """See that the package's archive is there; return its facts and its address for tasks. Blocking.

    Raises:
        PaiJupyterError: ``package-not-sent`` if the file system refuses.
    """
    try:
        facts = _facts(package, store) or _upload(package, store, staging)
    except urllib.error.HTTPError as error:
        with error:
            raise _failed(store, f"it answered {error.code} {error.reason}") from error
    except OSError as error:
        raise _failed(store, str(getattr(error, "reason", error))) from error
    return facts, _url(store, f"{package.sha256}.tar.gz", "OPEN")


def writing(store: WebHdfs, folder: str) -> tuple[str, str]:
    """Return what stands before and behind a file's name in the address by which a task writes it.

    Args:
        store: the file system.
        folder: below the store's path, with a ``/`` at its end.
    """
    before, _, after = _url(store, f"{folder}*", "CREATE", overwrite="true", noredirect="true").partition(
        "%2A"
    )
    return before, after


def reading(store: WebHdfs, name: str) -> Any:
    """Return the answer with a file's content. Blocking.

    Raises:
        OSError: ``urllib.error.HTTPError`` of 404 if there is none.
    """
    return _send("GET", _url(store, name, "OPEN"))


def _facts(package: Package, store: WebHdfs) -> Archive | None:
    try:
        with _send("GET", _url(store, f"{package.sha256}.json", "OPEN")) as answer:
            found = json.loads(answer.read(10_000))
            return Archive(str(found["sha256"]), int(found["bytes"]))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 404:
            raise
        return None
    except (ValueError, KeyError, TypeError):
        return None


def _upload(package: Package, store: WebHdfs, staging: Path) -> Archive:
    staging.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=staging) as file:
        facts = archive.to_file(package, file)
        file.seek(0)
        _create(store, f"{package.sha256}.tar.gz", file, facts.size)
    told = json.dumps({"sha256": facts.sha256, "bytes": facts.size}).encode()
    _create(store, f"{package.sha256}.json", told, len(told))
    return facts


def _create(store: WebHdfs, name: str, body: IO[bytes] | bytes, size: int) -> None:
    """Create a file in the two steps of WebHDFS: the name node says which data node takes the content."""
    place = _url(store, name, "CREATE", overwrite="true", noredirect="true")
    try:
        with _send("PUT", place, b"") as answer:
            place = str(json.loads(answer.read(10_000) or b"{}").get("Location") or "")
    except urllib.error.HTTPError as error:  # an old one knows no `noredirect`
        with error:
            if error.code not in (301, 302, 307):
                raise
            place = str(error.headers.get("location") or "")
    if not place.startswith(("http://", "https://")):
        raise OSError("its name node named no data node")
    _send(
        "PUT", place, body, {"content-length": str(size), "content-type": "application/octet-stream"}
    ).close()


def _send(method: str, url: str, body: IO[bytes] | bytes | None = None, headers: Any = None) -> Any:
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)  # noqa: S310 - settings
    return urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310


def _url(store: WebHdfs, name: str, operation: str, **more: str) -> str:
    query = {"op": operation, **({"user.name": store.user} if store.user else {}), **more}
    return f"{store.url}/webhdfs/v1{quote(store.path)}/{quote(name)}?{urlencode(query)}"


def _failed(store: WebHdfs, why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "package-not-sent",
        f"Package did not reach {store.url}{store.path}: {why}.",
        "Correct `packageWebHdfs` of the profile, or take `webhdfs` out of its `packageWays`.",
        502,
    )
