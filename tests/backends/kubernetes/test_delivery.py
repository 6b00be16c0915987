"""How packages travel: the ladder, archives, chunks, the claim, and signed addresses (P15, P18)."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import os
import tarfile
import threading
import zipfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from jobs import job_of, role, settings
from staging import store_package

from paijupyter.backends.base import Data, Package, Place
from paijupyter.backends.boot import boot_zipapp
from paijupyter.backends.delivery import archive, objects, signing
from paijupyter.backends.delivery.signing import Credentials
from paijupyter.backends.delivery.stores import ObjectStore
from paijupyter.backends.kubernetes.delivery import boot_file, claim, ladder, parcels
from paijupyter.backends.kubernetes.settings import ClaimStore, KubeSettings
from paijupyter.errors import PaiJupyterError
from paijupyter.package.local_store import LocalStore
from paijupyter.package.manifest import Entry, Manifest
from paijupyter.protocol.data import DataSource


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Give the folders of a host."""
    return Place(tmp_path / "data", tmp_path / "run")


@pytest.fixture
def package(place: Place) -> Package:
    """Give a package of two small files."""
    return store_package(place, {"train.py": "print(1)\n", "data/x.txt": "x" * 100})


def with_blob(place: Place, content: bytes) -> Package:
    """Store a package with one large file."""
    store = LocalStore(place.data)
    digest = hashlib.sha256(content).hexdigest()
    manifest = Manifest([Entry("big.bin", "100644", len(content), digest)])
    store.put_pack(manifest, [])
    store.put_blob(digest, [content])
    store.commit(manifest)
    return Package(manifest.sha256, store.folder(manifest.sha256), store.blobs)


def test_an_archive_is_always_the_same_and_has_the_whole_package(place: Place) -> None:
    package = with_blob(place, os.urandom(300_000))
    data = archive.in_memory(package, 10**7)
    assert data is not None
    target = io.BytesIO()
    facts = archive.to_file(package, target)
    assert facts == archive.facts_of(target.getvalue())
    archive.in_memory.cache_clear()
    os.utime(package.folder / "pack", (1, 1))
    assert archive.in_memory(package, 10**7) == data
    for found in (data, target.getvalue()):
        with tarfile.open(fileobj=io.BytesIO(found)) as members:
            contents = {each.name: members.extractfile(each).read() for each in members}  # type: ignore[union-attr]
            assert all((each.mtime, each.uid, each.mode) == (0, 0, 0o644) for each in members)
        assert contents == {name: path.read_bytes() for name, path in archive.members(package)}
        assert len(contents) == 3


def test_the_boot_file_fits_into_a_configmap_and_runs(place: Place) -> None:
    """P26: also after many more modules."""
    found = boot_zipapp(place.data)
    packed = boot_file.packed(found)
    assert len(packed) < 500_000
    with zipfile.ZipFile(io.BytesIO(packed)) as copy, zipfile.ZipFile(found) as archive:
        assert copy.namelist() == archive.namelist()
        assert all(copy.read(each) == archive.read(each) for each in archive.namelist())


def test_parts_joined_are_the_archive(place: Place) -> None:
    package = with_blob(place, os.urandom(2_500_000))
    data = archive.in_memory(package, parcels.LARGEST_IN_CONFIGMAPS)
    assert data is not None
    parcel = parcels.in_configmaps(0, package.sha256, data)
    assert parcel.told["archive"]["parts"] == len(parcel.shared) == 3
    parts: dict[str, bytes] = {}
    for thing in parcel.shared:
        assert sum(len(base64.b64decode(each)) for each in thing["binaryData"].values()) <= 2**20
        parts.update({name: base64.b64decode(each) for name, each in thing["binaryData"].items()})
    assert b"".join(parts[name] for name in sorted(parts)) == data
    assert parcel.told["archive"]["bytes"] == len(data)


def test_the_first_way_that_fits_is_taken(place: Place, package: Package, tmp_path: Path) -> None:
    shared = {"claim": "c", "path": str(tmp_path)}
    large = with_blob(place, os.urandom(7_000_000))

    def ways(package: Package, of: KubeSettings) -> list[str]:
        return [leg.way for leg in ladder.choose(job_of({"worker": role()}, package=package), of)]

    assert ways(package, settings(packageClaim=shared)) == ["configmap"]
    assert ways(large, settings(packageClaim=shared)) == ["claim"]
    assert ways(package, settings(packageClaim=shared, packageWays=["object", "claim"])) == ["claim"]
    assert ways(large, settings(packageObject={"bucket": "b"}, packageClaim=shared)) == ["claim"]
    assert ways(large, settings(packageImage={"repository": "r/x"})) == ["image"]
    with pytest.raises(PaiJupyterError) as caught:
        ways(large, settings())
    assert caught.value.code == "package-too-big"
    assert "packageClaim" in caught.value.hint


