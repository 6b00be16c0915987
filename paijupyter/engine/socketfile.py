"""The engine's Unix socket: open to its user only, there only when it can be used."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")


def listen(path: Path) -> socket.socket:
    """Listen on a Unix socket of mode 0600, replacing what a dead engine left at its path.

    The socket appears under its name by a rename, when it listens already: nobody can find it half made.
    """
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(str(fresh))
    finally:
        os.umask(mask)
    listener.setblocking(False)
    listener.listen(512)
    fresh.replace(path)
    return listener


def peer_is_user(connection: socket.socket) -> bool:
    """Say whether the other end of a connection is a process of this user, or of root."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # not Linux: the mode of the socket and its folder must do
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(raw)
    return user in {os.getuid(), 0}
