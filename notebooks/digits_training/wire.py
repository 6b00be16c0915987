"""A small help for the connection between worker and parameter server."""

from __future__ import annotations

import socket
from multiprocessing.connection import Connection


def send_at_once(connection: Connection) -> Connection:
    """Turn off the kernel's waiting for more to send: each step is a question and an answer."""
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as view:
        view.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
