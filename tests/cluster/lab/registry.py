"""The lab's registries, and how an image gets into one: five HTTP requests."""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tests.cluster.lab.build import program
from tests.cluster.lab.places import ARCHITECTURE, CACHE, LOCKED_REGISTRY, REGISTRY, STATE, LabError
from tests.cluster.lab.processes import start, stop

USER, PASSWORD = "lab", "lab-password"  # of a registry that only this machine reaches
# htpasswd -nbB lab lab-password
_HTPASSWD = "lab:$2y$05$V8wDZ/jiYFJmEPUwm5OR6OHa6CToFmTXLZh96sczuxyjP0LbLQZd2\n"
_OCI = "application/vnd.oci.image"
_CACHED = CACHE / "registry"
_SERVED = STATE / "registry"
MAKING = "127.0.0.1:5002"


def up() -> None:
    """Start the open registry and the one with a password; they have the same images."""
    (STATE / "htpasswd").write_text(_HTPASSWD)
    serve_cached()
    start_registry()
    locked = f"auth: {{htpasswd: {{realm: lab, path: {STATE / 'htpasswd'}}}}}\n"
    _start("registry-locked", LOCKED_REGISTRY, _SERVED, locked, 401)


def serve_cached() -> None:
    """Give the registries what is in the cache now; what is pushed to them does not come into the cache."""
    for link in (["-l"], []):  # hard links, where both are on one disk
        done = subprocess.run(
            ["cp", "-a", "-u", *link, f"{_CACHED}/.", _SERVED], capture_output=True, text=True
        )
        if not done.returncode:
            return
    raise LabError(f"The cached images cannot be copied: {done.stderr}")


def start_registry() -> None:
    """Start the open registry (again, after :func:`stop_registry`)."""
    _start("registry", REGISTRY, _SERVED, "", 200)


def stop_registry() -> None:
    """End the open registry alone: images that no node has cannot be pulled."""
    stop("registry")


@contextmanager
def making() -> Iterator[str]:
    """Run a registry that keeps what it gets in the cache; give its address."""
    _start("registry-making", MAKING, _CACHED, "", 200)
    try:
        yield MAKING
    finally:
        stop("registry-making")


def cached(repository: str, tag: str) -> bool:
    """Say whether the cache has an image."""
    tags = _CACHED / "docker/registry/v2/repositories" / repository / "_manifests/tags"
    return (tags / tag / "current" / "link").exists()


def push(registry: str, repository: str, tag: str, layers: Sequence[Path], headers: dict[str, str]) -> None:
    """Put an image of uncompressed tar layers into a registry.

    Args:
        registry: Host and port, plain HTTP.
        repository: Name in the registry.
        tag: Its tag.
        layers: Tar files, the lowest first.
        headers: Of each request: the password.
    """
    uploaded = [_upload(registry, repository, layer, headers) for layer in layers]
    config = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [digest for digest, _ in uploaded]},
    }
    described = _upload(registry, repository, json.dumps(config).encode(), headers)
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _descriptor(f"{_OCI}.config.v1+json", *described),
        "layers": [_descriptor(f"{_OCI}.layer.v1.tar", *layer) for layer in uploaded],
    }
    kind = {"Content-Type": manifest["mediaType"]}
    _request(
        registry, "PUT", f"/v2/{repository}/manifests/{tag}", json.dumps(manifest).encode(), headers | kind
    )


def _start(name: str, address: str, storage: Path, more: str, answer: int) -> None:
    storage.mkdir(parents=True, exist_ok=True)
    config = STATE / f"{name}.yaml"
    config.write_text(
        f"version: 0.1\nlog: {{level: warn}}\nstorage: {{filesystem: {{rootdirectory: {storage}}}}}\n"
        f"http: {{addr: '{address}', secret: lab}}\n{more}"
    )

    def ready() -> bool:
        try:
            return _request(address, "GET", "/v2/", b"", {})[0] == answer
        except OSError:
            return False

    start(name, [program("registry"), "serve", config], ready, environment={"OTEL_TRACES_EXPORTER": "none"})


def _upload(registry: str, repository: str, what: Path | bytes, headers: dict[str, str]) -> tuple[str, int]:
    """Upload a blob that the registry does not have; return its digest and size."""
    if isinstance(what, bytes):
        digest, size = hashlib.sha256(what).hexdigest(), len(what)
    else:
        with what.open("rb") as file:
            digest, size = _sha256(file), what.stat().st_size
    blobs = f"/v2/{repository}/blobs"
    if _request(registry, "HEAD", f"{blobs}/sha256:{digest}", b"", headers)[0] != 200:
        _, told = _request(registry, "POST", f"{blobs}/uploads/", b"", headers)
        place = told["Location"].split(registry, 1)[-1]
        place += ("&" if "?" in place else "?") + f"digest=sha256:{digest}"
        kind = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        _request(registry, "PUT", place, what, headers | kind)
    return f"sha256:{digest}", size


def _request(
    registry: str, method: str, path: str, body: Path | bytes, headers: dict[str, str]
) -> tuple[int, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection(registry, timeout=300)
    try:
        if isinstance(body, Path):
            with body.open("rb") as file:
                connection.request(method, path, file, headers)
        else:
            connection.request(method, path, body or None, headers)
        reply = connection.getresponse()
        said = reply.read()
        if reply.status >= 400 and method not in ("HEAD", "GET"):
            raise LabError(f"Registry {registry}: {method} {path} answered {reply.status}: {said[:500]!r}")
        return reply.status, reply.headers
    finally:
        connection.close()


def _descriptor(kind: str, digest: str, size: int) -> dict[str, object]:
    return {"mediaType": kind, "digest": digest, "size": size}


def _sha256(file: BinaryIO) -> str:
    found = hashlib.sha256()
    while block := file.read(1 << 20):
        found.update(block)
    return found.hexdigest()
