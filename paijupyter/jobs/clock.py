"""Times as records and screens carry them: ISO 8601, UTC, milliseconds, ``Z``."""

from __future__ import annotations

import time
from datetime import datetime, timezone


def iso(seconds: float) -> str:
    """Write seconds since the epoch, for example ``2026-11-29T19:41:31.123Z``."""
    moment = datetime.fromtimestamp(round(seconds * 1000) / 1000, tz=timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> str:
    """Return the present time."""
    return iso(time.time())
