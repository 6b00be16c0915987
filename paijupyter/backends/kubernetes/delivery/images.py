"""Packages as images of one layer in a registry, which pods mount as volumes (OCI distribution)."""

from __future__ import annotations

import hashlib
import json
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urljoin

from paijupyter.backends.base import Package
from paijupyter.backends.delivery.archive import members
from paijupyter.backends.kubernetes.settings import ImageStore
from paijupyter.errors import PaiJupyterError

_SECONDS = 600.0
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"


def push(package: Package, store: ImageStore, staging: Path) -> str:
    """See that the package is in the registry; return the digest of its image. Blocking.

    Raises:
        PaiJupyterError: ``package-not-sent`` if the registry refuses.
    """
    registry = _Registry(store)
    try:
        return registry.find(_tag(package)) or _push(registry, package, staging)
    except urllib.error.HTTPError as error:
        with error:
            raise _failed(store, f"it answered {error.code} {error.reason}") from error
    except OSError as error:
        raise _failed(store, str(getattr(error, "reason", error))) from error


def _push(registry: _Registry, package: Package, staging: Path) -> str:
    staging.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=staging) as layer:
        with tarfile.open(fileobj=layer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name, path in members(package):
                entry = tarfile.TarInfo(name)
                entry.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(entry, content)
        size = layer.tell()
        digest = _digest_of(layer)
        registry.put_blob(digest, layer, size)
    config = _json(
        {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [digest]}}
    )
    registry.put_blob(_digest(config), config, len(config))
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": _CONFIG, "digest": _digest(config), "size": len(config)},
        "layers": [{"mediaType": _LAYER, "digest": digest, "size": size}],
    }
    return registry.put_manifest(_tag(package), _json(manifest))


class _Registry:
    """One repository of a registry."""

    def __init__(self, store: ImageStore) -> None:
        host, _, name = store.repository.partition("/")
        self._root = f"{'http' if store.plain_http else 'https'}://{host}/v2/{name}"

    def find(self, tag: str) -> str:
        """Return the digest of a tag, "" if there is none."""
        try:
            with self._request("HEAD", f"/manifests/{tag}", headers={"accept": _MANIFEST}) as answer:
                return str(answer.headers.get("docker-content-digest") or "")
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 404:
                raise
            return ""

    def put_blob(self, digest: str, body: IO[bytes] | bytes, size: int) -> None:
        """Upload content, unless it is there."""
        try:
            self._request("HEAD", f"/blobs/{digest}").close()
            return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 404:
                raise
        with self._request("POST", "/blobs/uploads/", b"") as answer:
            place = urljoin(f"{self._root}/blobs/uploads/", str(answer.headers["location"]))
        if not isinstance(body, bytes):
            body.seek(0)
        joint = "&" if "?" in place else "?"
        headers = {"content-type": "application/octet-stream", "content-length": str(size)}
        self._send("PUT", f"{place}{joint}digest={quote(digest)}", body, headers).close()

    def put_manifest(self, tag: str, manifest: bytes) -> str:
        """Upload a manifest; return its digest."""
        self._request("PUT", f"/manifests/{tag}", manifest, {"content-type": _MANIFEST}).close()
        return _digest(manifest)

    def _request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        return self._send(method, self._root + path, body, headers or {})

    def _send(self, method: str, url: str, body: IO[bytes] | bytes | None, headers: Mapping[str, str]) -> Any:
        request = urllib.request.Request(url, body, dict(headers), method=method)  # noqa: S310 - http(s): ours
        return urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310


def _tag(package: Package) -> str:
    return package.sha256[:40]


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _digest_of(stream: IO[bytes]) -> str:
    stream.seek(0)
    digest = hashlib.sha256()
    while piece := stream.read(1 << 20):
        digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _failed(store: ImageStore, why: str) -> PaiJupyterError:
    return PaiJupyterError(
        "package-not-sent",
        f"Package did not reach registry `{store.repository}`: {why}.",
        "Correct `packageImage` of the profile; the registry must let this host push.",
        502,
    )
