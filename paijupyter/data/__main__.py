"""``python -m paijupyter.data``: fetch one source into the cache, as a process of the engine's.

The request comes on stdin as JSON: ``data`` (the data folder), ``job`` (its id), ``source``, and what opens
its store: ``options``, ``credentials`` (which are in no arguments and no environment). On stdout goes
one JSON object a line: ``{"done", "total"}`` on the way, at the end ``{"key"}`` or ``{"problem"}``. A process
of its own: a library of a store, or a kind of another package, can be ended at any time and harms nobody.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paijupyter.data.cache import DataCache
from paijupyter.data.kinds import Opened, SourceKind, load_kind
from paijupyter.errors import PaiJupyterError
from paijupyter.protocol.data import DataSource, shown, source_of

_PAUSES = (0.5, 3.0)  # seconds before another try
_BETWEEN = 0.5  # seconds between two words on progress


def main() -> int:
    """Carry out the request; problems are told, not raised."""
    request = json.loads(sys.stdin.buffer.read())
    # What a library prints must not get between our lines.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        source = source_of(request["source"])
        if source is None:
            raise PaiJupyterError("data", "Data source cannot be read.", "", 422)
        kind = load_kind(source)
        if isinstance(kind, Opened):
            kind.open_with(request.get("options") or {}, request.get("credentials") or "")
        answer: dict[str, Any] = {"key": _provide(Path(request["data"]), request["job"], source, kind, out)}
    except PaiJupyterError as error:
        answer = {"problem": error.to_problem_json()}
    except Exception as error:  # a kind of another package may fail in any way; it is told as its failure
        words = f"Data `{request['source'].get('name')}` cannot be fetched: {type(error).__name__}: {error}"
        answer = {"problem": PaiJupyterError("data-failed", words, "See its URI.", 422).to_problem_json()}
    print(json.dumps(answer), file=out, flush=True)
    return 0


def _provide(data: Path, job: str, source: DataSource, kind: SourceKind, out: Any) -> str:
    cache = DataCache(data)
    checksum = source.sha256.lower()
    stamp = checksum or kind.stamp()
    if checksum:
        key = cache.key("sha256", checksum, source.base)
    else:
        # What cannot tell one state from another is fetched for each job.
        key = cache.key(source.kind, source.uri, source.base, stamp or ["job", job])
    said = 0.0

    def progress(done: int, total: int | None) -> None:
        nonlocal said
        if time.monotonic() - said >= _BETWEEN:
            said = time.monotonic()
            print(json.dumps({"done": done, "total": total}), file=out, flush=True)

    def fetch(target: Path) -> None:
        if not stamp and target.exists():
            cache.discard(key)  # of an unknown state
            target.parent.mkdir(mode=0o700, parents=True)
        _patiently(lambda: kind.fetch(target, progress))
        if checksum and _sha256(target) != checksum:
            found = _sha256(target) or "no one file's"
            cache.discard(key)
            raise PaiJupyterError(
                "data-checksum",
                f"Data `{source.name}` has the sha256 {found}, not {checksum}.",
                "Correct sha256=, or find out who changed the data.",
                422,
            )

    cache.provide(key, source.base, {"uri": shown(source.uri)}, fetch)
    return key


def _patiently(fetch: Callable[[], None]) -> None:
    """Fetch; what a store could not give is asked for again, from where it was."""
    for pause in _PAUSES:
        try:
            return fetch()
        except PaiJupyterError as error:
            if error.code != "data-store":
                raise
            time.sleep(pause)
    return fetch()


def _sha256(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
