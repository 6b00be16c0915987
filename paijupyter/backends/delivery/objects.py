"""Packages in a bucket of an S3-compatible store. Tasks fetch them by an address that expires after a week.

``<prefix>/<sha256>.tar.gz`` is the archive of a package, ``<prefix>/<sha256>.json`` its facts, written last:
where it is, the archive is whole. Outputs come back by it, too, as objects that the caller names.
"""

from __future__ import annotations

import json
import tempfile
import urllib.error
import urllib.request
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from paijupyter.backends.base import Package
from paijupyter.backends.delivery import archive, signing
from paijupyter.backends.delivery.archive import Archive
from paijupyter.backends.delivery.signing import Credentials
from paijupyter.backends.delivery.stores import ObjectStore
from paijupyter.errors import PaiJupyterError

_SECONDS = 600.0
_SHORT = 900
"""Seconds for which addresses that this host itself uses are valid."""


def put(package: Package, store: ObjectStore, staging: Path) -> tuple[Archive, str]:
    """See that the package's archive is in the store; return its facts and the address for tasks. Blocking.

    Raises:
        PaiJupyterError: ``package-not-sent`` without credentials, or if the store refuses.
    """
    who = _credentials(store)
    try:
        facts = _facts(package, store, who) or _upload(package, store, who, staging)
    except urllib.error.HTTPError as error:
        with error:
            raise _failed(store, f"it answered {error.code} {error.reason}") from error
    except OSError as error:
        raise _failed(store, str(getattr(error, "reason", error))) from error
    url = _url(store, f"{package.sha256}.tar.gz", store.inside or store.endpoint)
    return facts, signing.signed("GET", url, store.region, who, seconds=signing.LONGEST_SECONDS, now=_now())


def writing(store: ObjectStore, name: str) -> str:
    """Return an address by which a task may write one object for a week.

    Args:
        store: the bucket.
        name: of the object, below the store's prefix.

    Raises:
        PaiJupyterError: ``package-not-sent`` without credentials.
    """
    url = _url(store, name, store.inside or store.endpoint)
    who = _credentials(store)
    return signing.signed("PUT", url, store.region, who, seconds=signing.LONGEST_SECONDS, now=_now())


def reading(store: ObjectStore, name: str) -> Any:
    """Return the answer with an object's content. Blocking.

    Raises:
        OSError: ``urllib.error.HTTPError`` of 403 or 404 if there is none.
        PaiJupyterError: ``package-not-sent`` without credentials.
    """
    return _request("GET", name, store, _credentials(store))


def _credentials(store: ObjectStore) -> Credentials:
    who = signing.credentials(store.profile)
    if who is None:
        raise _failed(store, "this host has no credentials for it (AWS_ACCESS_KEY_ID or ~/.aws/credentials)")
    return who


def _facts(package: Package, store: ObjectStore, who: Credentials) -> Archive | None:
    try:
        with _request("GET", f"{package.sha256}.json", store, who) as answer:
            found = json.loads(answer.read(10_000))
            return Archive(str(found["sha256"]), int(found["bytes"]))
    except urllib.error.HTTPError as error:
        error.close()
        # Without the right to list a bucket, what is not there is forbidden.
        if error.code not in (403, 404):
            raise
        return None
    except (ValueError, KeyError, TypeError):
        return None


def _upload(package: Package, store: ObjectStore, who: Credentials, staging: Path) -> Archive:
    staging.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=staging) as file:
        facts = archive.to_file(package, file)
        file.seek(0)
        _request("PUT", f"{package.sha256}.tar.gz", store, who, file, facts.size).close()
    told = json.dumps({"sha256": facts.sha256, "bytes": facts.size}).encode()
    _request("PUT", f"{package.sha256}.json", store, who, told, len(told)).close()
    return facts


def _request(
    method: str,
    name: str,
    store: ObjectStore,
    who: Credentials,
    body: IO[bytes] | bytes | None = None,
    size: int = 0,
) -> Any:
    url = _url(store, name, store.endpoint)
    address = signing.signed(method, url, store.region, who, seconds=_SHORT, now=_now())
    headers = {"content-length": str(size), "content-type": "application/octet-stream"} if body else {}
    request = urllib.request.Request(address, body, headers, method=method)  # noqa: S310 - http(s): settings
    return urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310


def _url(store: ObjectStore, name: str, endpoint: str) -> str:
    key = quote(f"{store.prefix.strip('/')}/{name}".lstrip("/"))
    if endpoint:
        return f"{endpoint}/{quote(store.bucket)}/{key}"
    return f"https://{store.bucket}.s3.{store.region}.amazonaws.com/{key}"


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _failed(store: ObjectStore, why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "package-not-sent",
        f"Package did not reach bucket `{store.bucket}`: {why}.",
        "Correct `packageObject` of the profile, or its credentials on this host.",
        502,
    )