def test_files_that_are_data_travel_too(place: Place, package: Package) -> None:
    """O18."""
    data = store_package(place, {"set.csv": "1,2\n"})
    source = Data(DataSource("train", "file", "set.csv"), data)
    job = job_of({"worker": role()}, package=package, data=(source,))
    found = ladder.preview(ladder.choose(job, settings()), settings())
    assert [each.told["folder"] for each in found] == ["/paijupyter/packages/0", "/paijupyter/packages/1"]
    assert [each.sha256 for each in found] == [package.sha256, data.sha256]


def test_a_package_on_a_claim_is_whole_and_readable_for_others(place: Place, tmp_path: Path) -> None:
    package = with_blob(place, os.urandom(300_000))
    store = ClaimStore("shared", str(tmp_path / "mounted"))
    with pytest.raises(PaiJupyterError) as caught:
        claim.put(package, store)
    assert "no folder" in caught.value.message
    Path(store.path).mkdir()
    claim.put(package, store)
    claim.put(package, store)
    shelf = Path(store.path) / store.folder
    assert [each.name for each in shelf.iterdir()] == [package.sha256]
    for name, path in archive.members(package):
        copy = shelf / package.sha256 / name
        assert copy.read_bytes() == path.read_bytes()
        assert copy.stat().st_mode & 0o777 == 0o644
        assert copy.parent.stat().st_mode & 0o777 == 0o755


def test_a_copy_that_breaks_leaves_nothing(package: Package, tmp_path: Path) -> None:
    store = ClaimStore("shared", str(tmp_path / "mounted"))
    Path(store.path).mkdir()
    (package.folder / "pack").unlink()
    with pytest.raises(PaiJupyterError) as caught:
        claim.put(package, store)
    assert caught.value.code == "package-not-sent"
    assert not list((Path(store.path) / store.folder).iterdir())


def test_an_address_is_signed_as_amazon_shows_it() -> None:
    """The example of "Authenticating Requests: Using Query Parameters" of the S3 reference."""
    who = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    url = "https://examplebucket.s3.amazonaws.com/test.txt"
    at = datetime(2013, 5, 24, tzinfo=timezone.utc)
    found = signing.signed("GET", url, "us-east-1", who, seconds=86400, now=at)
    assert found.endswith("X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")


@pytest.mark.parametrize("way", ["variables", "file", "section", "none"])
def test_credentials_are_the_standard_ones(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    section = "store" if way == "section" else "default"
    if way == "variables":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key%")
    elif way != "none":
        file.write_text(f"[{section}]\naws_access_key_id = id\naws_secret_access_key = key%\n")
    found = signing.credentials("store" if way == "section" else "")
    assert found == (None if way == "none" else Credentials("id", "key%"))


def test_a_store_without_credentials_says_so(
    package: Package, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(PaiJupyterError) as caught:
        objects.put(package, ObjectStore("bucket"), place.data / "staging")
    assert caught.value.code == "package-not-sent"
    assert "credentials" in caught.value.message


class Bucket(http.server.BaseHTTPRequestHandler):
    """A store that keeps what is put, and refuses what carries no signature."""

    kept: ClassVar[dict[str, bytes]] = {}

    def do_PUT(self) -> None:
        self.kept[urlsplit(self.path).path] = self.rfile.read(int(self.headers["content-length"]))
        self._answer(200 if "X-Amz-Signature=" in self.path else 403)

    def do_GET(self) -> None:
        found = self.kept.get(urlsplit(self.path).path)
        self._answer(200 if found is not None else 404, found or b"")

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


def test_a_package_goes_into_a_bucket_once(
    place: Place, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")
    Bucket.kept.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        store = ObjectStore("bucket", "a/b", url, "http://inside:9000")
        facts, address = objects.put(package, store, place.data / "staging")
        kept = dict(Bucket.kept)
        assert set(kept) == {f"/bucket/a/b/{package.sha256}.{end}" for end in ("tar.gz", "json")}
        assert archive.facts_of(kept[f"/bucket/a/b/{package.sha256}.tar.gz"]) == facts
        assert address.startswith(f"http://inside:9000/bucket/a/b/{package.sha256}.tar.gz?X-Amz-")
        (package.folder / "pack").unlink()  # from now on nothing could be sent
        assert objects.put(package, store, place.data / "staging")[0] == facts
        assert not list((place.data / "staging").iterdir())
        server.shutdown()
        thread.join()
    with pytest.raises(PaiJupyterError) as caught:
        objects.put(package, store, place.data / "staging")
    assert caught.value.code == "package-not-sent"
    assert "key" not in caught.value.message
