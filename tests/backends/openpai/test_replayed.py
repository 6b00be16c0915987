"""All recorded exchanges with the original server, sent to our client, and what it makes of each."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from paijupyter.backends.openpai import answers, states
from paijupyter.backends.openpai.account import _login_refused
from paijupyter.backends.openpai.budget import Budget
from paijupyter.backends.openpai.client import OpenPaiClient
from paijupyter.backends.openpai.errors import PaiError
from tests.openpai.exchanges import NUMBERS
from tests.openpai.records import FILES, needed

LOGS = range(99, 104)
DETAILS = (*range(57, 74), 91)
FINAL = {"SUCCEEDED": "succeeded", "FAILED": "failed", "STOPPED": "stopped"}


class Replay:
    """A server that answers every call as one record has it."""

    def __init__(self) -> None:
        replay = self
        self.record: dict[str, Any] = {}
        self.asked: tuple[str, str, dict[str, str]] = ("", "", {})

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                replay.asked = (self.command, self.path, dict(self.headers))
                said = replay.record["responseBody"]
                body = (said if isinstance(said, str) else json.dumps(said)).encode()
                self.send_response(replay.record["status"])
                for name, text in replay.record["responseHeaders"].items():
                    if name != "Content-Length":
                        self.send_header(name, text)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, format: str, *args: object) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Replay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    with Replay() as server:
        yield server


@contextlib.asynccontextmanager
async def client_of(replay: Replay) -> AsyncIterator[OpenPaiClient]:
    client = OpenPaiClient(replay.url, token=lambda: "t", rest_url=replay.url, budget=Budget(1_000_000))
    try:
        yield client
    finally:
        await client.close()


@needed
def test_all_of_them_are_here() -> None:
    """The count that the guide names."""
    assert [int(file.name[:3]) for file in FILES] == list(NUMBERS)
    assert len(FILES) == 107


@pytest.mark.asyncio
@needed
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_replayed(file: Path, replay: Replay) -> None:
    """O28-O32: the same call, and its answer read: a value, or an error with status, code and words."""
    number = int(file.name[:3])
    replay.record = record = json.loads(file.read_text())
    async with client_of(replay) as client:
        try:
            found = await (log(client, record) if number in LOGS else call(client, record))
        except PaiError as error:
            refused(number, record, error)
        else:
            assert record["status"] < 400
            read(number, record, found)
    method, path, headers = replay.asked
    assert (method, path) == (record["method"], record["path"])
    assert headers.get("Range") == record["requestHeaders"].get("Range")


async def call(client: OpenPaiClient, record: dict[str, Any]) -> Any:
    path = record["path"].removeprefix("/api/v2")
    kind = record["requestHeaders"].get("Content-Type", "application/json")
    body = record["requestBody"]
    content = body.encode() if isinstance(body, str) else body
    answer = await client.ask(record["method"], path, body=content, content_type=kind)
    return json.loads(answer.body)


async def log(client: OpenPaiClient, record: dict[str, Any]) -> str:
    start = record["requestHeaders"].get("Range", "bytes=0-")[len("bytes=") : -1]
    pieces = []
    async with contextlib.aclosing(client.fetch(record["path"], int(start))) as stream:
        async for piece in stream:
            pieces.append(piece)
    return b"".join(pieces).decode()


def read(number: int, record: dict[str, Any], found: Any) -> None:
    """Hold what was read to the record."""
    theirs = record["responseBody"]
    assert found == theirs
    if number in DETAILS:
        detail = answers.detail_of(found)
        status = theirs["jobStatus"]
        assert (detail.summary.state, detail.summary.sub_state) == (status["state"], status["subState"])
        if detail.summary.is_final:
            outcome = states.outcome(detail.summary, detail, {}, booted=False)
            assert outcome.state == FINAL[status["state"]]
        else:
            assert states.position(detail.summary, detail) is not None
    if 47 <= number <= 54:
        listed = found["data"] if isinstance(found, dict) else found
        told = [answers.summary_of(each) for each in listed]
        assert [each.state for each in told] == [each["state"] for each in listed]
    if 78 <= number <= 81:
        assert len(answers.events_of(found)) == len(found["data"])


def refused(number: int, record: dict[str, Any], error: PaiError) -> None:
    """Hold an error to the record, and read what a person gets of it."""
    theirs = record["responseBody"]
    assert error.status == record["status"]
    if isinstance(theirs, dict):
        assert error.code == theirs.get("code", "")
    if number in (104, 105):
        assert error.retry_after == float(record["responseHeaders"]["Retry-After"])
    said = _login_refused(error) if 3 <= number <= 6 else error.for_people("do what was asked")
    assert said.message.endswith(".") and said.hint
    assert not any(word in said.message for word in ("<html", "Traceback", '{"', "[{"))
