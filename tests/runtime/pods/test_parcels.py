"""Packages and data as they reach a pod (P11, P18, O29), and outputs as they leave it (O15)."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

FILES = {"train.py": b"print('trained')\n", "data/large.bin": b"x" * 300_000}


def lay_out(folder: Path, files: dict[str, bytes]) -> dict[str, Any]:
    """Write manifest, pack and blobs of a package; return the parcel of that folder."""
    entries = [
        [path, "100644", len(files[path]), hashlib.sha256(files[path]).hexdigest()] for path in sorted(files)
    ]
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "files": entries}))
    (folder / "pack").write_bytes(
        b"".join(files[path] for path in sorted(files) if len(files[path]) < 262_144)
    )
    for path, _, size, digest in entries:
        if size >= 262_144:
            blob = folder / "blobs" / digest[:2] / digest
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(files[path])
    return {"sha256": "0" * 64, "way": "folder", "folder": str(folder)}


def archived(folder: Path) -> bytes:
    """Return the archive of a laid out package."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.add(path, str(path.relative_to(folder)))
    return stream.getvalue()


def in_parts(folder: Path, data: bytes) -> dict[str, Any]:
    """Return the parcel of an archive in parts."""
    folder.mkdir()
    pieces = [data[start : start + 100] for start in range(0, len(data), 100)]
    for number, piece in enumerate(pieces):
        (folder / f"part-{number:04d}").write_bytes(piece)
    facts = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "parts": len(pieces)}
    return {"sha256": "0" * 64, "way": "parts", "folder": str(folder), "archive": facts}


