"""A real Hadoop file system for tests: a name node and a data node, which speak WebHDFS."""

from __future__ import annotations

import getpass
import json
import string
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
_ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
# Small and quick to start; the last is for its REST library, which is older than Java's modules.
_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
_LOG = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
_SECONDS = 180.0  # a Java that starts on a machine that does other things, too


class Hadoop:
    """The file system; :meth:`start` it. Its superuser is who runs the tests.

    Args:
        java: the program java.
        jars: folder of Hadoop's classes.
        root: folder for what it keeps, and its logs.
        ports: of the name node, for Hadoop's own protocol and for HTTP.
    """

    def __init__(self, java: Path, jars: Path, root: Path, ports: tuple[int, int]) -> None:
        self.user = getpass.getuser()
        self.address = f"http://127.0.0.1:{ports[1]}"
        self._root = root
        conf = root / "conf"
        for each in ("hdfs", "datanode"):  # pages for browsers, which it wants a folder for
            (conf / "webapps" / each).mkdir(parents=True)
        (conf / "log4j.properties").write_text(_LOG)
        _write(
            conf / "core-site.xml",
            {"fs.defaultFS": f"hdfs://127.0.0.1:{ports[0]}", "hadoop.tmp.dir": str(root / "data")},
        )
        here = ("datanode.address", "datanode.http.address", "datanode.ipc.address")
        _write(
            conf / "hdfs-site.xml",
            {
                "dfs.namenode.http-address": f"127.0.0.1:{ports[1]}",
                "dfs.replication": "1",
                "dfs.datanode.hostname": "127.0.0.1",
                "dfs.namenode.fs-limits.min-block-size": "4096",
                "dfs.heartbeat.interval": "1",
                **{f"dfs.{each}": "127.0.0.1:0" for each in here},
            },
        )
        self._java = [str(java), *_OPTIONS, "-cp", f"{conf}:{jars}/*"]
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, until: Callable[..., Any]) -> None:
        """Make an empty file system, and start both nodes."""
        subprocess.run(
            [*self._java, _NAME_NODE, "-format", "-nonInteractive"],
            check=True,
            capture_output=True,
            timeout=_SECONDS,
        )
        self._run("name", _NAME_NODE)
        self.start_data_node(until)

    def start_data_node(self, until: Callable[..., Any]) -> None:
        """Start the data node, again if it was stopped."""
        self._run("data", _DATA_NODE)
        until(self._is_ready, seconds=_SECONDS, why=f"Hadoop, see {self._root}/*.log")

    def stop_data_node(self) -> None:
        """Kill the data node; the name node believes in it for ten minutes more."""
        node = self._nodes.pop("data")
        node.kill()
        node.wait(timeout=60)

    def stop(self) -> None:
        """End both."""
        for node in self._nodes.values():
            node.kill()
            node.wait(timeout=60)

    def safe_mode(self, *, on: bool) -> None:
        """Let it be read only, or no more, as an administrator does."""
        words = [*self._java, _ADMIN, "-safemode", "enter" if on else "leave"]
        subprocess.run(words, check=True, capture_output=True, timeout=_SECONDS)

    def make_folder(self, path: str, owner: str) -> None:
        """Make a folder that belongs to somebody, who alone may write there."""
        self._put(path, op="MKDIRS", permission="755")
        self._put(path, op="SETOWNER", owner=owner)

    def write(self, path: str, content: bytes, permission: str = "644") -> None:
        """Write a file of the superuser's."""
        with self._asked(
            "PUT", path, op="CREATE", overwrite="true", noredirect="true", permission=permission
        ) as answer:
            place = quote(json.load(answer)["Location"], safe=string.punctuation)
        urllib.request.urlopen(urllib.request.Request(place, content, method="PUT"), timeout=60).close()

    def names(self, path: str) -> list[str]:
        """Return what is in a folder."""
        with self._asked("GET", path, op="LISTSTATUS") as answer:
            return sorted(each["pathSuffix"] for each in json.load(answer)["FileStatuses"]["FileStatus"])

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        with self._asked("GET", path, op="OPEN") as answer:
            return bytes(answer.read())

    def _run(self, name: str, program: str) -> None:
        with (self._root / f"{name}.log").open("ab") as log:
            self._nodes[name] = subprocess.Popen([*self._java, program], stdout=log, stderr=log)

    def _is_ready(self) -> bool:
        ended = [name for name, node in self._nodes.items() if node.poll() is not None]
        assert not ended, f"{ended}: see {self._root}"
        try:
            # One that has just come, not one that it still believes in: its address is another.
            with self._asked("PUT", "/.ready", op="CREATE", overwrite="true", noredirect="true") as answer:
                place = json.load(answer)["Location"]
            urllib.request.urlopen(urllib.request.Request(place, b"ready", method="PUT"), timeout=10).close()
        except (OSError, KeyError, ValueError):
            return False
        return True

    def _put(self, path: str, **query: str) -> None:
        self._asked("PUT", path, **query).close()

    def _asked(self, method: str, path: str, **query: str) -> Any:
        words = urlencode({**query, "user.name": self.user})
        url = f"{self.address}/webhdfs/v1{quote(path)}?{words}"
        return urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60)


def _write(file: Path, settings: dict[str, str]) -> None:
    """Write settings as Hadoop reads them."""
    each = (
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    file.write_text(f"<configuration>{''.join(each)}</configuration>\n")
