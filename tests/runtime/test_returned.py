"""Outputs that leave a task: what goes wrong on their way is a sentence in its log, never its end (P24)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paijupyter.runtime import returned


@pytest.fixture
def odd_server() -> Iterator[str]:
    """The address of a server that does not speak HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_answer, args=(listening,))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def _answer(listening: socket.socket) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        with connection:
            connection.recv(65536)
            connection.sendall(b"220 mail.example ready\r\n\r\n")


def said(tmp_path: Path, address: str) -> str:
    output = tmp_path / "output"
    output.mkdir()
    (output / "model.txt").write_text("model\n")
    place = tmp_path / "place"
    place.write_text(json.dumps({"way": "object", "before": address, "after": "?signature=canary"}))
    return returned.send(str(output), "worker-0", str(place), str(tmp_path / "draft"))


def test_a_server_that_does_not_speak_http(
    odd_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words are not repeated, nor is the address, by which anybody could write."""
    monkeypatch.setattr(returned, "_PAUSES", (0.01,))
    assert said(tmp_path, odd_server) == "Outputs did not get out of the task: BadStatusLine."


def test_nobody_said_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returned, "_PAUSES", (0.01,))
    found = said(tmp_path, "")
    assert found == "Outputs did not get out of the task: nobody says where they are to go."