class Store:
    """A server of one archive at a secret address; it cuts the first answers short."""

    def __init__(self, data: bytes, broken: int = 0) -> None:
        self.asked = 0
        store = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                store.asked += 1
                self.send_response(200 if "secret" in self.path else 403)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data if store.asked > broken else data[: len(data) // 2])

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/package?signature=secret"


@pytest.fixture
def serve() -> Iterator[Any]:
    stores: list[Store] = []

    def start(data: bytes, broken: int = 0) -> Store:
        stores.append(Store(data, broken))
        return stores[-1]

    yield start
    for each in stores:
        each.server.shutdown()
        each.server.server_close()


def from_url(job: Any, url: str, data: bytes) -> dict[str, Any]:
    """Return the parcel of an archive behind an URL, which lies in a file."""
    (job.home / "url-0").write_text(url + "\n")
    facts = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    return {"sha256": "0" * 64, "way": "url", "urlFile": str(job.home / "url-0"), "archive": facts}


@pytest.fixture
def job(make_job):
    """A job of one task that shows its package."""
    job = make_job(worker=1)
    job.spec["package"] = 0
    job.spec["commands"]["worker"] = "cat train.py; wc -c < data/large.bin; pwd"
    return job


def expect_package(job) -> None:
    ended = job.run()["worker-0"]
    pod = job.pods["worker-0"]
    assert ended["status"] == 0, pod.log
    assert pod.log.splitlines() == [
        "print('trained')",
        "300000",
        str(pod.run_folder / "task" / "work"),
    ]
    assert not list((pod.run_folder / "parcels").glob("*")), "what was only on its way is gone"


def test_a_package_in_a_folder(job):
    """On a claim or in an image: mounted read-only."""
    job.spec["parcels"] = [lay_out(job.home / "package", FILES)]
    ended = job.run()["worker-0"]
    assert ended["status"] == 0
    assert job.pods["worker-0"].log.startswith("print('trained')\n300000\n")


def test_a_package_in_parts(job):
    lay_out(job.home / "package", FILES)
    job.spec["parcels"] = [in_parts(job.home / "parts", archived(job.home / "package"))]
    expect_package(job)


def test_a_package_behind_an_url(job, serve):
    """A connection that breaks is tried again."""
    lay_out(job.home / "package", FILES)
    data = archived(job.home / "package")
    store = serve(data, broken=1)
    job.spec["parcels"] = [from_url(job, store.url, data)]
    expect_package(job)
    assert store.asked == 2


def test_an_url_is_never_shown(job, serve):
    lay_out(job.home / "package", FILES)
    data = archived(job.home / "package")
    store = serve(data)
    url = store.url.replace("=secret", "=forged-signature")
    job.spec["parcels"] = [from_url(job, url, data)]
    ended = job.run()["worker-0"]
    assert (ended["status"], ended["reason"]) == (41, "package")
    assert ended["message"] == "The package cannot be fetched: the server answered 403 Forbidden."
    assert "forged" not in job.pods["worker-0"].log


@pytest.mark.parametrize("damage", ["changed", "missing", "strange"])
def test_a_damaged_package_is_noticed(job, damage):
    lay_out(job.home / "package", FILES)
    if damage == "strange":
        shutil.copy(__file__, job.home / "package" / "stranger.py")
    job.spec["parcels"] = [in_parts(job.home / "parts", archived(job.home / "package"))]
    part = job.home / "parts" / "part-0001"
    if damage == "changed":
        part.write_bytes(part.read_bytes()[::-1])
    elif damage == "missing":
        part.unlink()
    ended = job.run()["worker-0"]
    assert (ended["status"], ended["reason"]) == (41, "package")
    words = {
        "changed": "The package is damaged: what came has another checksum.",
        "missing": "The package is not complete: `part-0001` is missing.",
        "strange": "The package has the unknown part `stranger.py`.",
    }
    assert ended["message"] == words[damage]


def test_data_that_travelled(job):
    """O29: data of kind file, beside the package, at the place that it wants."""
    lay_out(job.home / "package", FILES)
    lay_out(job.home / "set", {"set/a.csv": b"1\n"})
    job.spec["parcels"] = [
        in_parts(job.home / "parts", archived(job.home / "package")),
        in_parts(job.home / "more-parts", archived(job.home / "set")),
    ]
    place = job.home / "pai_data" / "mine"
    source = {"name": "set", "kind": "file", "uri": "set", "shown": "set", "base": "set", "key": ""}
    source.update(place=str(place), inside=False, package={"parcel": 1, "sha256": "1" * 64})
    job.spec["data"] = {"sources": [source]}
    ended = job.run(worker="cat $PAI_DATA_SET/set/a.csv; echo $PAI_DATA_SET")["worker-0"]
    assert ended["status"] == 0, job.logs()
    assert job.pods["worker-0"].log.splitlines()[-2:] == ["1", str(place)]


def test_requirements_are_checked_with_the_list(job):
    """Clusters check by default (install: never)."""
    job.spec["parcels"] = [lay_out(job.home / "package", {"requirements.txt": b"no-such-thing-9>=2\n"})]
    ended = job.run(worker="true")["worker-0"]
    assert (ended["status"], ended["reason"]) == (42, "requirements")
    assert ended["message"].startswith("The requirements are not all installed: no-such-thing-9>=2.")


def test_outputs_wait_until_they_are_fetched(make_job, until):
    """O15, P7: streamed out of the pod before it ends."""
    job = make_job(worker=1)
    job.spec["outputs"] = ["model/**"]
    job.spec["commands"]["worker"] = (
        "mkdir model; echo m > model/m.txt; ln -s m.txt model/latest; "
        'echo direct > "$PAI_OUTPUT_DIR/d.txt"; printf done'
    )
    pod = job.pods["worker-0"].start()
    until(lambda: "Outputs wait" in pod.log)
    assert pod.log == "done\n[paijupyter] Outputs wait to be fetched: 3 files, 11 bytes.\n"
    assert not pod.ended
    with tarfile.open(fileobj=io.BytesIO(pod.outputs("send"))) as archive:
        files = {each.name: archive.extractfile(each).read() for each in archive if each.isreg()}
    assert files == {"d.txt": b"direct\n", "model/m.txt": b"m\n", "model/latest": b"m\n"}
    pod.outputs("taken")
    ended = pod.end()
    assert (ended["status"], ended["message"]) == (0, "")


def test_outputs_do_not_wait_for_ever(make_job):
    job = make_job(worker=1)
    job.spec["outputsSeconds"] = 0.2
    ended = job.run(worker='echo x > "$PAI_OUTPUT_DIR/x"; exit 4')["worker-0"]
    assert ended["status"] == 4
    assert ended["message"].endswith("Its outputs were not fetched in time.")


def test_outputs_of_a_deleted_pod_wait_shorter(make_job, until):
    job = make_job(worker=1)
    job.spec["fetchSeconds"] = 0.3
    job.spec["outputsSeconds"] = 600.0
    job.spec["commands"]["worker"] = 'echo x > "$PAI_OUTPUT_DIR/x"; echo on; sleep 600'
    pod = job.pods["worker-0"].start()
    until(lambda: pod.log == "on\n")
    pod.stop()
    assert pod.end()["status"] == 143


def test_what_is_kept_outlives_the_pod(make_job, until):
    """A claim of the profile: checkpoints for the next attempt, and outputs."""
    job = make_job(worker=1)
    kept = job.home / "kept"
    kept.mkdir()
    job.spec["kept"] = str(kept)
    job.spec["outputsSeconds"] = 0.1
    ended = job.run(worker='echo c > "$PAI_CHECKPOINT_DIR/c"; echo o > "$PAI_OUTPUT_DIR/o"')["worker-0"]
    assert ended["status"] == 0
    assert (kept / "checkpoints" / "c").read_text() == "c\n"
    assert (kept / "output" / "worker-0" / "o").read_text() == "o\n"


def test_a_container_that_is_started_anew_begins_anew(make_job, until):
    """restartPolicy: OnFailure, for a job of one task; what it makes lies in the pod and stays."""
    job = make_job(worker=1)
    job.spec["commands"]["worker"] = 'echo x >> "$PAI_OUTPUT_DIR/x"; echo on'
    pod = job.pods["worker-0"]
    for count in (1, 2):
        pod.start()
        until(lambda: pod.log.count("Outputs wait") == count)  # noqa: B023 - called at once
        assert not pod.ended
        pod.outputs("taken")
        assert pod.end()["status"] == 0
    assert (pod.run_folder / "output" / "x").read_text() == "x\nx\n"
