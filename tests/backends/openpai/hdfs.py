"""A name node and data nodes by WebHDFS, as Hadoop 3.4 answered (tests/hadoop_server.py has a real one).

Who may do what is asked at a data node only, which refuses with 403 before it has read the content.
"""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_HERE = "127.0.0.1"


class Hdfs:
    """The file system; ``with`` starts it.

    Attributes:
        files: contents by path.
        old: whether its name node redirects at once (before Hadoop 3 it knew no ``noredirect``).
        users: who may do anything here; empty: everybody.
        refusals: exceptions with which the data node refuses the next files, whoever they are from.
        nodes: hosts of its data nodes, in the order in which they are named; only the own one is alive.
        named: hosts that were named so far.
        cut: how many of the next files are sent by half.
        url: of its name node.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.old = False
        self.users: set[str] = set()
        self.refusals: list[str] = []
        self.nodes = [_HERE]
        self.named: list[str] = []
        self.cut = 0
        self.url = ""

    def __enter__(self) -> Hdfs:
        handler = type("Handler", (_Handler,), {"hdfs": self})
        self._server = http.server.ThreadingHTTPServer((_HERE, 0), handler)
        self.url = f"http://{_HERE}:{self._server.server_address[1]}"
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
        path, query = self._asked()
        size = int(self.headers.get("content-length") or 0)
        if query.get("op") != "CREATE":
            self._refuse(400, "IllegalArgumentException", f"no such PUT: {query.get('op')}")
        elif not self._is_data_node:
            assert not size, "the name node takes no content"
            self._name_a_node(query)
        elif self._is_allowed(query):
            body = self.rfile.read(size)
            if path in self.hdfs.files and query.get("overwrite") != "true":
                self._refuse(403, "FileAlreadyExistsException", f"{path} already exists")
            else:
                self.hdfs.files[path] = body
                self._answer(201, b"")

    def do_GET(self) -> None:
        path, query = self._asked()
        if query.get("op") != "OPEN":
            self._refuse(400, "IllegalArgumentException", f"no such GET: {query.get('op')}")
        elif path not in self.hdfs.files:
            self._refuse(404, "FileNotFoundException", f"File {path} not found.")
        elif not self._is_data_node:
            self._answer(307, b"", {"Location": f"{self.hdfs.url}/data{self._below}"})
        elif self._is_allowed(query):
            self._answer(200, self.hdfs.files[path])

    def _name_a_node(self, query: dict[str, str]) -> None:
        gone = query.get("excludedatanodes", "").split(",")
        node = next((each for each in self.hdfs.nodes if each not in gone), None)
        if node is None:
            words = f"Failed to find datanode, suggest to check cluster health. excludeDatanodes={gone}"
            self._refuse(403, "IOException", words)
            return
        self.hdfs.named.append(node)
        place = f"{self.hdfs.url}/data{self._below}".replace(_HERE, node, 1)
        if query.get("noredirect") == "true" and not self.hdfs.old:
            # Here, unlike in the header, letters of the path stand as they are.
            said = {"Location": place.replace("%C3%A4", "ä")}
            self._answer(200, json.dumps(said).encode(), kind="application/json")
        else:
            self._answer(307, b"", {"Location": place})

    @property
    def _is_data_node(self) -> bool:
        return self.path.startswith("/data/")

    @property
    def _below(self) -> str:
        return self.path.removeprefix("/webhdfs/v1")

    def _is_allowed(self, query: dict[str, str]) -> bool:
        """Refuse what is not, with the content unread."""
        user = query.get("user.name", "dr.who")
        if self.hdfs.users and user not in self.hdfs.users:
            words = f"Permission denied: user={user}, access=WRITE\n\tat org.apache.hadoop"
            self._refuse(403, "AccessControlException", words)
            return False
        if self.hdfs.refusals:
            self._refuse(
                403, self.hdfs.refusals.pop(0), "Name node is in safe mode.\nIt was turned on manually."
            )
            return False
        return True

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        return unquote(parts.path.removeprefix("/webhdfs/v1").removeprefix("/data")), query

    def _refuse(self, status: int, exception: str, message: str) -> None:
        said = {"RemoteException": {"exception": exception, "message": message}}
        self._answer(status, json.dumps(said).encode(), kind="application/json")
        self.close_connection = True

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, kind: str = ""
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind or "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.hdfs.cut and body and status == 200 and self._is_data_node:
            self.hdfs.cut -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
