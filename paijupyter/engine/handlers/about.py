"""The engine itself: version, schema, hand-over, API description."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import lru_cache
from typing import Any

from paijupyter._version import __version__
from paijupyter.backends.base import backend_kinds
from paijupyter.engine.call import Call
from paijupyter.engine.route import Reply
from paijupyter.errors import Conflict

API = 1


async def version(call: Call) -> Reply:
    """Say who answers."""
    return Reply(
        {
            "version": __version__,
            "api": API,
            "engine": dict(call.engine),
            "backends": list(_kinds(_installed())),
            "unfinished": call.service.unfinished(),
        }
    )


async def schema(call: Call) -> Reply:
    """Return what forms and option tables are made from."""
    return Reply(await asyncio.to_thread(_schema))


async def openapi(call: Call) -> Reply:
    """Describe this API."""
    from paijupyter.engine.openapi import describe
    from paijupyter.engine.routes import ROUTES

    return Reply(describe(ROUTES))


async def handover(call: Call) -> Reply:
    """End for a newer engine; running tasks notice nothing.

    Raises:
        Conflict: ``not-newer``, if the asker names a version that is not newer than this engine's.
    """
    asker = call.body.get("version")
    if asker is not None and not is_newer(asker, __version__):
        raise Conflict(
            "not-newer", f"The engine is of version {__version__}, which is not older than {asker}."
        )
    call.end_engine()
    return Reply({"version": __version__, "engine": dict(call.engine)})


def is_newer(ours: str, theirs: str) -> bool:
    """Compare two versions by their numbers; anything after the numbers does not count."""
    return _numbers(ours) > _numbers(theirs)


@lru_cache(maxsize=1)
def _kinds(installed: tuple[int, ...]) -> tuple[str, ...]:
    """Return the kinds of backends; a look through all distributions takes longer than all else here."""
    return tuple(sorted(backend_kinds()))


def _installed() -> tuple[int, ...]:
    """Return what changes when a distribution is installed or removed."""
    times = []
    for place in sys.path:
        try:
            times.append(os.stat(place or ".").st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def _numbers(version: str) -> list[int]:
    numbers = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return numbers


def _schema() -> dict[str, Any]:
    from dataclasses import asdict

    from paijupyter.protocol.fields import FIELDS
    from paijupyter.protocol.form import form_rows
    from paijupyter.protocol.models import document_schema

    return {
        "fields": [asdict(field) for field in FIELDS],
        "form": list(form_rows()),
        "document": document_schema(),
    }
