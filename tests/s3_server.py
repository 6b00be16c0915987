"""A real S3 server for tests: ``rclone serve s3`` on a folder, whose folders are its buckets."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ID, KEY = "reader-of-sets", "canary-k3y-of-the-store"


class S3Server:
    """The server; :meth:`start` it.

    Args:
        tool: the program rclone.
        root: folder of the buckets.
        port: where it listens.
        log: file for its log.
    """

    def __init__(self, tool: Path, root: Path, port: int, log: Path) -> None:
        self.root = root
        self.address = f"http://127.0.0.1:{port}"
        self._command = [tool, "serve", "s3", "--config", "/dev/null", "--auth-key", f"{ID},{KEY}"]
        self._command += ["--addr", f"127.0.0.1:{port}", "--vfs-cache-mode", "off", "-vv", str(root)]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, until: Any, *more: str) -> None:
        """Start it, again with other options if it runs."""
        self.stop()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*self._command, *more], stdout=log, stderr=log)
        until(self._answers, why=f"rclone, see {self._log}")

    def stop(self) -> None:
        """End it."""
        if self._process:
            self._process.terminate()
            self._process.wait(timeout=20)

    def reads(self, name: str) -> int:
        """Return how often an object was read."""
        return sum("GET OBJECT" in line and name in line for line in self._log.read_text().splitlines())

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(self.address, timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            return False
        return True
