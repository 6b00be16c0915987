"""Build ``boot.pyz``, the boot process of a task, from the package's own sources.

The sources are read as files: the runtime is never imported here. Beside each source lies its bytecode for
the building interpreter, which halves the start; another one compiles the source. What scripts may import
in a task (``paijupyter.tasks``) lies in it as one JSON file of names and texts, ready to be written out. The
decision on the end of a job (``paijupyter.protocol.deciding``) lies in it as a copy, for the board.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import marshal
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    if sys.version_info >= (3, 11):
        from importlib.resources.abc import Traversable
    else:
        from importlib.abc import Traversable

_PACKAGE = "paiboot"
_LIBRARY = "library.json"
_UNCHECKED_HASH = 1  # PEP 552: bytecode that is used without a look at its source
_DATE = (1980, 1, 1, 0, 0, 0)  # the oldest a zip archive can hold: the same sources give the same bytes


def boot_zipapp(data: Path) -> Path:
    """Return ``<data>/boot/<hash of sources and interpreter>/boot.pyz``, built if it is not there yet.

    Safe for several processes at once: each builds its own draft, a rename publishes it.

    Args:
        data: the data folder (:func:`paijupyter.paths.data_dir`).

    Raises:
        OSError: the archive cannot be written.
    """
    sources = dict(sorted(_sources(files("paijupyter") / "runtime", f"{_PACKAGE}/")))
    library = dict(sorted(_sources(files("paijupyter") / "tasks", "pai_tasks/")))
    texts = {name: source.decode() for name, source in library.items()}
    deciding = files("paijupyter") / "protocol" / "deciding.py"
    sources[f"{_PACKAGE}/{deciding.name}"] = deciding.read_bytes()
    sources[_LIBRARY] = json.dumps(texts).encode("ascii")
    archive = data / "boot" / _digest(sources) / "boot.pyz"
    if archive.is_file():
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=archive.parent, prefix=".boot-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            _write(sources, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(draft, 0o644)
        os.replace(draft, archive)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return archive


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name == "__main__.py":
            yield entry.name, entry.read_bytes()
        elif entry.name.endswith(".py"):
            yield prefix + entry.name, entry.read_bytes()


def _digest(sources: dict[str, bytes]) -> str:
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for name, source in sources.items():
        digest.update(f"{name}\0{len(source)}\0".encode() + source)
    return digest.hexdigest()


def _write(sources: dict[str, bytes], stream: IO[bytes]) -> None:
    """Write the archive uncompressed: the task's interpreter may lack zlib, and reading is faster."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, source in sources.items():
            _add(archive, name, source)
            if name.endswith(".py"):
                _add(archive, f"{name}c", _compiled(name, source))


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def _compiled(name: str, source: bytes) -> bytes:
    """Return a ``.pyc`` file's content, the same each time where the interpreter allows it."""
    code = compile(source, name, "exec", dont_inherit=True, optimize=2)
    try:
        data = marshal.dumps(code, 2)  # later formats depend on who else holds a string
    except ValueError:
        data = marshal.dumps(code)
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH.to_bytes(4, "little")
    return head + importlib.util.source_hash(source) + data
