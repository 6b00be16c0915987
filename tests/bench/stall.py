"""Ask a cheap route again and again, in a process of its own, and tell the longest time to an answer.

Usage: python stall.py URL-or-socket PATH — until its stdin is closed; then it prints milliseconds.
"""

from __future__ import annotations

import http.client
import select
import socket
import sys
import time

_PAUSE = 0.005


class _Unix(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.host)


def main(where: str, path: str) -> None:
    """Measure until stdin ends. Connections are kept, so only the loop's own time is in it."""
    connection = _Unix(where) if where.startswith("/") else http.client.HTTPConnection(where)
    longest = 0.0
    while not select.select([sys.stdin], [], [], _PAUSE)[0]:
        start = time.perf_counter()
        connection.request("GET", path, headers={"Host": "localhost"})
        connection.getresponse().read()
        longest = max(longest, time.perf_counter() - start)
    print(longest * 1e3)


if __name__ == "__main__":
    main(*sys.argv[1:])
