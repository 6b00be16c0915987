"""The socket below an answer of urllib3, and how it is to notice a peer that is gone."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import urllib3


def socket_of(response: urllib3.response.BaseHTTPResponse) -> socket.socket | None:
    """Find the socket below an answer, in urllib3 1.26 and 2 alike."""
    connection = getattr(response, "connection", None)
    found = getattr(connection, "sock", None)
    if found is None:
        # After "Connection: close" only the file that is read from still has it.
        raw = getattr(getattr(getattr(response, "_fp", None), "fp", None), "raw", None)
        found = getattr(raw, "_sock", None)
    return found if isinstance(found, socket.socket) else None


def keep_alive() -> list[tuple[int, int, int]]:
    """Ask the kernel to notice a peer that is gone without a word, as kubectl does."""
    wanted = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 9}
    found = [
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in wanted.items()
        if hasattr(socket, name)
    ]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *found]
