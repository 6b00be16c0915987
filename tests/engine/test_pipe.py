"""An upload between the event loop and the thread that stores it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from paijupyter.engine.pipe import Pipe


def taken(chunks: Iterator[bytes]) -> tuple[list[bytes], bool]:
    """Return what a reader gets, and whether the upload broke off behind it."""
    got = []
    try:
        for chunk in chunks:
            got.append(chunk)
    except ConnectionAbortedError:
        return got, True
    return got, False


async def read(pipe: Pipe) -> tuple[list[bytes], bool]:
    return await asyncio.wait_for(asyncio.to_thread(taken, iter(pipe)), 30)


@pytest.mark.parametrize("gone", [False, True], ids=["stays", "goes after the end"])
def test_all_that_was_sent_arrives(gone: bool) -> None:
    async def sent() -> None:
        pipe = Pipe()
        await pipe.feed(b"one")
        await pipe.feed(b"two")
        pipe.end()
        if gone:
            pipe.break_off()
        assert await read(pipe) == ([b"one", b"two"], False)

    asyncio.run(sent())


def test_what_had_come_before_the_sender_went_is_read() -> None:
    """An upload goes on behind it, however late the reader begins."""

    async def cut() -> None:
        pipe = Pipe()
        await pipe.feed(b"one")
        pipe.break_off()
        await pipe.feed(b"two")
        assert await read(pipe) == ([b"one"], True)

    asyncio.run(cut())


def test_a_reader_that_has_failed_is_not_waited_for() -> None:
    async def closed() -> None:
        pipe = Pipe()
        full = asyncio.create_task(pipe.feed(bytes(5 << 20)))
        await asyncio.sleep(0)
        assert not full.done(), "the sender waits while the reader is behind"
        pipe.close()
        await asyncio.wait_for(full, 30)
        await asyncio.wait_for(pipe.feed(bytes(5 << 20)), 30)
        pipe.end()
        assert await read(pipe) == ([], True)

    asyncio.run(closed())


def test_a_sender_that_goes_while_it_waits_is_let_go() -> None:
    async def cut() -> None:
        pipe = Pipe()
        full = asyncio.create_task(pipe.feed(bytes(5 << 20)))
        await asyncio.sleep(0)
        pipe.break_off()
        await asyncio.wait_for(full, 30)

    asyncio.run(cut())
