"""Bring one source of data into the cache: ``python boot.pyz fetch REQUEST``, a process of its own.

So a stop ends it at once, like any tool that boot runs. The request is a JSON file: ``source`` (an item of
``data`` in the spec), ``cache``, ``resolved``, ``result``, ``secrets``. What it prints goes into the task's
log; ``result`` gets ``key`` or ``error``.
"""

import errno
import json
import os
import sys
import time

from .cache import Cache, locked
from .files import write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List


class Unfetched(Exception):
    """It cannot be had; the text is the reason, the end of a sentence."""


def main(argv: "List[str]") -> int:
    """Carry out the request of the file ``argv[2]``."""
    with open(argv[2], "rb") as stream:
        request = json.loads(stream.read().decode("utf-8"))
    try:
        result = {"key": provide(request)}
    except Unfetched as error:
        result = {"error": str(error)}
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        result = {"error": "the disk is full" if full else str(error)}
    write_json(request["result"], result)
    return 0


def provide(request: "Dict[str, Any]") -> str:
    """Have the source in the cache and return its key; all tasks of a job agree on it.

    Raises:
        Unfetched: with the reason.
    """
    source = request["source"]
    cache = Cache(request["cache"])
    resolved = request["resolved"]
    os.makedirs(os.path.dirname(resolved), exist_ok=True)
    with locked(resolved + ".lock", busy=lambda: write_progress(source, "another task fetches it")):
        key = _known(resolved)
        if key and cache.content(key, source["base"]):
            return key
        begin = time.monotonic()
        write_progress(source, "from %s" % source["shown"])
        key = _fetch(source, cache, (request.get("secrets") or {}).get(source.get("secret") or "") or "")
        write_json(resolved, {"key": key})
        write_progress(source, "there after %.1f s" % (time.monotonic() - begin))
    return key


def _fetch(source: "Dict[str, Any]", cache: Cache, secret: str) -> str:
    if source.get("package"):
        return _unpack(source, cache)
    if source["kind"] == "http":
        from .http_source import fetch
    elif source["kind"] == "git":
        from .git_source import fetch
    else:
        raise Unfetched("data of kind %s cannot be fetched by a task" % source["kind"])
    return fetch(source, cache, secret)


def _unpack(source: "Dict[str, Any]", cache: Cache) -> str:
    """Unpack files that travelled like a package."""
    from .failure import Failure
    from .unpack import unpack

    class Patient:
        def check(self) -> None:
            """Do nothing: whoever ends this ends the process."""

    key = cache.key("package", source["package"]["sha256"], source["base"])
    with cache.lock(key):
        if cache.content(key, source["base"]):
            return key
        cache.discard(key)
        content = os.path.join(cache.draft(key), "content")
        os.rmdir(content)
        try:
            unpack(source["package"], content, Patient())  # type: ignore[arg-type]
        except Failure as failure:
            raise Unfetched(failure.message) from failure
        cache.publish(key, source["base"], {"uri": source["shown"]})
    return key


def _known(resolved: str) -> str:
    try:
        with open(resolved, "rb") as stream:
            return str(json.loads(stream.read().decode("utf-8"))["key"])
    except (OSError, ValueError, KeyError):
        return ""


def write_progress(source: "Dict[str, Any]", text: str) -> None:
    """Say how far it is; a line of the task's log."""
    sys.stdout.write("Data `%s`: %s\n" % (source["name"], text))
    sys.stdout.flush()


def shown_size(count: int) -> str:
    """Say a number of bytes: ``17 B``, ``1.2 GB``."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            return "%.0f %s" % (value, unit) if unit == "B" or value >= 10 else "%.1f %s" % (value, unit)
        value /= 1000
    return ""
