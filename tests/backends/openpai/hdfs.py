"""A name node and a data node by WebHDFS, as Hadoop documents it: what it refuses, this one refuses too."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class Hdfs:
    """The file system; ``with`` starts it.

    Attributes:
        files: contents by path.
        old: whether its name node redirects at once (before Hadoop 3 it knew no ``noredirect``).
        users: who may do anything here; empty: everybody.
        url: of its name node.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.old = False
        self.users: set[str] = set()
        self.url = ""

    def __enter__(self) -> Hdfs:
        handler = type("Handler", (_Handler,), {"hdfs": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    hdfs: Hdfs

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path, query = self._asked()
        if path is None:
            return
        if query.get("op") != "CREATE":
            self._refuse(400, "IllegalArgumentException", f"no such PUT: {query.get('op')}")
        elif not self._is_data_node:
            assert not body, "the name node takes no content"
            place = f"{self.hdfs.url}/data{self.path.removeprefix('/webhdfs/v1')}"
            if query.get("noredirect") == "true" and not self.hdfs.old:
                self._answer(200, json.dumps({"Location": place}).encode(), kind="application/json")
            else:
                self._answer(307, b"", {"Location": place})
        elif path in self.hdfs.files and query.get("overwrite") != "true":
            self._refuse(403, "FileAlreadyExistsException", f"{path} already exists")
        else:
            self.hdfs.files[path] = body
            self._answer(201, b"")

    def do_GET(self) -> None:
        path, query = self._asked()
        if path is None:
            return
        if query.get("op") != "OPEN":
            self._refuse(400, "IllegalArgumentException", f"no such GET: {query.get('op')}")
        elif path not in self.hdfs.files:
            self._refuse(404, "FileNotFoundException", f"File does not exist: {path}")
        elif not self._is_data_node:
            place = f"{self.hdfs.url}/data{self.path.removeprefix('/webhdfs/v1')}"
            self._answer(307, b"", {"Location": place})
        else:
            self._answer(200, self.hdfs.files[path])

    @property
    def _is_data_node(self) -> bool:
        return self.path.startswith("/data/")

    def _asked(self) -> tuple[str | None, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if self.hdfs.users and query.get("user.name") not in self.hdfs.users:
            self._refuse(403, "AccessControlException", "Permission denied")
            return None, query
        return unquote(parts.path.removeprefix("/webhdfs/v1").removeprefix("/data")), query

    def _refuse(self, status: int, exception: str, message: str) -> None:
        said = {"RemoteException": {"exception": exception, "message": message}}
        self._answer(status, json.dumps(said).encode(), kind="application/json")

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, kind: str = ""
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind or "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
