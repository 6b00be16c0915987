"""Real git remotes on this machine: ``git daemon``, and ``git http-backend`` behind a password."""

from __future__ import annotations

import base64
import contextlib
import http.server
import os
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


class Repository:
    """A bare repository, and a way to commit and push to it.

    Args:
        folder: where both are.
    """

    def __init__(self, folder: Path) -> None:
        self.bare, self._work = folder / "team.git", folder / "work"
        folder.mkdir(parents=True)
        self._git("init", "--quiet", "--bare", "--initial-branch=main", str(self.bare), here=folder)
        self._git("clone", "--quiet", str(self.bare), str(self._work), here=folder)

    def push(self, files: Mapping[str, bytes | str | None], branch: str = "main") -> str:
        """Commit files (None removes one) and push; return the commit."""
        for name, content in files.items():
            path = self._work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        self._git("add", "--all")
        self._git("commit", "--quiet", "-m", "more")
        self._git("push", "--quiet", "origin", f"HEAD:{branch}")
        return self._git("rev-parse", "HEAD").strip()

    def refuse_commits_by_hash(self) -> None:
        """Be a server that shows the tips of branches only, without filters, by the old protocol."""
        for key, value in (("protocol.version", "0"), ("uploadpack.allowFilter", "false")):
            self._git("config", key, value, here=self.bare)

    def _git(self, *words: str, here: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=here or self._work,
            check=True,
            capture_output=True,
            env={**os.environ, **WHO},
        )
        return done.stdout.decode()


@contextlib.contextmanager
def daemon(repository: Repository, until: Any) -> Iterator[str]:
    """Serve it by ``git daemon``; the address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    words = ["git", "daemon", "--export-all", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}"]
    process = subprocess.Popen(
        [*words, f"--base-path={repository.bare.parent}", str(repository.bare.parent)],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        url = f"git://127.0.0.1:{port}/{repository.bare.name}"
        until(lambda: subprocess.run(["git", "ls-remote", url], capture_output=True).returncode == 0)
        yield url
    finally:
        os.killpg(process.pid, 15)
        process.wait(20)


@contextlib.contextmanager
def behind_a_password(repository: Repository, user: str, password: str) -> Iterator[str]:
    """Serve it by ``git http-backend`` to one user; the address."""
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    handler = type("Handler", (_Backend,), {"root": str(repository.bare.parent), "wanted": wanted})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/{repository.bare.name}"
        server.shutdown()
        thread.join()


class _Backend(http.server.BaseHTTPRequestHandler):
    root = ""
    wanted = ""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != self.wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": self.root,
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_USER": "alice",
            },
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n"))
        self.send_response(int(headers.pop("Status", "200 OK").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
