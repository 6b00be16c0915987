"""A kind of data source from another package: `well:NAME` draws bytes from a folder that a test sets up.

`$WELL/NAME` is the content. `$WELL/drawn` gets a line per fetch. While `$WELL/dry` exists, a fetch stops
in the middle, with the pid of its process in `$WELL/pid`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from paijupyter.errors import NotFound, PaiJupyterError
from paijupyter.protocol.data import DataSource


class WellKind:
    where = "engine"

    def __init__(self, source: DataSource) -> None:
        self._name = source.uri.partition(":")[2]
        self._well = Path(os.environ["WELL"])

    def problems(self) -> Iterable[tuple[str, str]]:
        if not self._name:
            yield "names no bucket", "Write well:NAME."

    def stamp(self) -> str:
        if self._name == "broken":
            raise RuntimeError("the rope broke")
        place = self._well / self._name
        if not place.exists():
            raise NotFound("Bucket", self._name)
        return str(place.stat().st_mtime_ns)

    def fetch(self, target: Path, progress: Callable[[int, int | None], None]) -> None:
        content = (self._well / self._name).read_bytes()
        with (self._well / "drawn").open("a") as file:
            file.write(f"from {target.stat().st_size if target.exists() else 0}\n")
        if self._name == "poisoned":
            raise PaiJupyterError("poison", "Bucket is poisoned.", "Dig another well.", 422)
        half = len(content) // 2
        target.write_bytes(content[:half])
        progress(half, len(content))
        (self._well / "pid").write_text(str(os.getpid()))
        while (self._well / "dry").exists():
            time.sleep(0.01)
        target.write_bytes(content)
        progress(len(content), len(content))
