"""A stream that is cut never looks as if it had come to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from paijupyter.engine import streams


class FakeHandler:
    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.dropped = False
        stream = SimpleNamespace(close=self._close)
        self.request = SimpleNamespace(connection=SimpleNamespace(stream=stream))

    def _close(self) -> None:
        self.dropped = True

    def set_header(self, name: str, value: str) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    async def flush(self) -> None:
        pass


@pytest.mark.asyncio
async def test_a_cut_that_meets_an_item_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As wait_for does it before Python 3.12: a hand-over must not end a followed log early."""
    real = asyncio.wait_for

    async def swallowing(future: Any, timeout: float) -> Any:
        try:
            return await real(future, timeout)
        except asyncio.CancelledError:
            return None  # the end of the source, met by the cancellation

    monkeypatch.setattr(streams.asyncio, "wait_for", swallowing)
    handler = FakeHandler()
    sender = streams.Sender(handler)  # type: ignore[arg-type]
    waiting = asyncio.Event()

    async def source() -> AsyncIterator[bytes]:
        yield b"first"
        waiting.set()
        await asyncio.Event().wait()

    sending = asyncio.create_task(sender.send(source(), "text/plain", bytes))
    await waiting.wait()
    await asyncio.sleep(0)
    sender.cut()
    await sending
    assert handler.dropped
    assert b"".join(handler.sent) in (b"", b"first")


@pytest.mark.asyncio
async def test_a_source_that_ends_is_ended_properly() -> None:
    handler = FakeHandler()

    async def source() -> AsyncIterator[bytes]:
        yield b"all"

    await streams.Sender(handler).send(source(), "text/plain", bytes)  # type: ignore[arg-type]
    assert handler.sent == [b"all"]
    assert not handler.dropped
