"""A job service on the real local backend, a data source of another package, and a WebHDFS server."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio

from paijupyter import paths
from paijupyter.jobs import JobService
from paijupyter.protocol import JobOptions, build_document, write

OTHER = Path(__file__).parent / "other_package"
if str(OTHER) not in sys.path:
    sys.path.insert(0, str(OTHER))


@pytest.fixture
def well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that the other package's kind draws from."""
    folder = tmp_path / "well"
    folder.mkdir()
    (folder / "water").write_bytes(b"clear water\n" * 1000)
    monkeypatch.setenv("WELL", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(OTHER))
    return folder


class Bench:
    """A service, and what tests do with it again and again."""

    def __init__(self) -> None:
        self.service = JobService(paths.data_dir(), paths.runtime_dir())

    def request(self, command: str, sources: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        document = build_document(JobOptions("reader", [command]))
        document["extras"]["paijupyter"]["data"] = sources
        document["extras"].update(more.pop("extras", {}))
        if more.get("secrets"):
            document["secrets"] = dict.fromkeys(more["secrets"], "")
        return {"document": write(document), "context": {"python": sys.executable, "user": "ann"}, **more}

    async def submit(self, command: str, sources: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        view, created = await self.service.submit(self.request(command, sources, **more))
        assert created
        return view

    async def final(self, ref: str) -> dict[str, Any]:
        """Wait until a job is final; return its view with its log."""
        await eventually(lambda: self.service.get(ref)["state"] in ("succeeded", "failed", "stopped"))
        log = paths.data_dir() / "jobs" / ref / "tasks/worker-0/0/log"
        return {**self.service.get(ref), "log": log.read_text() if log.exists() else ""}

    async def restart(self) -> None:
        """End the service and start another one, as an engine that follows another does."""
        await self.service.close()
        self.service = JobService(paths.data_dir(), paths.runtime_dir())
        await self.service.start()


async def eventually(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Return the first true value of a condition."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.01)
    return value


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    found = Bench()
    await found.service.start()
    yield found
    for view in found.service.list()["jobs"]:
        if view["state"] in ("waiting", "running"):
            await found.service.stop(view["id"])
    await found.service.close()


@pytest.fixture
def kit() -> SimpleNamespace:
    """Helpers of this file, for tests (which import nothing from each other)."""
    return SimpleNamespace(eventually=eventually)


@pytest.fixture
def profile() -> Callable[..., Path]:
    """Return what writes the settings of the profile `local`."""

    def write_settings(**settings: Any) -> Path:
        # Looked at when it is called: a Jupyter server of the test has a folder of its own.
        file = Path(os.environ["JUPYTER_CONFIG_DIR"]) / "paijupyter" / "profiles.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"profiles": {"local": settings}}))
        return file

    return write_settings


class NameNode(http.server.ThreadingHTTPServer):
    """Speaks WebHDFS for a folder: GETFILESTATUS, LISTSTATUS, and OPEN by a redirect to a data node."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _HdfsHandler)
        self.root = root
        self.opened: list[str] = []
        self.users: set[str] = set()
        self.failing = 0

    @property
    def uri(self) -> str:
        return f"webhdfs://ann@127.0.0.1:{self.server_address[1]}"


class _HdfsHandler(http.server.BaseHTTPRequestHandler):
    server: NameNode

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name.lower(): values[0] for name, values in parse_qs(parts.query).items()}
        self.server.users.add(query.get("user.name", ""))
        name = parts.path.removeprefix("/webhdfs/v1")
        place = self.server.root / name.strip("/")
        if not place.exists():
            error = {"exception": "FileNotFoundException", "message": f"File does not exist: {name}"}
            self._json({"RemoteException": error}, 404)
        elif query["op"] == "GETFILESTATUS":
            self._json({"FileStatus": _status(place, "")})
        elif query["op"] == "LISTSTATUS":
            listed = [_status(each, each.name) for each in sorted(place.iterdir())]
            self._json({"FileStatuses": {"FileStatus": listed}})
        elif query["op"] == "OPEN" and "datanode" not in query:
            self.send_response(307)
            self.send_header(
                "Location", f"http://127.0.0.1:{self.server.server_address[1]}{self.path}&datanode=1"
            )
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif query["op"] == "OPEN":
            self._open(place, int(query.get("offset", 0)), int(query.get("length", 2**40)))
        else:
            self._json({"RemoteException": {"exception": "Unsupported", "message": query["op"]}}, 400)

    def _open(self, place: Path, offset: int, length: int) -> None:
        self.server.opened.append(place.name)
        if self.server.failing:
            self.server.failing -= 1
            self._json({"RemoteException": {"exception": "IOException", "message": "no data node"}}, 500)
            return
        body = place.read_bytes()[offset : offset + length]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _json(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _status(place: Path, suffix: str) -> dict[str, Any]:
    found = place.stat()
    return {
        "pathSuffix": suffix,
        "type": "DIRECTORY" if place.is_dir() else "FILE",
        "length": 0 if place.is_dir() else found.st_size,
        "modificationTime": int(found.st_mtime * 1000),
        "owner": "ann",
        "permission": "755",
        "blockSize": 2**27,
        "replication": 1,
    }


@pytest.fixture
def hdfs(tmp_path: Path) -> Iterator[NameNode]:
    """Return a running WebHDFS server on a folder with two files, one in a sub-folder."""
    root = tmp_path / "hdfs"
    (root / "pai/mnist/deep").mkdir(parents=True)
    (root / "pai/mnist/a.bin").write_bytes(os.urandom(300_000))
    (root / "pai/mnist/deep/b.bin").write_bytes(b"b" * 10)
    node = NameNode(root)
    thread = threading.Thread(target=node.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield node
    node.shutdown()
    thread.join()
    node.server_close()
