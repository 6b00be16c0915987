"""Waiting for an event, for a time at most."""

from __future__ import annotations

import asyncio


async def happens(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait until an event is set; say whether it was, within the time.

    Before Python 3.12 ``asyncio.wait_for`` loses a cancellation that comes together with the event: whoever
    loops around it then never ends.
    """
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({waiting}, timeout=seconds)
    finally:
        waiting.cancel()
    return event.is_set()
